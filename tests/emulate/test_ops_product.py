"""Matrix products, reductions, scans and control flow against plain definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from run_op import TOKEN, run_op, tile

from twillgpu.emulate.memory import MemDesc
from twillgpu.emulate.numbers import Array, format_of, rounded
from twillgpu.errors import UnsupportedError
from twillgpu.frontend.kernel import Kernel, KernelOp
from twillgpu.frontend.text import parse_kernel

RANDOM = np.random.default_rng(29)


def random(shape: tuple[int, ...], dtype: str) -> Array:
    return rounded(RANDOM.standard_normal(shape).astype(np.float32), dtype)


def in_memory(values: Array, dtype: str) -> MemDesc:
    made = MemDesc.new(values.shape, dtype)
    made.store(values)
    return made


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f8E4M3FN", "f8E5M2"])
@pytest.mark.parametrize("opcode", ["tt.dot", "ttng.warp_group_dot"])
def test_products_accumulate_in_f32(opcode: str, dtype: str) -> None:
    a, b, c = random((16, 64), dtype), random((64, 8), dtype), random((16, 8), "f32")
    kinds = tile(dtype, 16, 64), tile(dtype, 64, 8), tile("f32", 16, 8)
    operands: list[tuple[Any, Any]] = [(a, kinds[0]), (b, kinds[1]), (c, kinds[2])]
    if opcode == "ttng.warp_group_dot":
        operands[1] = (in_memory(b, dtype), tile(dtype, 64, 8, space="smem"))
    found = run_op(opcode, operands, [kinds[2]], inputPrecision="0 : i32")
    exact = a.astype(np.float64) @ b.astype(np.float64)
    # 65 additions in f32: at most 65 half units in the last place of the sum of magnitudes.
    bound = 65 * 2**-24 * (np.abs(a).astype(np.float64) @ np.abs(b) + np.abs(c))
    assert found.dtype == np.float32
    assert (np.abs(found - (exact + c)) <= bound).all()
    flag = run_op(opcode, [*operands, (np.False_, tile("i1"))], [kinds[2]], inputPrecision="0 : i32")
    assert (np.abs(flag - exact) <= bound).all()


def test_f32_products_are_cut_to_tf32_where_the_op_says() -> None:
    a, b, c = np.full((1, 1), 1 + 2**-12, np.float32), np.ones((1, 1), np.float32), np.zeros((1, 1), np.float32)
    kind = tile("f32", 1, 1)
    operands = [(a, kind), (b, kind), (c, kind)]
    for precision, expected in ((0, 1.0), (1, 1 + 2**-12), (2, 1 + 2**-12)):
        assert float(run_op("tt.dot", operands, [kind], inputPrecision=f"{precision} : i32")[0, 0]) == expected
    wide = [(value.astype(np.float64), tile("f64", 1, 1)) for value in (a, b, c)]
    assert float(run_op("tt.dot", wide, [tile("f64", 1, 1)], inputPrecision="0 : i32")[0, 0]) == 1 + 2**-12


def test_integer_and_batched_products() -> None:
    a = RANDOM.integers(-128, 128, (2, 4, 8)).astype(np.int8)
    b = RANDOM.integers(-128, 128, (2, 8, 3)).astype(np.int8)
    c = np.full((2, 4, 3), 2**31 - 1, np.int32)
    operands = [(a, tile("i8", 2, 4, 8)), (b, tile("i8", 2, 8, 3)), (c, tile("i32", 2, 4, 3))]
    found = run_op("tt.dot", operands, [tile("i32", 2, 4, 3)])
    exact = np.einsum("zmk,zkn->zmn", a.astype(np.int64), b.astype(np.int64)) + c
    assert np.array_equal(found, exact.astype(np.int32)), "wraps around"


@pytest.mark.parametrize("use", [False, True])
@pytest.mark.parametrize("predicate", [False, True])
def test_blackwell_products_write_tensor_memory_as_the_flags_say(*, use: bool, predicate: bool) -> None:
    a, b = random((4, 8), "f16"), random((8, 4), "f16")
    d = MemDesc.new((4, 4), "f32")
    if use:
        d.store(np.ones((4, 4)))
    flag = tile("i1")
    operands: list[tuple[Any, Any]] = [
        (in_memory(a, "f16"), tile("f16", 4, 8, space="tmem")),
        (in_memory(b, "f16"), tile("f16", 8, 4, space="smem")),
        (d, tile("f32", 4, 4, space="tmem")),
        (None, TOKEN),
        (np.bool_(use), flag),
        (np.bool_(predicate), flag),
    ]
    assert run_op("ttng.tc_gen5_mma", operands, [TOKEN]) is None
    if not predicate:
        assert np.isfinite(d.load()).all() == use, "untouched"
        return
    expected = a.astype(np.float64) @ b.astype(np.float64) + use
    assert d.load() == pytest.approx(expected, abs=1e-5)


def scaled(kind: str, shape: tuple[int, int]) -> Array:
    codes = RANDOM.integers(0, 120, shape).astype(np.uint8)
    return format_of(kind).decode(codes)


def test_microscaled_products() -> None:
    a, b = scaled("f8E4M3FN", (4, 64)), scaled("f8E5M2", (64, 2))
    a_scale = RANDOM.integers(120, 134, (4, 2)).astype(np.uint8)
    b_scale = RANDOM.integers(120, 134, (2, 2)).astype(np.uint8)
    left = a.astype(np.float64) * np.exp2(a_scale.astype(np.float64) - 127).repeat(32, axis=1)
    right = b.astype(np.float64) * np.exp2(b_scale.astype(np.float64) - 127).repeat(32, axis=1).T
    operands = [
        (a, tile("f8E4M3FN", 4, 64)),
        (b, tile("f8E5M2", 64, 2)),
        (np.zeros((4, 2), np.float32), tile("f32", 4, 2)),
        (a_scale.view(np.int8), tile("i8", 4, 2)),
        (b_scale.view(np.int8), tile("i8", 2, 2)),
    ]
    attributes: dict[str, Any] = {
        "a_elem_type": "0 : i32",
        "b_elem_type": "1 : i32",
        "operandSegmentSizes": "array<i32: 1, 1, 1, 1, 1>",
    }
    found = run_op("tt.dot_scaled", operands, [tile("f32", 4, 2)], **attributes)
    assert found == pytest.approx(left @ right, rel=1e-5)
    attributes["operandSegmentSizes"] = "array<i32: 1, 1, 1, 0, 1>"
    without = run_op("tt.dot_scaled", [*operands[:3], operands[4]], [tile("f32", 4, 2)], **attributes)
    assert without == pytest.approx(a.astype(np.float64) @ right, rel=1e-5)


def test_packed_4_bit_products_on_blackwell() -> None:
    codes = RANDOM.integers(0, 16, (4, 32)).astype(np.uint8)
    packed = (codes[:, ::2] | codes[:, 1::2] << 4).view(np.int8)
    values = format_of("f4E2M1FN").decode(codes).astype(np.float64)
    b_codes = RANDOM.integers(0, 16, (32, 4)).astype(np.uint8)
    b_packed = (b_codes[::2] | b_codes[1::2] << 4).view(np.int8)
    b_values = format_of("f4E2M1FN").decode(b_codes).astype(np.float64)
    one, d = np.full((4, 2), 127, np.int8), MemDesc.new((4, 4), "f32")
    scale = in_memory(one, "i8"), tile("i8", 4, 2, space="tmem")
    operands: list[tuple[Any, Any]] = [
        (in_memory(packed, "i8"), tile("i8", 4, 16, space="smem")),
        (in_memory(b_packed, "i8"), tile("i8", 16, 4, space="smem")),
        (d, tile("f32", 4, 4, space="tmem")),
        scale,
        scale,
        (np.False_, tile("i1")),
        (np.True_, tile("i1")),
    ]
    run_op("ttng.tc_gen5_mma_scaled", operands, [], a_type="4 : i32", b_type="4 : i32")
    assert d.load().tolist() == (values @ b_values).tolist()


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(
    ("opcode", "dtype", "function"),
    [
        ("arith.addf", "f32", np.sum),
        ("arith.addf", "f16", np.sum),
        ("arith.mulf", "f32", np.prod),
        ("arith.maxnumf", "f32", np.max),
        ("arith.minnumf", "bf16", np.min),
        ("arith.addi", "i32", np.sum),
        ("arith.maxsi", "i32", np.max),
        ("arith.xori", "i32", np.bitwise_xor.reduce),
        ("arith.maxui", "i32", None),
    ],
)
def test_reductions(opcode: str, dtype: str, function: Any, axis: int) -> None:
    shape = (7, 8)
    x = random(shape, dtype) if "f" in dtype else RANDOM.integers(-50, 50, shape).astype(np.int32)
    kind, result = tile(dtype, *shape), tile(dtype, shape[1 - axis])
    found = run_op("tt.reduce", [(x, kind)], [result], body=(opcode,), axis=f"{axis} : i32")
    if function is None:
        assert found.tolist() == x.view(np.uint32).max(axis).view(np.int32).tolist()
        return
    tolerance = 0 if dtype == "i32" else {"f32": 1e-5, "f16": 4e-3, "bf16": 0}[dtype]
    exact = function(x.astype(np.int64 if dtype == "i32" else np.float64), axis=axis)
    assert found.astype(np.float64) == pytest.approx(exact, rel=tolerance, abs=tolerance)


def op_in(text: str, name: str) -> KernelOp:
    head = 'kernel k\ntarget sm_80\nwarps 4\nfile ""\nargument n: scalar<i32>\nargument x: registers<6xf32>\n'
    head += "argument at: registers<6xi32>\nargument f: scalar<f32>\nargument yes: scalar<i1>\nbefore\n"
    kernel: Kernel = parse_kernel(head + text + "\nloop l: i: scalar<i32> in range(n, n, n)\nafter\n")
    return next(op for op in kernel.before if op.name == name)


ARGMAX = """  m = tt.reduce(x, at) {axis = 0 : i32} body [arith.cmpf, arith.select, arith.select]
  region(a: scalar<f32>, ia: scalar<i32>, b: scalar<f32>, ib: scalar<i32>) {
    more = arith.cmpf(a, b) {predicate = 3 : i64} -> scalar<i1>
    v = arith.select(more, a, b) -> scalar<f32>
    i = arith.select(more, ia, ib) -> scalar<i32>
  } yields(v, i) -> m: scalar<f32>, m_1: scalar<i32>"""

SCAN = """  s = tt.scan(x) {axis = 0 : i32, reverse = REVERSE} body [arith.mulf, arith.addf]
  region(a: scalar<f32>, b: scalar<f32>) {
    half = arith.mulf(a, a) -> scalar<f32>
    c = arith.addf(half, b) -> scalar<f32>
  } yields(c) -> registers<6xf32>"""


def test_a_reduction_with_a_function_of_several_ops() -> None:
    op = op_in(ARGMAX, "m")
    x = np.array([1, 5, 2, 5, -1, 0], np.float32)
    at = np.arange(6, dtype=np.int32)
    found = run_op(
        "tt.reduce",
        [(x, tile("f32", 6)), (at, tile("i32", 6))],
        [tile("f32"), tile("i32")],
        regions=op.regions,
        axis="0 : i32",
    )
    assert [float(value) for value in found] == [5, 1], "the first of equal ones"


@pytest.mark.parametrize("reverse", ["false", "true"])
def test_a_scan_runs_in_order(reverse: str) -> None:
    op = op_in(SCAN.replace("REVERSE", reverse), "s")
    x = np.array([1, 2, -1, 0.5, 3, 1], np.float32)
    kind = tile("f32", 6)
    found = run_op("tt.scan", [(x, kind)], [kind], regions=op.regions, axis="0 : i32", reverse=reverse)
    ordered = x[::-1] if reverse == "true" else x
    expected = [float(ordered[0])]
    for value in ordered[1:]:
        expected.append(float(np.float32(np.float32(expected[-1] ** 2) + value)))
    assert found.tolist() == (expected[::-1] if reverse == "true" else expected)
    running = run_op("tt.scan", [(x, kind)], [kind], body=("arith.addf",), axis="0 : i32", reverse=reverse)
    sums = np.cumsum(ordered)
    assert running.tolist() == (sums[::-1] if reverse == "true" else sums).tolist()


def test_a_function_that_is_not_recorded_is_declined() -> None:
    kind = tile("f32", 6)
    x = (np.ones(6, np.float32), kind)
    body = ("arith.mulf", "arith.addf")
    with pytest.raises(UnsupportedError, match="its combine function is not recorded"):
        run_op("tt.reduce", [x], [tile("f32")], body=body, axis="0 : i32")
    with pytest.raises(UnsupportedError, match=r"the body of scf\.for at op is not recorded"):
        run_op("scf.for", [x], [kind], body=body)


MAPPED = """  d = tt.map_elementwise(x, f) {pack = 2 : i32} body [arith.addf, arith.subf]
  region(a: scalar<f32>, b: scalar<f32>) reads(c: scalar<f32> = 1) {
    sum = arith.addf(a, c) -> scalar<f32>
    difference = arith.subf(a, b) -> scalar<f32>
  } yields(sum, difference) -> registers<6xf32>"""


def test_a_function_of_packed_elements() -> None:
    kind = tile("f32", 6)
    x = np.array([1, 5, 2, 5, -1, 0], np.float32)
    regions = op_in(MAPPED, "d").regions
    found = run_op(
        "tt.map_elementwise", [(x, kind), (np.float32(10), tile("f32"))], [kind], regions=regions, pack="2 : i32"
    )
    assert found.tolist() == [11, -4, 12, -3, 9, -1]


CONTROL = """  c0 = arith.constant() {value = 0 : i32} -> scalar<i32>
  c1 = arith.constant() {value = 1 : i32} -> scalar<i32>
  loop_sum = scf.for(c0, n, c1, f) body [scf.yield] region(i: scalar<i32>, sum: scalar<f32>)
  reads(f: scalar<f32> = 3) {
    next = arith.addf(sum, f) -> scalar<f32>
  } yields(next) -> scalar<f32>
  branch = scf.if(yes, f, loop_sum) body [scf.yield] region() reads(a: scalar<f32> = 1) {
  } yields(a) region() reads(b: scalar<f32> = 2) {
  } yields(b) -> scalar<f32>
  doubled = scf.while(f, loop_sum) body [scf.yield] region(s: scalar<f32>) reads(top: scalar<f32> = 1) {
    more = arith.cmpf(s, top) {predicate = 4 : i64} -> scalar<i1>
  } yields(more, s) region(t: scalar<f32>) {
    twice = arith.addf(t, t) -> scalar<f32>
  } yields(twice) -> scalar<f32>"""


def control(name: str, operands: list[tuple[Any, Any]]) -> float:
    op = op_in(CONTROL, name)
    return float(run_op(op.opcode, operands, [tile("f32")], regions=op.regions))


@pytest.mark.parametrize("trips", [0, 1, 5])
def test_control_flow_outside_of_the_loop(trips: int) -> None:
    f32, i32 = tile("f32"), tile("i32")
    bounds = [(np.int32(value), i32) for value in (0, trips, 1)]
    assert control("loop_sum", [*bounds, (np.float32(1.5), f32)]) == 1.5 * (trips + 1)
    for flag, expected in ((True, 1), (False, 2)):
        choice = [(np.bool_(flag), tile("i1")), (np.float32(1), f32), (np.float32(2), f32)]
        assert control("branch", choice) == expected
    assert control("doubled", [(np.float32(1), f32), (np.float32(2.0**trips), f32)]) == 2**trips


def test_a_product_and_a_sum_do_not_depend_on_how_arrays_lie_in_memory() -> None:
    a, b, c = random((64, 32), "f16"), random((32, 64), "f16"), np.zeros((64, 64), np.float32)
    kinds = tile("f16", 64, 32), tile("f16", 32, 64), tile("f32", 64, 64)
    found = [
        run_op("tt.dot", list(zip((left, right, c), kinds, strict=True)), [kinds[2]], inputPrecision="0 : i32")
        for left, right in ((a, b), (np.asfortranarray(a), np.asfortranarray(b)))
    ]
    assert np.array_equal(found[0], found[1])
    sums = [
        run_op("tt.reduce", [(values, kinds[2])], [tile("f32", 64)], body=("arith.addf",), axis="1 : i32")
        for values in (found[0], np.asfortranarray(found[0]))
    ]
    assert np.array_equal(sums[0], sums[1])
