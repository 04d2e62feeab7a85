from __future__ import annotations

import pytest

from twillgpu.frontend.kernel import TileType
from twillgpu.frontend.tile_types import split_top, tile_type

SLICE = "#ttg.slice<{dim = 1, parent = #ttg.blocked<{order = [1, 0]}>}>"
SHARED = "#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>"
TMEM = "#ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i32", TileType(space="scalar", dtype="i32")),
        ("bf16", TileType(space="scalar", dtype="bf16")),
        ("f8E5M2", TileType(space="scalar", dtype="f8E5M2")),
        ("index", TileType(space="scalar", dtype="index")),
        ("!ttg.async.token", TileType(space="token")),
        ("!tt.ptr<f32>", TileType(space="global", dtype="ptr<f32>")),
        ("tensor<128xf32>", TileType(space="registers", shape=(128,), dtype="f32")),
        (f"tensor<128xf32, {SLICE}>", TileType(space="registers", shape=(128,), dtype="f32", layout=SLICE)),
        (
            "tensor<64x128x!tt.ptr<f16>, #ttg.blocked<{order = [1, 0]}>>",
            TileType(space="registers", shape=(64, 128), dtype="ptr<f16>", layout="#ttg.blocked<{order = [1, 0]}>"),
        ),
        (
            f"!ttg.memdesc<128x64xf16, {SHARED}, #ttg.shared_memory>",
            TileType(space="smem", shape=(128, 64), dtype="f16", layout=SHARED),
        ),
        (
            f"!ttg.memdesc<3x128x64xf16, {SHARED}, #ttg.shared_memory, mutable, 3x128x64>",
            TileType(space="smem", shape=(3, 128, 64), dtype="f16", layout=SHARED, mutable=True),
        ),
        (
            f"!ttg.memdesc<128x64xf32, {TMEM}, #ttng.tensor_memory, mutable>",
            TileType(space="tmem", shape=(128, 64), dtype="f32", layout=TMEM, mutable=True),
        ),
        (
            f"!tt.tensordesc<128x64xf16, {SHARED}>",
            TileType(space="descriptor", shape=(128, 64), dtype="f16", layout=SHARED),
        ),
        (
            f"!tt.tensordesc<tensor<128x64xf16, {SHARED}>>",
            TileType(space="descriptor", shape=(128, 64), dtype="f16", layout=SHARED),
        ),
        ("!llvm.ptr<1>", TileType(space="none", dtype="!llvm.ptr<1>")),
    ],
)
def test_a_type_says_where_the_value_is(text: str, expected: TileType) -> None:
    assert tile_type(text) == expected


def test_commas_inside_brackets_do_not_split() -> None:
    assert split_top("a<b, c>, (d, e) -> f, [g, h]") == ("a<b, c>", "(d, e) -> f", "[g, h]")
