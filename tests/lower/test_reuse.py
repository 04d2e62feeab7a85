"""Orders that the reuse of memory asks for, derived by hand."""

from __future__ import annotations

import pytest
import schedules

from twillgpu.frontend.kernel import TileType
from twillgpu.lower.orders import reuses
from twillgpu.lower.record import Ring
from twillgpu.lower.sheet import Sheet, sheet_of
from twillgpu.lower.steps import Step
from twillgpu.lower.storage import Touch

pytestmark = pytest.mark.triton


@pytest.fixture(scope="module")
def sheet() -> Sheet:
    """Any kernel: only its interval, of 1,200 cycles, is used."""
    kernel, graph, problem = schedules.loaded("gemm", "h100")
    groups = {op.name: 0 if op.variable_latency else 1 for op in problem.ops}
    verified = schedules.placed(schedules.roomy(problem), groups, 1200)
    assert verified is not None
    return sheet_of(kernel, graph, verified.problem, verified.schedule)


def _ring(name: str, depth: int, offset: int) -> Ring:
    tile = TileType(space="smem", shape=(8,), dtype="f16")
    return Ring(
        name=name, memory="smem", bytes=16, depth=depth, offset_bytes=offset, scope="iteration", tile=tile, values=()
    )


def _step(name: str, time: int) -> Step:
    return Step(name=name, kind="op", op=name, group=0, engine="simt", time=time, base=name)


def _orders(
    sheet: Sheet, rings: tuple[Ring, ...], uses: dict[str, tuple[str, int, int]]
) -> set[tuple[str, str, int]]:
    """Return (tail, head, distance); ``uses``: ring, start and distance of each step, writers first of their ring."""
    steps = {name: _step(name, start) for name, (_, start, _) in uses.items()}
    touches = tuple(
        Touch(step=name, ring=ring, writes=name.startswith("write"), distance=distance)
        for name, (ring, _, distance) in uses.items()
    )
    return {(one.tail, one.head, one.distance) for one in reuses(sheet, rings, touches, steps)}


def test_a_copy_is_overwritten_after_depth_iterations(sheet: Sheet) -> None:
    found = _orders(sheet, (_ring("a", 3, 0),), {"write_a": ("a", 0, 0), "read_a": ("a", 500, 0)})
    assert ("read_a", "write_a", 3) in found
    assert ("write_a", "read_a", 0) in found


def test_a_reader_one_iteration_behind_leaves_one_copy_less(sheet: Sheet) -> None:
    # Iteration i reads instance i - 1: instance n is read by iteration n + 1, and overwritten by n + 2.
    found = _orders(sheet, (_ring("a", 2, 0),), {"write_a": ("a", 900, 0), "read_a": ("a", 100, 1)})
    assert ("read_a", "write_a", 1) in found


def test_two_tenants_of_one_place_take_turns(sheet: Sheet) -> None:
    # a lives from 0 to 300, b from 400 to 700: b(i) follows a(i), and a(i + 1) follows b(i).
    uses = {
        "write_a": ("a", 0, 0), "read_a": ("a", 300, 0), "write_b": ("b", 400, 0), "read_b": ("b", 700, 0),
    }  # fmt: skip
    found = _orders(sheet, (_ring("a", 1, 0), _ring("b", 1, 0)), uses)
    assert ("read_a", "write_b", 0) in found
    assert ("read_b", "write_a", 1) in found


def test_a_tenant_far_behind_follows_an_earlier_iteration(sheet: Sheet) -> None:
    # The interval is 1,200. b of iteration i is written at 2,800 + 1,200 i, a at 1,200 j and read at 300 + 1,200 j:
    # a(i + 2) was read at 2,700 + 1,200 i, just before b(i) is written; a(i + 3) comes after b(i) was read.
    uses = {
        "write_a": ("a", 0, 0), "read_a": ("a", 300, 0), "write_b": ("b", 2800, 0), "read_b": ("b", 3500, 0),
    }  # fmt: skip
    found = _orders(sheet, (_ring("a", 1, 0), _ring("b", 1, 0)), uses)
    assert ("read_a", "write_b", -2) in found
    assert ("read_b", "write_a", 3) in found


def test_tenants_of_other_bytes_have_no_order(sheet: Sheet) -> None:
    uses = {"write_a": ("a", 0, 0), "write_b": ("b", 400, 0)}
    found = _orders(sheet, (_ring("a", 1, 0), _ring("b", 1, 16)), uses)
    assert found == {("write_a", "write_a", 1), ("write_b", "write_b", 1)}
