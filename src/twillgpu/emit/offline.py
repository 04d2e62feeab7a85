"""Compiling an emitted source file without a GPU, and what its machine code holds.

An emitted file says how it is compiled: ``KERNEL`` (the jit function), ``SIGNATURE`` (argument types), ``CONSTANTS``,
``ATTRIBUTES`` (by position of the argument: ``[["tt.divisibility", 16]]``), ``NUM_WARPS`` (of the default partition),
``TARGET``, ``GROUPS`` (names of the functions that are warp groups).
"""

from __future__ import annotations

import ast
import json
import tempfile
from pathlib import Path
from typing import Any

from twillgpu.emit.record import Compiled, GroupCode
from twillgpu.emit.sass import Instruction, group_code, instructions
from twillgpu.emit.tools import assemble, disassemble, tool, version
from twillgpu.errors import InputError, TwillError
from twillgpu.frontend.process import run_worker


def compile_source(path: Path) -> Compiled:
    """Compile the emitted file at ``path`` for its target; needs Triton, no GPU and no driver.

    Raises:
        InputError: Triton is not installed, or the file is not Python.
        TwillError: Triton or the assembler refuses the kernel, with the last line of what they say.
    """
    tool("ptxas-blackwell")
    source = path.absolute()
    lined = _functions(source)
    answer = _compiled(source)
    functions = {name: lined[name] for name in (answer["kernel"], *answer["groups"])}
    with tempfile.TemporaryDirectory(prefix="twillgpu-") as scratch:
        folder = Path(scratch)
        assembled = assemble(answer["assembler"], answer["ptx"], answer["target"], folder)
        lines, lives = disassemble(assembled.cubin, folder)
    code = instructions(lines, lives, str(source), functions)
    return Compiled(
        target=answer["target"],
        triton=answer["triton"],
        assembler=version(answer["assembler"][0]),
        seconds=answer["seconds"],
        warps=answer["warps"],
        registers_per_thread=assembled.registers_per_thread,
        spill_bytes=assembled.spill_bytes,
        smem_bytes=answer["smem_bytes"],
        tmem_columns=answer["tmem_columns"],
        warnings=assembled.warnings,
        groups=_groups(answer["groups"], code),
    )


def _groups(names: list[str], code: tuple[Instruction, ...]) -> tuple[GroupCode, ...]:
    return tuple(group_code(name, tuple(one for one in code if one.function == name)) for name in names)


def _functions(path: Path) -> dict[str, tuple[int, int]]:
    """Return first and last line of every function of the file, decorators included."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError) as error:
        raise InputError(str(path), f"cannot be read as Python ({error})", "emit it again") from None
    found = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            found[node.name] = (first, node.end_lineno or node.lineno)
    return found


def _compiled(path: Path) -> dict[str, Any]:
    done = run_worker("twillgpu.emit.offline_worker", {"path": str(path)})
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        said = _complaint(done.stderr) or f"exit status {done.returncode}"
        raise TwillError(
            path.name, f"Triton does not compile it: {said}", "report it, with the file: emission went wrong"
        ) from None
    return answer


def _complaint(said: str) -> str:
    """Return the last line that says what the error is, otherwise the last line."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    told = [line for line in lines if "rror" in line and "CompilationError: at" not in line]
    return (told or lines or [""])[-1]
