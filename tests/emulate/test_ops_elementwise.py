"""Elementwise ops, constants and moves of elements against independent definitions in Python."""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from run_op import run_op, tile

from twillgpu.emulate.numbers import FORMATS, rounded
from twillgpu.errors import UnsupportedError

RANDOM = np.random.default_rng(17)
I32, U32 = 1 << 31, 1 << 32
EDGES = [0, 1, 2, 3, -1, -2, -3, 5, -7, 12345, -54321, I32 - 1, -I32, 100, 31]


def wrap(value: int, bits: int = 32) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def quotient(a: int, b: int) -> int:
    return 0 if b == 0 else int(Fraction(a, b))


def remainder(a: int, b: int) -> int:
    return 0 if b == 0 else a - b * int(Fraction(a, b))


def u(value: int) -> int:
    return value & (U32 - 1)


INTEGER: dict[str, Any] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.divsi": quotient,
    "arith.divui": lambda a, b: quotient(u(a), u(b)),
    "arith.remsi": remainder,
    "arith.remui": lambda a, b: remainder(u(a), u(b)),
    "arith.floordivsi": lambda a, b: a // b if b else 0,
    "arith.ceildivsi": lambda a, b: -(-a // b) if b else 0,
    "arith.ceildivui": lambda a, b: -(-u(a) // u(b)) if b else 0,
    "arith.andi": lambda a, b: a & b,
    "arith.ori": lambda a, b: a | b,
    "arith.xori": lambda a, b: a ^ b,
    "arith.maxsi": max,
    "arith.minsi": min,
    "arith.maxui": lambda a, b: max(u(a), u(b)),
    "arith.minui": lambda a, b: min(u(a), u(b)),
    "tt.mulhiui": lambda a, b: u(a) * u(b) >> 32,
}


@pytest.mark.parametrize("opcode", INTEGER)
def test_integers_wrap_and_are_signed_where_the_op_says(opcode: str) -> None:
    pairs = [(a, b) for a in EDGES for b in EDGES if (a, b) != (-I32, -1) or "div" not in opcode]
    a, b = (np.array(column, np.int32) for column in zip(*pairs, strict=True))
    kind = tile("i32", len(pairs))
    found = run_op(opcode, [(a, kind), (b, kind)], [kind])
    assert found.tolist() == [wrap(INTEGER[opcode](x, y)) for x, y in pairs]
    scalar = run_op(opcode, [(np.int32(7), tile("i32")), (np.int32(-3), tile("i32"))], [tile("i32")])
    assert int(scalar) == wrap(INTEGER[opcode](7, -3))


@pytest.mark.parametrize("opcode", ["arith.shli", "arith.shrsi", "arith.shrui"])
def test_shifts(opcode: str) -> None:
    kind = tile("i32", len(EDGES))
    found = run_op(opcode, [(np.array(EDGES, np.int32), kind), (np.full(len(EDGES), 5, np.int32), kind)], [kind])
    reference: dict[str, Any] = {
        "arith.shli": lambda a: a << 5,
        "arith.shrsi": lambda a: a >> 5,
        "arith.shrui": lambda a: u(a) >> 5,
    }
    assert found.tolist() == [wrap(reference[opcode](a)) for a in EDGES]


@pytest.mark.parametrize("opcode", ["arith.mulsi_extended", "arith.mului_extended"])
@pytest.mark.parametrize("bits", [32, 64])
def test_extended_products_have_both_halves(opcode: str, bits: int) -> None:
    pairs = [(a, b) for a in EDGES for b in EDGES]
    dtype = np.dtype(f"i{bits // 8}")
    a, b = (np.array(column, dtype) for column in zip(*pairs, strict=True))
    kind = tile(f"i{bits}", len(pairs))
    low, high = run_op(opcode, [(a, kind), (b, kind)], [kind, kind])
    mask = (1 << bits) - 1
    signed = opcode == "arith.mulsi_extended"
    exact = [x * y if signed else (x & mask) * (y & mask) for x, y in pairs]
    assert low.tolist() == [wrap(value, bits) for value in exact]
    assert high.tolist() == [wrap(value >> bits, bits) for value in exact]


def test_an_addition_with_carry() -> None:
    kind = tile("i32", 2)
    a, b = np.array([-1, 5], np.int32), np.array([1, 6], np.int32)
    total, carry = run_op("arith.addui_extended", [(a, kind), (b, kind)], [kind, tile("i1", 2)])
    assert (total.tolist(), carry.tolist()) == ([0, 11], [True, False])


def test_flags_are_one_bit() -> None:
    kind = tile("i1", 4)
    a, b = np.array([0, 0, 1, 1], np.bool_), np.array([0, 1, 0, 1], np.bool_)
    expected = {"addi": a ^ b, "subi": a ^ b, "muli": a & b, "andi": a & b, "ori": a | b, "maxsi": a & b}
    for name, flags in expected.items():
        assert run_op(f"arith.{name}", [(a, kind), (b, kind)], [kind]).tolist() == flags.tolist(), name
    assert run_op("arith.extsi", [(a, kind)], [tile("i32", 4)]).tolist() == [0, 0, -1, -1]
    assert run_op("arith.extui", [(a, kind)], [tile("i32", 4)]).tolist() == [0, 0, 1, 1]
    assert run_op("arith.sitofp", [(a, kind)], [tile("f32", 4)]).tolist() == [0, 0, -1, -1]
    assert run_op("arith.uitofp", [(a, kind)], [tile("f32", 4)]).tolist() == [0, 0, 1, 1]
    odd = np.array([2, 3], np.int32)
    assert run_op("arith.trunci", [(odd, tile("i32", 2))], [tile("i1", 2)]).tolist() == [False, True]


def test_integer_conversions_and_bit_counts() -> None:
    i8, i32 = tile("i8", 3), tile("i32", 3)
    x = np.array([-1, 100, -128], np.int8)
    assert run_op("arith.extsi", [(x, i8)], [i32]).tolist() == [-1, 100, -128]
    assert run_op("arith.extui", [(x, i8)], [i32]).tolist() == [255, 100, 128]
    assert run_op("arith.uitofp", [(x, i8)], [tile("f32", 3)]).tolist() == [255, 100, 128]
    wide = np.array([257, -1, 128], np.int32)
    assert run_op("arith.trunci", [(wide, i32)], [i8]).tolist() == [1, -1, -128]
    assert run_op("arith.index_cast", [(wide, i32)], [tile("index", 3)]).dtype == np.int64
    counted = np.array([1, -1, 96], np.int32)
    assert run_op("math.ctlz", [(counted, i32)], [i32]).tolist() == [31, 0, 25]
    assert run_op("math.cttz", [(counted, i32)], [i32]).tolist() == [0, 0, 5]
    assert run_op("math.ctpop", [(counted, i32)], [i32]).tolist() == [1, 32, 2]
    assert run_op("math.absi", [(x, i8)], [i8]).tolist() == [1, 100, -128]


@pytest.mark.parametrize("predicate", range(10))
def test_integer_comparisons(predicate: int) -> None:
    names = ("==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">=")
    pairs = [(a, b) for a in EDGES for b in EDGES]
    a, b = (np.array(column, np.int32) for column in zip(*pairs, strict=True))
    kind = tile("i32", len(pairs))
    found = run_op("arith.cmpi", [(a, kind), (b, kind)], [tile("i1", len(pairs))], predicate=f"{predicate} : i64")
    read = u if predicate >= 6 else int
    assert found.tolist() == [eval(f"{read(x)} {names[predicate]} {read(y)}") for x, y in pairs]  # noqa: S307


@pytest.mark.parametrize("predicate", range(16))
def test_float_comparisons(predicate: int) -> None:
    # MLIR's order: false, oeq ogt oge olt ole one, ord, ueq ugt uge ult ule une, uno, true.
    values = [0.0, 1.0, -1.0, math.nan, math.inf]
    pairs = [(a, b) for a in values for b in values]
    a, b = (np.array(column, np.float32) for column in zip(*pairs, strict=True))
    kind = tile("f32", len(pairs))
    found = run_op("arith.cmpf", [(a, kind), (b, kind)], [tile("i1", len(pairs))], predicate=f"{predicate} : i64")

    def expected(x: float, y: float) -> bool:
        unordered = math.isnan(x) or math.isnan(y)
        tests = [x == y, x > y, x >= y, x < y, x <= y, x != y]
        if predicate in (0, 15):
            return predicate == 15
        if predicate in (7, 14):
            return unordered == (predicate == 14)
        if predicate < 7:
            return not unordered and tests[predicate - 1]
        return unordered or tests[predicate - 8]

    assert found.tolist() == [expected(x, y) for x, y in pairs]


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f8E4M3FN"])
@pytest.mark.parametrize("name", ["addf", "subf", "mulf", "divf"])
def test_float_arithmetic_is_the_exact_result_rounded_once(name: str, dtype: str) -> None:
    a, b = (rounded(RANDOM.standard_normal(400).astype(np.float32), dtype) for _ in range(2))
    b = np.where(b == 0, FORMATS[dtype].carrier.type(1), b)
    kind = tile(dtype, 400)
    found = run_op(f"arith.{name}", [(a, kind), (b, kind)], [kind])
    x, y = a.astype(np.float64), b.astype(np.float64)
    exact = {"addf": x + y, "subf": x - y, "mulf": x * y, "divf": x / y}[name]
    narrow = exact if dtype == "f16" else exact.astype(np.float32)
    assert np.array_equal(found, rounded(narrow, dtype))


def test_maximum_and_its_two_ways_with_nan() -> None:
    a, b = np.array([1, np.nan, 3], np.float32), np.array([2, 2, np.nan], np.float32)
    kind = tile("f32", 3)
    operands = [(a, kind), (b, kind)]
    assert run_op("arith.maxnumf", operands, [kind]).tolist() == [2, 2, 3]
    assert run_op("arith.minnumf", operands, [kind]).tolist() == [1, 2, 3]
    assert np.isnan(run_op("arith.maximumf", operands, [kind])).tolist() == [False, True, True]
    assert np.isnan(run_op("arith.minimumf", operands, [kind])).tolist() == [False, True, True]
    low, high = (np.full(3, bound, np.float32) for bound in (0, 2.5))
    clamp = [(a, kind), (low, kind), (high, kind)]
    assert run_op("tt.clampf", clamp, [kind], propagateNan="0 : i32").tolist() == [1, 0, 2.5]
    assert np.isnan(run_op("tt.clampf", clamp, [kind], propagateNan="65535 : i32")).tolist() == [False, True, False]


FUNCTIONS: dict[str, Any] = {
    "exp": math.exp, "exp2": lambda x: 2.0**x, "log": math.log, "log2": math.log2, "sqrt": math.sqrt,
    "rsqrt": lambda x: x**-0.5, "sin": math.sin, "cos": math.cos, "tanh": math.tanh, "erf": math.erf,
    "floor": math.floor, "ceil": math.ceil, "absf": abs, "log1p": math.log1p, "expm1": math.expm1, "tan": math.tan,
    "trunc": math.trunc, "roundeven": round, "round": lambda x: math.floor(x + 0.5), "erfc": math.erfc,
    "log10": math.log10, "cbrt": lambda x: x ** (1 / 3),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    x = RANDOM.uniform(0.1, 4, 50).astype(np.float32)
    kind = tile("f32", 50)
    found = run_op(f"math.{name}", [(x, kind)], [kind])
    expected = [FUNCTIONS[name](float(value)) for value in x]
    # numpy's f32 functions are within 4 units in the last place (numpy's own accuracy tests).
    assert found == pytest.approx(np.array(expected), rel=4 * 2**-23, abs=2**-24)
    assert run_op(f"math.{name}", [(np.float32(2.5), tile("f32"))], [tile("f32")]).dtype == np.float32


def test_functions_of_several_arguments() -> None:
    kind = tile("f32", 2)
    a, b, c = (np.array(values, np.float32) for values in ([1.5, -2], [2, 3], [1, 0.5]))
    assert run_op("math.fma", [(a, kind), (b, kind), (c, kind)], [kind]).tolist() == [4, -5.5]
    assert run_op("math.powf", [(b, kind), (b, kind)], [kind]).tolist() == [4, 27]
    assert run_op("math.copysign", [(b, kind), (a, kind)], [kind]).tolist() == [2, -3]
    assert run_op("tt.precise_divf", [(a, kind), (b, kind)], [kind])[1] == np.float32(-2) / np.float32(3)
    assert run_op("math.isnan", [(a, kind)], [tile("i1", 2)]).tolist() == [False, False]
    found = run_op("tt.extern_elementwise", [(b, kind), (b, kind)], [kind], symbol='"__nv_powf"')
    assert found.tolist() == [4, 27]
    with pytest.raises(UnsupportedError, match=r"^kernel\.py:7: tt\.extern_elementwise at op cannot be run"):
        run_op("tt.extern_elementwise", [(b, kind)], [kind], symbol='"__nv_unheard"')


def test_a_fused_product_is_rounded_once() -> None:
    a = np.float32(1 + 2**-12)
    scalar = tile("f32")
    found = run_op("math.fma", [(a, scalar), (a, scalar), (np.float32(-1), scalar)], [scalar])
    assert float(found) == 2**-11 + 2**-24


def test_conversions_of_floats() -> None:
    x = np.array([1 + 2**-11, -(1 + 2**-9), 70000.0, 0.1], np.float32)
    f32 = tile("f32", 4)
    half = run_op("arith.truncf", [(x, f32)], [tile("f16", 4)])
    assert half.dtype == np.float16
    assert half.tolist() == [1, -(1 + 2**-9), math.inf, float(np.float16(0.1))]
    assert run_op("arith.extf", [(half, tile("f16", 4))], [f32]).dtype == np.float32
    toward_zero = run_op("tt.fp_to_fp", [(x, f32)], [tile("bf16", 4)], rounding="0 : i32")
    assert toward_zero.tolist() == [1, -1, 69632, 0.099609375]
    nearest = run_op("tt.fp_to_fp", [(x, f32)], [tile("bf16", 4)], rounding="1 : i32")
    assert nearest.tolist() == [1, -1, 70144, 0.10009765625]
    assert run_op("tt.fp_to_fp", [(x, f32)], [tile("f8E5M2", 4)]).tolist() == [1, -1, 57344, 0.09375]


def test_bitcasts_keep_the_bits() -> None:
    x = np.array([1.0, -2.0], np.float32)
    bits = run_op("arith.bitcast", [(x, tile("bf16", 2))], [tile("i16", 2)])
    assert bits.tolist() == [0x3F80, 0xC000 - 0x10000]
    assert run_op("tt.bitcast", [(bits, tile("i16", 2))], [tile("bf16", 2)]).tolist() == [1, -2]
    assert run_op("tt.bitcast", [(bits, tile("i16", 2))], [tile("f16", 2)]).tolist()[1] == -2
    word = struct.unpack("<i", struct.pack("<f", 1.5))[0]
    assert int(run_op("arith.bitcast", [(np.float32(1.5), tile("f32"))], [tile("i32")])) == word
    with pytest.raises(UnsupportedError, match="f32 and i16 have different sizes"):
        run_op("tt.bitcast", [(x, tile("f32", 2))], [tile("i16", 2)])


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("3 : i32", tile("i32"), 3),
        ("-3 : i64", tile("i64"), -3),
        ("true", tile("i1"), True),
        ("1.500000e+00 : f16", tile("f16"), 1.5),
        ("0xFF800000 : f32", tile("f32"), -math.inf),
        ("dense<0x7F800000> : tensor<2xf32, #l>", tile("f32", 2), [math.inf, math.inf]),
        ("dense<0x7E00> : tensor<2xf16>", tile("f16", 2), [math.nan, math.nan]),
        ("dense<1.000000e-01> : tensor<2xbf16>", tile("bf16", 2), [0.10009765625] * 2),
        ("dense<[1, -2, 3]> : tensor<3xi32>", tile("i32", 3), [1, -2, 3]),
        ("dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>", tile("f32", 2, 2), [[1, 2], [3, 4]]),
        ('dense<"0x0100000002000000"> : tensor<2xi32>', tile("i32", 2), [1, 2]),
        ("dense<true> : tensor<2x1xi1>", tile("i1", 2, 1), [[True], [True]]),
    ],
)
def test_constants(text: str, kind: Any, expected: Any) -> None:
    found = run_op("arith.constant", [], [kind], value=text)
    assert found.dtype == FORMATS[kind.dtype].carrier
    assert np.array_equal(found, np.array(expected), equal_nan=kind.dtype.startswith(("f", "bf")))


def test_places_in_the_grid_and_ranges() -> None:
    assert [int(run_op("tt.get_program_id", [], [tile("i32")], axis=f"{axis} : i32")) for axis in range(3)] == [
        1,
        2,
        3,
    ]
    assert int(run_op("tt.get_num_programs", [], [tile("i32")], axis="2 : i32")) == 6
    found = run_op("tt.make_range", [], [tile("i32", 3)], start="4 : i32", end="7 : i32")
    assert found.tolist() == [4, 5, 6]


def test_ops_that_move_elements() -> None:
    x = np.arange(6, dtype=np.float32)
    f32 = tile("f32", 6)
    square = run_op("tt.reshape", [(x, f32)], [tile("f32", 2, 3)])
    assert square.tolist() == [[0, 1, 2], [3, 4, 5]]
    pair = (square, tile("f32", 2, 3))
    assert run_op("tt.trans", [pair], [tile("f32", 3, 2)], order="array<i32: 1, 0>").tolist() == square.T.tolist()
    assert run_op("tt.expand_dims", [(x, f32)], [tile("f32", 6, 1)], axis="1 : i32").shape == (6, 1)
    column = x.reshape(6, 1)
    assert run_op("tt.broadcast", [(column, tile("f32", 6, 1))], [tile("f32", 6, 2)])[3].tolist() == [3, 3]
    assert run_op("tt.splat", [(np.float16(2), tile("f16"))], [tile("f16", 2)]).tolist() == [2, 2]
    assert float(run_op("tt.unsplat", [(np.full((1, 1), 3.0, np.float32), tile("f32", 1, 1))], [tile("f32")])) == 3
    joined = run_op("tt.join", [(x, f32), (-x, f32)], [tile("f32", 6, 2)])
    left, right = run_op("tt.split", [(joined, tile("f32", 6, 2))], [f32, f32])
    assert (left.tolist(), right.tolist()) == (x.tolist(), (-x).tolist())
    assert run_op("tt.cat", [(x, f32), (x, f32)], [tile("f32", 12)]).shape == (12,)
    index = np.array([[2, 0, 0], [1, 1, 2]], np.int32)
    gathered = run_op("tt.gather", [pair, (index, tile("i32", 2, 3))], [tile("f32", 2, 3)], axis="1 : i32")
    assert gathered.tolist() == [[2, 0, 0], [4, 4, 5]]
    counted = run_op("tt.histogram", [(np.array([1, 1, 3, 9], np.int32), tile("i32", 4))], [tile("i32", 4)])
    assert counted.tolist() == [0, 2, 0, 1]
    packed = np.array([[0x21], [0x7F - 256 + 128]], np.int8)
    found = run_op("ttg.fp4_to_fp", [(packed, tile("i8", 2, 1))], [tile("f16", 2, 2)], axis="1 : i32")
    assert found[0].tolist() == [0.5, 1]
    chosen = run_op("arith.select", [(np.True_, tile("i1")), (x, f32), (-x, f32)], [f32])
    assert chosen.tolist() == x.tolist()
