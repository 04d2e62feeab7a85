"""Emission of partitions that no expert would choose: one group, deep pipelines, groups of another width, copies."""

import random
import sys
from pathlib import Path

import pytest

from twillgpu.emit.gluon import emit
from twillgpu.emit.offline import compile_source
from twillgpu.emit.record import Form
from twillgpu.emit.widths import fitted
from twillgpu.emulate.gluon.source import SourceOptions, check_source
from twillgpu.frontend.launch import LoadOptions
from twillgpu.inputs import SourceOptions as Source
from twillgpu.inputs import kernel_of, load_problem
from twillgpu.lower.lower import lower
from twillgpu.lower.record import WarpProgram

sys.path.append(str(Path(__file__).parents[1] / "lower"))

import schedules  # of the tests of lowering

pytestmark = pytest.mark.triton


def _program(
    name: str, machine: str, groups: int, interval: int, *, kernel: str | None = None, apart: str = ""
) -> WarpProgram:
    """Return the program of a random partition, or of the one in which ops of one kind are apart."""
    options = Source(load=LoadOptions(kernel=kernel))
    priced = load_problem(schedules.EXAMPLES / f"{name}.py", machine, options=options)
    problem = schedules.roomy(priced.problem)
    drawn = schedules.random_groups(problem, random.Random(3), groups)  # noqa: S311  # not for cryptography
    partition = {op.name: int(op.kind == apart) for op in problem.ops} if apart else drawn
    verified = schedules.placed(problem, partition, interval)
    assert verified is not None
    return lower(kernel_of(priced.loaded), priced.loaded.graph, verified)


def _equal(program: WarpProgram, path: Path) -> None:
    path.write_text(emit(program), encoding="utf-8")
    stages = max(group.stages for group in program.groups)
    report = check_source(str(path), program.kernel, SourceOptions(trips=tuple(range(stages + 2))))
    assert report.status == "sound", report


@pytest.mark.parametrize(("interval", "apart", "behind"), [(300, "", False), (260, "store", True)])
def test_loops_shorter_than_a_deep_pipeline_give_the_same(
    interval: int, apart: str, behind: bool, tmp_path: Path
) -> None:
    program = _program("rms_norm", "h100", 2, interval, apart=apart)
    assert max(group.stages for group in program.groups) >= 4
    assert ("if trips < 2:" in emit(program)) == behind, "a reader more than two steps behind"
    _equal(program, tmp_path / "deep.py")


def test_one_iteration_reads_nothing_of_an_earlier_one() -> None:
    kernel, graph, problem = schedules.loaded("attention_fwd", "h100")
    draw = random.Random(2)  # noqa: S311  # not for cryptography
    groups = schedules.random_groups(schedules.roomy(problem), draw, 2)
    interval = draw.choice((2300, 2800, 3400))
    verified = schedules.placed(schedules.roomy(problem), groups, interval, randomly=draw)
    assert verified is not None
    text = emit(lower(kernel, graph, verified), form=Form(apart=True))
    blocks = [part.split("# attention_fwd.py:45")[0] for part in text.split("elif trips == 1:")[1:]]
    assert blocks
    assert not [line for block in blocks for line in block.splitlines() if "prev_alpha" in line.partition(" = ")[2]]


def test_one_group_is_no_specialisation(tmp_path: Path) -> None:
    program = _program("rms_norm", "h100", 1, 2000)
    assert len(program.groups) == 1
    _equal(program, tmp_path / "one.py")
    assert "warp_specialize" not in (tmp_path / "one.py").read_text("utf-8")
    compile_source(tmp_path / "one.py")


@pytest.mark.parametrize("machine", ["h100", "b200"])
def test_tiles_loaded_through_pointers_are_copied_to_smem(machine: str, tmp_path: Path) -> None:
    program = _program("gemm", machine, 2, 6000, kernel="gemm_pointers")
    _equal(program, tmp_path / "pointers.py")
    assert "cp_async(load_a.index" in (tmp_path / "pointers.py").read_text("utf-8")
    compile_source(tmp_path / "pointers.py")


BLOCKED = "#ttg.blocked<{{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [{}], order = [1, 0]}}>"


@pytest.mark.parametrize(
    ("before", "warps", "after"),
    [("8, 1", 4, "4, 1"), ("2, 4", 4, "1, 4"), ("2, 4", 2, "1, 2"), ("4, 1", 8, "8, 1"), ("4, 1", 4, "4, 1")],
)
def test_layouts_follow_the_width_of_the_group(before: str, warps: int, after: str) -> None:
    assert fitted(BLOCKED.format(before), warps) == BLOCKED.format(after)
    inside = "#ttg.slice<{{dim = 1, parent = {}}}>"
    assert fitted(inside.format(BLOCKED.format(before)), warps) == inside.format(BLOCKED.format(after))


def test_what_several_warps_held_is_held_by_one_or_copied() -> None:
    linear = "#ttg.linear<{{register = [{}], lane = [[1, 0]], warp = [{}], block = []}}>"
    wide = linear.format("[0, 1]", "[2, 0], [4, 0], [8, 0]")
    assert fitted(wide, 4) == linear.format("[0, 1], [8, 0]", "[2, 0], [4, 0]")
    assert fitted(wide, 16) == linear.format("[0, 1]", "[2, 0], [4, 0], [8, 0], [0, 0]")
    shared = "#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>"
    assert fitted(shared, 4) == shared


def test_wgmma_of_fewer_warps_along_the_columns_is_as_wide_as_the_tile_or_256() -> None:
    mma = "#ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 2], instrShape = [16, %d, 16]}>"
    alone = mma.replace("[4, 2]", "[4, 1]")
    assert fitted(mma % 64, 4) == alone % 128
    assert fitted(mma % 256, 4) == alone % 256
    assert fitted(alone % 64, 8) == mma.replace("[4, 2]", "[8, 1]") % 64
