"""Text of layout attributes: taken apart, put together, and cut for a part of a tile."""

from __future__ import annotations

import pytest
from frontend_data import FILES, captured

from twillgpu.frontend.check import all_ops
from twillgpu.frontend.kernel import TileType
from twillgpu.frontend.layouts import parse_layout
from twillgpu.frontend.subtile_layout import Cut, cut_layout, cut_type


def blocked(size: str, threads: str, warps: str) -> str:
    return (
        f"#ttg.blocked<{{sizePerThread = {size}, threadsPerWarp = {threads}, warpsPerCTA = {warps}, order = [1, 0]}}>"
    )


def mma(warps: str, columns: int) -> str:
    shape = f"[16, {columns}, 16]"
    return f"#ttg.nvidia_mma<{{versionMajor = 3, versionMinor = 0, warpsPerCTA = {warps}, instrShape = {shape}}}>"


def shared(width: int, *, transposed: bool = False) -> str:
    turned = str(transposed).lower()
    return f"#ttg.nvmma_shared<{{swizzlingByteWidth = {width}, transposed = {turned}, elementBitWidth = 16}}>"


def tmem(rows: int, columns: int) -> str:
    return f"#ttng.tensor_memory_encoding<blockM = {rows}, blockN = {columns}, colStride = 1>"


def linear(register: str, warp: str) -> str:
    lane = "[[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]"
    return f"#ttg.linear<{{register = {register}, lane = {lane}, warp = {warp}, block = []}}>"


@pytest.mark.parametrize("name", FILES)
def test_every_captured_layout_is_put_together_again(name: str) -> None:
    layouts = {result.type.layout for op in all_ops(captured(name)) for result in op.results} - {""}
    assert layouts
    for text in layouts:
        assert str(parse_layout(text)) == text


def test_what_is_no_layout() -> None:
    assert parse_layout("") is None
    assert parse_layout("tensor<64xf32>") is None
    assert cut_layout("#ttg.amd_wmma<{version = 1}>", Cut(axis=0, size=64, warps=4)) is None
    assert cut_layout("garbage", Cut(axis=0, size=64, warps=4)) is None
    assert cut_layout("", Cut(axis=0, size=64, warps=4)) == ""


ROWS = Cut(axis=0, size=64, warps=4)
COLUMNS = Cut(axis=1, size=32, warps=4)
WHOLE = Cut(axis=None, size=64, warps=4)
EIGHT = "[[0, 1], [0, 2]]"


@pytest.mark.parametrize(
    ("text", "cut", "expected"),
    [
        (blocked("[1, 8]", "[2, 16]", "[8, 1]"), ROWS, blocked("[1, 8]", "[2, 16]", "[4, 1]")),
        (blocked("[1, 8]", "[2, 16]", "[2, 4]"), ROWS, blocked("[1, 8]", "[2, 16]", "[1, 4]")),
        (blocked("[1, 8]", "[2, 16]", "[1, 8]"), ROWS, blocked("[1, 8]", "[2, 16]", "[1, 4]")),
        (blocked("[1, 8]", "[2, 16]", "[2, 4]"), WHOLE, blocked("[1, 8]", "[2, 16]", "[2, 2]")),
        (blocked("[1, 8]", "[2, 16]", "[4, 1]"), ROWS, blocked("[1, 8]", "[2, 16]", "[4, 1]")),
        (mma("[8, 1]", 128), ROWS, mma("[4, 1]", 128)),
        (mma("[4, 2]", 128), ROWS, mma("[4, 1]", 256)),
        (mma("[8, 1]", 128), COLUMNS, mma("[4, 1]", 32)),
        (mma("[8, 1]", 128), WHOLE, mma("[4, 1]", 128)),
        (
            f"#ttg.slice<{{dim = 0, parent = {mma('[8, 1]', 128)}}}>",
            Cut(axis=0, size=32, warps=4),
            f"#ttg.slice<{{dim = 0, parent = {mma('[4, 1]', 32)}}}>",
        ),
        (
            f"#ttg.dot_op<{{opIdx = 0, parent = {mma('[8, 1]', 128)}, kWidth = 2}}>",
            COLUMNS,
            f"#ttg.dot_op<{{opIdx = 0, parent = {mma('[4, 1]', 128)}, kWidth = 2}}>",
        ),
        (
            f"#ttg.dot_op<{{opIdx = 1, parent = {mma('[8, 1]', 128)}, kWidth = 2}}>",
            COLUMNS,
            f"#ttg.dot_op<{{opIdx = 1, parent = {mma('[4, 1]', 32)}, kWidth = 2}}>",
        ),
        (
            linear(EIGHT, "[[32, 0], [64, 0], [128, 0]]"),
            Cut(axis=0, size=128, warps=4),
            linear(EIGHT, "[[32, 0], [64, 0]]"),
        ),
        (
            linear(EIGHT, "[[32, 0], [64, 0], [0, 4]]"),
            Cut(axis=None, size=128, warps=4),
            linear("[[0, 1], [0, 2], [0, 4]]", "[[32, 0], [64, 0]]"),
        ),
        (shared(128), Cut(axis=1, size=32, warps=4), shared(64)),
        (shared(128), ROWS, shared(128)),
        (shared(128, transposed=True), Cut(axis=0, size=16, warps=4), shared(32, transposed=True)),
        (shared(128, transposed=True), COLUMNS, shared(128, transposed=True)),
        (tmem(128, 128), ROWS, tmem(64, 128)),
        (tmem(128, 128), COLUMNS, tmem(128, 32)),
        (tmem(128, 128), WHOLE, tmem(128, 128)),
    ],
)
def test_layouts_of_parts(text: str, cut: Cut, expected: str) -> None:
    assert cut_layout(text, cut) == expected


@pytest.mark.parametrize(
    "text",
    [
        linear(EIGHT, "[[32, 0], [64, 0]]"),
        f"#ttg.slice<{{dim = 1, parent = {linear(EIGHT, '[[32, 0], [64, 0]]')}}}>",
    ],
)
def test_layouts_that_cannot_be_cut_so(text: str) -> None:
    """64 rows in the hands of four warps: a warp would have 16 of its 32 lanes without an element of its own."""
    assert cut_layout(text, ROWS) is None
    assert cut_layout(linear(EIGHT, "[[32, 0], [64, 0]]"), Cut(axis=0, size=16, warps=4)) is None


def test_types_of_parts() -> None:
    kind = TileType(space="registers", shape=(128, 64), dtype="f32", layout=mma("[8, 1]", 64))
    assert cut_type(kind, ROWS) == (
        TileType(space="registers", shape=(64, 64), dtype="f32", layout=mma("[4, 1]", 64)),
        True,
    )
    memory = TileType(space="smem", shape=(128, 64), dtype="f16", layout="#ttg.odd<{a = 1}>")
    assert cut_type(memory, WHOLE) == (memory, True)
    assert cut_type(memory, ROWS)[1] is False
