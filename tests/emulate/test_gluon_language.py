"""Small Gluon sources: what the language means, and what is found where it is used wrongly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent, indent

import numpy as np
import pytest

from twillgpu.emulate.gluon.source import SourceRun, run_source
from twillgpu.emulate.inputs import Inputs
from twillgpu.errors import InputError, UnsupportedError

HEAD = """
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy
from triton.experimental.gluon.language.nvidia.blackwell import (
    TensorMemoryLayout, allocate_tensor_memory, tcgen05_commit, tcgen05_mma,
)
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared, mbarrier, tma, warpgroup_mma, warpgroup_mma_init, warpgroup_mma_wait,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

SHARED = gl.constexpr(gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16))
TILE = gl.constexpr(gl.BlockedLayout([1, 1], [1, 32], [4, 1], [1, 0]))
ROW = gl.constexpr(gl.SliceLayout(0, TILE))
"""

MEMORY = """
x_smem = gl.allocate_shared_memory(gl.float16, [2, 64, 64], SHARED)
full = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
for i in gl.static_range(2):
    mbarrier.init(full.index(i), count=1)
"""

Runner = Callable[..., SourceRun]


@pytest.fixture
def ran(tmp_path: Path) -> Runner:
    """Return a function that runs the body of a kernel on matrices ``x`` (random) and ``y`` (zeros)."""

    def run(body: str, groups: str = "", *, count: int = 3, version: str = "3.9") -> SourceRun:
        text = "\n".join(
            [
                HEAD,
                dedent(groups),
                "@gluon.jit\ndef kernel(x_desc, y_desc, x_ptr, y_ptr, count):",
                indent(dedent(body), "    "),
                "def launch(grid, x, y, count):",
                "    tiles = [TensorDescriptor.from_tensor(one, [64, 64], SHARED.value) for one in (x, y)]",
                "    kernel[grid](*tiles, x, y, count, num_warps=4)",
            ]
        )
        path = tmp_path / "source.py"
        path.write_text(text, "utf-8")
        random = np.random.default_rng(0)
        x = random.standard_normal((64, 64), np.float32).astype(np.float16)
        inputs = Inputs(tensors={"x": x, "y": np.zeros((64, 64), np.float16)}, scalars={"count": count})
        return run_source(str(path), inputs, {"x": "f16", "y": "f16"}, version=version)

    return run


def test_a_tile_is_copied_in_and_out(ran: Runner) -> None:
    found = ran(
        MEMORY
        + dedent("""
        mbarrier.expect(full.index(0), 64 * 64 * 2)
        tma.async_load(x_desc, [0, 0], full.index(0), x_smem.index(0))
        mbarrier.wait(full.index(0), 0)
        value = x_smem.index(0).load(TILE) * 2.0
        x_smem.index(1).store(value)
        fence_async_shared()
        tma.async_store(y_desc, [0, 0], x_smem.index(1))
        tma.store_wait(0)
        """)
    )
    assert found.sound
    assert np.array_equal(found.outputs["y"], found.outputs["x"] * np.float16(2))


def test_software_writes_need_a_fence_before_an_engine_reads(ran: Runner) -> None:
    found = ran(
        MEMORY
        + dedent("""
        x_smem.index(1).store(gl.zeros([64, 64], gl.float16, TILE))
        tma.async_store(y_desc, [0, 0], x_smem.index(1))
        tma.store_wait(0)
        """)
    )
    assert [race.kind for race in found.races] == ["fence"]
    assert "source.py:" in str(found.races[0])
    assert "tma.async_store(y_desc, [0, 0], x_smem.index(1))" in found.races[0].second.what


def test_division_of_runtime_integers_rounds_towards_zero(ran: Runner) -> None:
    found = ran("""
        at = gl.arange(0, 64, ROW)
        less = count - 10
        values = gl.where(at == 0, less // 2, gl.where(at == 1, less % 4, 7 - 10 // 3))
        gl.store(y_ptr + at, values.to(gl.float16))
    """)
    assert found.outputs["y"][0, :3].tolist() == [-3.0, -3.0, 4.0]


def test_loops_over_runtime_scalars_and_branches(ran: Runner) -> None:
    found = ran("""
        total = gl.zeros([64], gl.float32, ROW)
        for t in range(1, count + 1):
            if t % 2 == 0:
                total += t
            else:
                total += 0.5
        gl.store(y_ptr + gl.arange(0, 64, ROW), total.to(gl.float16), mask=gl.arange(0, 64, ROW) < 2)
    """)
    assert found.outputs["y"][0, :3].tolist() == [3.0, 3.0, 0.0]


PRODUCT = """
mbarrier.expect(full.index(0), 64 * 64 * 2)
tma.async_load(x_desc, [0, 0], full.index(0), x_smem.index(0))
mbarrier.wait(full.index(0), 0)
acc = warpgroup_mma(x_smem.index(0), x_smem.index(0), gl.zeros([64, 64], gl.float32, TILE), is_async=True)
"""
OUT = """
rows = gl.arange(0, 64, gl.SliceLayout(1, TILE))[:, None] * 64
gl.store(y_ptr + rows + gl.arange(0, 64, ROW)[None, :], acc.to(gl.float16))
"""


def test_a_product_is_there_after_its_wait(ran: Runner) -> None:
    found = ran(MEMORY + PRODUCT + "acc = warpgroup_mma_wait(0, deps=[acc])" + OUT)
    x = found.outputs["x"].astype(np.float32)
    assert found.sound
    assert np.array_equal(found.outputs["y"], (x @ x).astype(np.float16))


def test_an_accumulator_in_flight_may_not_be_touched(ran: Runner) -> None:
    found = ran(MEMORY + PRODUCT + "acc = warpgroup_mma_wait(1, deps=[acc])" + OUT)
    assert [race.kind for race in found.races] == ["drain"]


def test_an_accumulator_that_no_wait_returned_is_no_tile(ran: Runner) -> None:
    with pytest.raises(InputError, match="an accumulator is used that no warpgroup_mma_wait has returned"):
        ran(MEMORY + PRODUCT + "warpgroup_mma_wait(0, deps=[acc])" + OUT)


SPECIAL = """
@gluon.jit
def taker(y_desc, x_smem, full, empty, count):
    for t in range(count):
        mbarrier.wait(full.index(t % 2), (t // 2) & 1)
        tma.async_store(y_desc, [0, 0], x_smem.index(t % 2))
        tma.store_wait(0)
        mbarrier.arrive(empty.index({free}), count=1)


@gluon.jit
def giver(x_desc, x_smem, full, empty, count):
    for t in range(count):
        mbarrier.wait(empty.index(t % 2), ((t // 2) & 1) ^ 1)
        mbarrier.expect(full.index(t % 2), 64 * 64 * 2)
        tma.async_load(x_desc, [0, 0], full.index(t % 2), x_smem.index(t % 2))
"""
SPECIALIZE = """
empty = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
for i in gl.static_range(2):
    mbarrier.init(empty.index(i), count=1)
gl.warp_specialize(
    [(taker, (y_desc, x_smem, full, empty, count)), (giver, (x_desc, x_smem, full, empty, count))], [1], [24]
)
"""


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_groups_run_side_by_side(ran: Runner, count: int) -> None:
    found = ran(MEMORY + SPECIALIZE, SPECIAL.format(free="t % 2"), count=count)
    assert found.sound
    assert np.array_equal(found.outputs["y"], found.outputs["x"] * np.float16(count > 0))


def test_a_copy_freed_for_another_lags_a_phase(ran: Runner) -> None:
    found = ran(MEMORY + SPECIALIZE, SPECIAL.format(free="(t + 1) % 2"), count=2)
    assert {hazard.kind for hazard in found.hazards} == {"phase lag"}


def test_a_wait_for_nobody_names_its_line(ran: Runner) -> None:
    found = ran(MEMORY + "mbarrier.wait(full.index(1), 0)")
    assert found.deadlock is not None
    assert "`mbarrier.wait(full.index(1), 0)` (group kernel; " in str(found.deadlock)


def test_tensor_memory_is_shared_by_columns(ran: Runner) -> None:
    found = ran(
        MEMORY
        + dedent("""
        layout: gl.constexpr = TensorMemoryLayout((64, 64), col_stride=1)
        tmem = allocate_tensor_memory(gl.float32, [1, 64, 128], TensorMemoryLayout((64, 128), col_stride=1))
        left, right = tmem.index(0).slice(0, 64), tmem.index(0).slice(64, 32)
        half = right.reinterpret(gl.float16, [64, 64], layout)
        left.store(gl.full([64, 64], 3.0, gl.float32, TILE))
        half.store(gl.full([64, 64], 2.0, gl.float16, TILE))
        acc = left.load(TILE) + half.load(TILE)
        """)
        + OUT
    )
    assert found.sound
    assert (found.outputs["y"] == 5).all()


def test_a_committed_product_is_there_after_the_barrier(ran: Runner) -> None:
    body = MEMORY + dedent("""
        tmem = allocate_tensor_memory(gl.float32, [64, 64], TensorMemoryLayout((64, 64), col_stride=1))
        mbarrier.expect(full.index(0), 64 * 64 * 2)
        tma.async_load(x_desc, [0, 0], full.index(0), x_smem.index(0))
        mbarrier.wait(full.index(0), 0)
        tcgen05_mma(x_smem.index(0), x_smem.index(0).permute([1, 0]), tmem, use_acc=False)
        tcgen05_commit(full.index(1))
        WAIT
        acc = tmem.load(TILE)
        """)
    found = ran(body.replace("WAIT", "mbarrier.wait(full.index(1), 0)") + OUT)
    x = found.outputs["x"].astype(np.float32)
    assert found.sound
    assert np.array_equal(found.outputs["y"], (x @ x.T).astype(np.float16))
    assert [race.kind for race in ran(body.replace("WAIT", "pass") + OUT).races] == ["order"]


COPIES = """
rows = gl.arange(0, 64, gl.SliceLayout(1, TILE))[:, None] * 64
places = rows + gl.arange(0, 64, ROW)[None, :]
async_copy.async_load(x_smem.index(0), x_ptr + places)
async_copy.commit_group()
async_copy.async_load(x_smem.index(1), x_ptr + places)
async_copy.commit_group()
async_copy.wait_group({left})
acc = x_smem.index(1).load(TILE)
async_copy.wait_group(0)
gl.store(y_ptr + places, acc)
"""


def test_plain_asynchronous_copies_are_waited_for_by_groups(ran: Runner) -> None:
    found = ran(MEMORY + COPIES.format(left=0))
    assert found.sound
    assert np.array_equal(found.outputs["y"], found.outputs["x"])
    assert [race.kind for race in ran(MEMORY + COPIES.format(left=1)).races] == ["order"]


def test_a_copy_beyond_the_ring_may_be_named_and_not_used(ran: Runner) -> None:
    assert ran(MEMORY + "mbarrier.arrive(full.index(count - 4), count=1, pred=count > 3)").sound
    with pytest.raises(InputError, match=r"source\.py:\d+: it uses copy -1 of full, which has 2"):
        ran(MEMORY + "mbarrier.arrive(full.index(count - 4), count=1)")


def test_what_has_no_stand_in_is_named_with_its_line(ran: Runner) -> None:
    with pytest.raises(UnsupportedError, match=r"source\.py:\d+: no stand-in: .*histogram"):
        ran("gl.histogram(gl.arange(0, 64, ROW), 4)")


def test_each_version_has_its_own_names(ran: Runner) -> None:
    use = "tma.{name}(y_desc, [0, 0], x_smem.index(0))\ntma.store_wait(0)"
    start = MEMORY + "x_smem.index(0).store(gl.zeros([64, 64], gl.float16, TILE))\nfence_async_shared()\n"
    assert ran(start + use.format(name="async_store")).sound
    assert ran(start + use.format(name="async_copy_shared_to_global"), version="3.6").sound
    with pytest.raises(UnsupportedError, match="async_store"):
        ran(start + use.format(name="async_store"), version="3.6")


def test_a_file_without_a_launcher(tmp_path: Path) -> None:
    path = tmp_path / "empty.py"
    path.write_text("import triton\n", "utf-8")
    with pytest.raises(InputError, match="it has no function 'launch'"):
        run_source(str(path), Inputs(tensors={}), {})


def test_a_mistake_of_the_source_is_an_error_with_its_line(ran: Runner) -> None:
    with pytest.raises(InputError, match=r"source\.py:\d+: it raises NameError: name 'missing' is not defined"):
        ran("missing(count)")
