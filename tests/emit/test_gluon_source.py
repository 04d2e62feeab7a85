"""Emitted files: golden texts, names, format, sameness; and that Triton and the assembler take them."""

import ast
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import compiled_code as code
import pytest

import twillgpu
from twillgpu.emit.feedback import Judged, findings
from twillgpu.emit.gluon import Provenance, emit, ordered
from twillgpu.emit.offline import compile_source

pytestmark = pytest.mark.triton

EXAMPLES = Path(__file__).parents[2] / "examples"
PAIRS = [(name, machine) for name in ("gemm", "attention_fwd", "attention_bwd") for machine in ("h100", "b200")]


@pytest.mark.parametrize(("name", "machine"), PAIRS[:4])
def test_source(name: str, machine: str, golden: Callable[[str], None]) -> None:
    golden(emit(code.program(name, machine), Provenance(lines=("How it was made.",))))


@pytest.mark.parametrize(("name", "machine"), PAIRS)
def test_the_same_program_gives_the_same_text(name: str, machine: str) -> None:
    program = code.program(name, machine)
    assert emit(program) == emit(replace(program))


@pytest.mark.parametrize(("name", "machine"), PAIRS)
def test_every_group_is_a_function_named_after_its_role(name: str, machine: str) -> None:
    program = code.program(name, machine)
    tree = ast.parse(emit(program))
    functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert {group.name for group in program.groups} <= set(functions)
    assert {f"{program.kernel.name}_specialised", "launch"} <= set(functions)


@pytest.mark.parametrize(("name", "machine"), PAIRS)
def test_lines_point_at_the_users_kernel(name: str, machine: str) -> None:
    text = emit(code.program(name, machine))
    assert f"# {name}.py:" in text


@pytest.mark.skipif(
    shutil.which("ruff", path=str(Path(sys.executable).parent)) is None, reason="ruff is not installed"
)
@pytest.mark.parametrize(("name", "machine"), PAIRS)
def test_files_are_formatted_and_nothing_in_them_is_unused(name: str, machine: str) -> None:
    ruff, text = str(Path(sys.executable).parent / "ruff"), emit(code.program(name, machine))
    for command in (["format", "--diff"], ["check", "--select=E,F"]):
        done = subprocess.run(  # noqa: S603  # the project's own formatter
            [ruff, *command, "--isolated", "--line-length=118", "-"],
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.versions
@pytest.mark.parametrize(("name", "machine"), PAIRS[:4])
def test_it_compiles_and_has_the_products_and_registers_of_the_program(
    name: str, machine: str, tmp_path: Path
) -> None:
    program = code.program(name, machine)
    file = tmp_path / f"{name}.py"
    file.write_text(emit(program), "utf-8")
    judged = Judged(program=program, groups=ordered(program), compiled=compile_source(file), limits=code.LIMITS)
    rules = {one.rule for one in findings(judged) if one.serious}
    assert not rules & {"tensor_count", "smem_limit", "tmem_limit"}
    assert judged.compiled.smem_bytes <= judged.planned_smem_bytes


def test_a_loop_that_hands_on_a_product_in_flight_begins_with_one_in_flight() -> None:
    """The assembler serialised all wgmma of what Triton 3.6 made of a loop from iteration 0 on (C7512)."""
    text = emit(code.program("attention_fwd", "h100"))
    assert text.count("for t in range(1, trips):") == 2
    assert text.count("for t in range(trips):") == 1, "the group that loads has no product in flight"


@pytest.mark.slow
@pytest.mark.versions
def test_the_optimum_of_attention_on_hopper_is_not_serialised(tmp_path: Path) -> None:
    """With Triton 3.6 it was: C7512, in every round."""
    priced = twillgpu.load_problem(EXAMPLES / "attention_fwd.py", "h100")
    taken = twillgpu.take_schedule(priced)
    file = tmp_path / "attention_fwd.py"
    file.write_text(emit(taken.program()), "utf-8")
    compiled = compile_source(file)
    assert compiled.warnings == ()
    assert compiled.assembler.startswith("ptxas 1")
    assert [one.loop.spills for one in compiled.groups if one.loop is not None] == [0, 0, 0]


@pytest.mark.slow
@pytest.mark.versions
@pytest.mark.parametrize(("name", "machine"), PAIRS[4:])
def test_tiles_are_added_to_global_memory_with_every_triton(name: str, machine: str, tmp_path: Path) -> None:
    """With Triton 3.6 the backward pass did not compile: module tma has no attribute async_atomic_add."""
    file = tmp_path / f"{name}.py"
    file.write_text(emit(code.program(name, machine)), "utf-8")
    assert [one.name for one in compile_source(file).groups] == [
        one.name for one in ordered(code.program(name, machine))
    ]
