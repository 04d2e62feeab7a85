"""Which thread holds which element: by enumeration for small tiles, and against facts of Triton's layouts."""

from __future__ import annotations

from itertools import product

import pytest

from twillgpu.frontend.kernel import TileType
from twillgpu.graph.layout import Owners, elements_per_thread, owners, same_owners

BLOCKED = "#ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>"
MMA2 = "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>"
MMA3 = "#ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>"
WIDE3 = MMA3.replace("[16, 64, 16]", "[16, 128, 16]")
LINEAR = (
    "#ttg.linear<{register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32]], "
    "lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]], block = []}>"
)


def tile(layout: str, *shape: int, dtype: str = "f16") -> TileType:
    return TileType(space="registers", shape=shape, dtype=dtype, layout=layout)


def rows_of(parent: str, dimension: int) -> str:
    return f"#ttg.slice<{{dim = {dimension}, parent = {parent}}}>"


def operand(side: int, parent: str, width: int = 2) -> str:
    return f"#ttg.dot_op<{{opIdx = {side}, parent = {parent}, kWidth = {width}}}>"


def held(found: Owners, warp: int, lane: int) -> set[tuple[int, ...]]:
    """Return the elements of one thread by adding up the vectors of its bits."""

    def total(bases: tuple[tuple[int, ...], ...], index: int) -> list[int]:
        chosen = [vector for bit, vector in enumerate(bases) if index >> bit & 1]
        return [sum(axis) for axis in zip(*chosen, strict=True)] if chosen else [0] * len(found.lane[0])

    base = [a + b for a, b in zip(total(found.lane, lane), total(found.warp, warp), strict=True)]
    count = 2 ** len(found.register)
    return {
        tuple(a + b for a, b in zip(base, total(found.register, register), strict=True)) for register in range(count)
    }


@pytest.mark.parametrize(
    ("layout", "shape"),
    [
        (BLOCKED, (16, 64)),
        (BLOCKED, (64, 128)),
        (MMA2, (64, 64)),
        (MMA3, (64, 128)),
        (MMA3, (128, 64)),
        (LINEAR, (128, 64)),
        (operand(0, MMA2), (64, 32)),
        (operand(0, MMA3), (64, 64)),
    ],
)
def test_every_element_has_exactly_one_owner(layout: str, shape: tuple[int, int]) -> None:
    kind = tile(layout, *shape)
    found = owners(kind)
    assert found is not None
    seen: list[tuple[int, ...]] = []
    for warp, lane in product(range(4), range(32)):
        mine = held(found, warp, lane)
        assert len(mine) == elements_per_thread(kind)
        seen += mine
    assert len(seen) == len(set(seen)) == shape[0] * shape[1]
    assert max(seen) == (shape[0] - 1, shape[1] - 1)


def test_accumulator_fragments_of_the_tensor_core() -> None:
    """PTX ISA: lane 4 r + c of warp w holds columns 2 c and 2 c + 1 of rows 16 w + r and 16 w + r + 8."""
    found = owners(tile(MMA3, 64, 8, dtype="f32"))
    assert found is not None
    assert held(found, 1, 4 * 3 + 2) == {(19, 4), (19, 5), (27, 4), (27, 5)}


def test_the_second_operand_is_held_by_every_warp() -> None:
    kind = tile(operand(1, MMA2), 32, 64)
    found = owners(kind)
    assert found is not None
    assert {element for lane in range(32) for element in held(found, 3, lane)} == set(product(range(32), range(64)))
    assert elements_per_thread(kind) == 32 * 64 // 32


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (tile(MMA3, 64, 128), tile(operand(0, MMA3), 64, 128)),
        (tile(MMA3, 64, 128), tile(operand(0, WIDE3), 64, 128)),
        (tile(MMA2, 64, 64), tile(operand(0, MMA2), 64, 64)),
        (tile(rows_of(MMA3, 1), 64), tile(rows_of(WIDE3, 1), 64)),
        (tile(MMA3, 64, 64), tile(MMA3, 64, 64)),
        (tile("#unknown", 64, 64), tile("#unknown", 64, 64)),
    ],
)
def test_conversions_that_cost_nothing(first: TileType, second: TileType) -> None:
    assert same_owners(first, second)
    assert same_owners(second, first)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (tile(MMA3, 64, 128), tile(BLOCKED, 64, 128)),
        (tile(MMA3, 64, 128), tile(operand(0, MMA3, width=4), 64, 128)),
        (tile(MMA3, 64, 64), tile(operand(1, MMA3), 64, 64)),
        (tile(rows_of(MMA3, 1), 64), tile(rows_of(MMA3, 0), 64)),
        (tile(MMA3, 64, 64), tile("#unknown", 64, 64)),
        (tile(MMA3, 64, 64), tile(MMA3, 64, 32)),
        (tile(MMA3, 64, 64), TileType(space="smem", shape=(64, 64), dtype="f16", layout=BLOCKED)),
    ],
)
def test_conversions_that_move_elements(first: TileType, second: TileType) -> None:
    assert not same_owners(first, second)


def test_copies_are_counted() -> None:
    assert elements_per_thread(tile(rows_of(MMA3, 1), 64)) == 2
    assert elements_per_thread(tile(rows_of(MMA3, 0), 64)) == 16
    assert elements_per_thread(tile(rows_of(LINEAR, 1), 128)) == 1
    assert elements_per_thread(tile(rows_of(LINEAR, 0), 64)) == 64
    assert elements_per_thread(tile(BLOCKED, 8, 64)) == 8, "a tile smaller than the layout is held several times"


@pytest.mark.parametrize(
    "kind",
    [
        tile("", 64, 64),
        tile("#ttg.amd_mfma<{version = 3}>", 64, 64),
        tile(LINEAR, 64, 64),
        tile(MMA3, 48, 64),
        tile(MMA3, 2, 64, 64),
        tile(operand(0, BLOCKED), 64, 64),
        tile(rows_of("#unknown", 1), 64),
    ],
)
def test_layouts_that_are_not_known(kind: TileType) -> None:
    assert owners(kind) is None
    assert elements_per_thread(kind) is None
