"""Sub-tiling: what is cut and what is shared, the inverse map, what is refused, and that results stay the same."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from frontend_data import FILES, body_op, captured
from kernel_run import Array, Machine

from twillgpu.errors import UnsupportedError
from twillgpu.frontend.check import all_ops, check_kernel
from twillgpu.frontend.kernel import Kernel
from twillgpu.frontend.subtile import subtile
from twillgpu.frontend.subtile_layout import Cut, cut_layout
from twillgpu.frontend.text import parse_kernel, print_kernel

RANDOM = np.random.default_rng(3)
SCALE = np.float32(0.1)
KEYS, DEPTH = 256, 128


def halves(size: int) -> Array:
    return RANDOM.standard_normal((size, DEPTH)).astype(np.float16)


def run(kernel: Kernel, memory: dict[str, Any], programs: int = 1) -> None:
    for program in range(programs):
        Machine(kernel, memory, (program, 0)).run()


def forward() -> tuple[dict[str, Any], tuple[Array, ...]]:
    """Return memory for one program of attention forward, and the tensors that it writes."""
    q, k, v, o = halves(256), halves(KEYS), halves(KEYS), np.zeros((256, DEPTH), np.float16)
    lse = np.zeros(256, np.float32)
    memory: dict[str, Any] = {"q_desc": q, "k_desc": k, "v_desc": v, "o_desc": o, "lse_ptr": lse}
    flat = {"q_ptr": q, "k_ptr": k, "v_ptr": v, "o_ptr": o}
    memory |= {name: tensor.reshape(-1) for name, tensor in flat.items()}
    return memory | {"sm_scale": SCALE, "seq_len": np.int32(KEYS)}, (o, lse)


def test_the_interpreter_agrees_with_attention() -> None:
    kernel = captured("attention_fwd_sm_100a_triton39.mlir")
    memory, (o, _) = forward()
    run(kernel, memory)
    q, k, v = (memory[name].astype(np.float64) for name in ("q_desc", "k_desc", "v_desc"))
    scores = q @ k.T * float(SCALE)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    assert np.abs(o - weights / weights.sum(1, keepdims=True) @ v).max() < 1e-3


@pytest.mark.parametrize("rows", [64, 128])
@pytest.mark.parametrize("name", [name for name in FILES if name.startswith("attention_fwd")])
def test_attention_forward_computes_the_same(name: str, rows: int) -> None:
    kernel = captured(name)
    memory, written = forward()
    run(kernel, memory)
    expected = [tensor.copy() for tensor in written]
    for tensor in written:
        tensor[:] = 0
    run(subtile(kernel, rows).kernel, memory)
    for tensor, before in zip(written, expected, strict=True):
        assert np.array_equal(tensor, before)


@pytest.mark.parametrize("name", [name for name in FILES if name.startswith("attention_bwd")])
def test_attention_backward_computes_the_same(name: str) -> None:
    kernel = captured(name)
    memory: dict[str, Any] = {f"{tensor}_desc": halves(KEYS) for tensor in ("q", "k", "v", "do")}
    memory |= {"lse_ptr": np.full(KEYS, 9, np.float32), "delta_ptr": RANDOM.standard_normal(KEYS).astype(np.float32)}
    memory |= {"sm_scale": SCALE, "seq_len": np.int32(KEYS)}
    found = []
    for tiling in (subtile(kernel, 0), subtile(kernel, 64)):
        written = {"dq_desc": np.zeros((KEYS, DEPTH), np.float32)}
        written |= {name: np.zeros((KEYS, DEPTH), np.float16) for name in ("dk_desc", "dv_desc")}
        run(tiling.kernel, memory | written, programs=2)
        found.append(written)
    assert subtile(kernel, 64).parts == 2
    whole, cut = found
    assert np.array_equal(whole["dk_desc"], cut["dk_desc"])
    assert np.array_equal(whole["dv_desc"], cut["dv_desc"])
    # The sum over keys is taken in another order.
    assert np.allclose(whole["dq_desc"], cut["dq_desc"], atol=1e-3, rtol=1e-4)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("rows", [None, 0, 64, 128])
def test_the_result_is_well_formed_and_its_inverse_map_total(name: str, rows: int | None) -> None:
    kernel = captured(name)
    tiling = subtile(kernel, rows)
    check_kernel(tiling.kernel)
    assert parse_kernel(print_kernel(tiling.kernel)) == tiling.kernel
    assert [new for new, _, _ in tiling.origins] == [op.name for op in all_ops(tiling.kernel)]
    captured_ops = {op.name for op in all_ops(kernel)}
    assert {origin for _, origin, _ in tiling.origins} <= captured_ops
    for op in all_ops(tiling.kernel):
        if op.subtile is not None:
            assert tiling.origin(op.name) == (op.subtile.origin, op.subtile.index)
    of_body = Counter(tiling.origin(op.name)[0] for op in tiling.kernel.loop.body if op.opcode != "arith.constant")
    assert of_body.keys() == {op.name for op in kernel.loop.body}, "no op of the loop is lost"
    assert set(of_body.values()) <= {1, tiling.parts, 1 + tiling.parts}


@pytest.mark.parametrize("name", FILES)
def test_no_rows_leave_the_kernel_as_it_is(name: str) -> None:
    kernel = captured(name)
    tiling = subtile(kernel, 0)
    assert tiling.kernel is kernel
    assert (tiling.rows, tiling.parts, tiling.captured_warps, tiling.remarks) == (0, 1, kernel.num_warps, ())


@pytest.mark.parametrize(
    ("name", "parts", "rows"),
    [
        ("attention_fwd_sm_90a_triton39.mlir", 2, 64),
        ("attention_fwd_sm_100a_triton39.mlir", 2, 128),
        ("attention_bwd_sm_90a_triton39.mlir", 2, 64),
        ("attention_bwd_sm_100a_triton39.mlir", 1, 0),
        ("gemm_sm_90a_triton39.mlir", 2, 64),
        ("gemm_sm_100a_triton39.mlir", 1, 0),
        ("gemm_pointers_sm_80_triton39.mlir", 1, 0),
        ("rms_norm_sm_90a_triton39.mlir", 1, 0),
    ],
)
def test_the_default_is_the_rows_of_the_tensor_core(name: str, parts: int, rows: int) -> None:
    tiling = subtile(captured(name))
    assert (tiling.parts, tiling.rows) == (parts, rows)
    if parts > 1:
        assert (tiling.captured_warps, tiling.kernel.num_warps) == (8, 4)


def test_loads_without_the_dimension_are_shared_and_the_query_tile_is_sliced() -> None:
    tiling = subtile(captured("attention_fwd_sm_90a_triton39.mlir"))
    names = Counter(op.opcode for op in tiling.kernel.loop.body)
    assert names["tt.descriptor_load"] == 2
    assert names["ttng.warp_group_dot"] == 4
    before = {op.name: op for op in tiling.kernel.before}
    assert before["q"].results[0].type.shape == (128, 128)
    second = before["q_local_alloc_1"]
    assert (second.opcode, second.operands) == ("ttg.memdesc_subslice", ("q_local_alloc",))
    assert second.attribute("offsets") == "array<i32: 64, 0>"
    assert second.results[0].type.shape == (64, 128)
    qk = body_op(tiling.kernel, "qk_1")
    assert qk.operands[:2] == ("q_local_alloc_1", "k_memdesc_trans")
    assert tiling.origin("qk_1") == ("qk", 1)
    assert tiling.origin("k") == ("k", None)


def test_layouts_of_parts_are_those_of_fewer_warps() -> None:
    tiling = subtile(captured("attention_fwd_sm_90a_triton39.mlir"))
    acc = body_op(tiling.kernel, "acc_0").results[0].type
    assert acc.shape == (64, 128)
    assert "warpsPerCTA = [4, 1], instrShape = [16, 128, 16]" in acc.layout
    probabilities = body_op(tiling.kernel, "p_convert_layout_0").results[0].type
    assert probabilities.layout.startswith("#ttg.dot_op<{opIdx = 0")
    assert "warpsPerCTA = [4, 1]" in probabilities.layout
    blackwell = subtile(captured("attention_fwd_sm_100a_triton39.mlir"))
    scores = body_op(blackwell.kernel, "qk_tmem_load_1").results[0].type
    assert "warp = [[32, 0], [64, 0]]" in scores.layout
    assert blackwell.remarks == ()


def test_a_layout_that_is_not_known_is_kept_and_said() -> None:
    tiling = subtile(captured("attention_fwd_sm_100a_triton39.mlir"), 64)
    assert tiling.parts == 4
    assert all(remark.startswith("layout of a sub-tile not known") for remark in tiling.remarks)
    assert tiling.kernel.remarks[-len(tiling.remarks) :] == tiling.remarks


def test_a_product_over_the_dimension_is_a_chain_on_one_accumulator() -> None:
    hopper = subtile(captured("attention_bwd_sm_90a_triton39.mlir")).kernel
    first, second = (body_op(hopper, f"dq_{part}") for part in (0, 1))
    assert second.operands[2] == first.results[0].name
    assert second.results[0].name == "dq"
    assert first.subtile is not None
    assert first.subtile.dimension == 2
    blackwell = subtile(captured("attention_bwd_sm_100a_triton39.mlir"), 64).kernel
    first, second = (body_op(blackwell, f"dq_{part}") for part in (0, 1))
    assert first.operands[2] == second.operands[2], "one tile of tensor memory"
    assert second.operands[3] == first.results[0].name
    flags = {op.name: op.attribute("value") for op in all_ops(blackwell) if op.opcode == "arith.constant"}
    assert (flags[first.operands[4]], flags[second.operands[4]]) == ("false", "true")


def test_stores_of_parts_have_shifted_coordinates() -> None:
    kernel = subtile(captured("attention_fwd_sm_90a_triton39.mlir")).kernel
    after = {op.name: op for op in kernel.after}
    assert after["descriptor_store_0"].operands[2] == "q_addi"
    shift = after[after["descriptor_store_1"].operands[2]]
    assert (shift.opcode, shift.operands[0]) == ("arith.addi", "q_addi")
    assert after[shift.operands[1]].attribute("value") == "64 : i32"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (-64, "no sub-tiles of -64 rows: four warps work on multiples of 64 rows; choose others, or --subtile none"),
        (32, "no sub-tiles of 32 rows: four warps work on multiples of 64 rows; choose others, or --subtile none"),
        (
            192,
            "no sub-tiles of 192 rows: the tile has 256 rows, which is not a multiple; choose others, or --subtile",
        ),
    ],
)
def test_rows_that_do_not_fit_are_refused_at_the_product(rows: int, message: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        subtile(captured("attention_fwd_sm_100a_triton39.mlir"), rows)
    assert str(caught.value).startswith(f"attention_fwd.py:42: {message}")


def test_a_loop_without_product_is_left_with_a_remark() -> None:
    kernel = captured("rms_norm_rows_sm_90a_triton39.mlir")
    tiling = subtile(kernel, 64)
    assert tiling.parts == 1
    assert tiling.remarks == ("not cut into sub-tiles: the loop has no matrix product whose rows could be cut",)
    assert tiling.kernel == replace(kernel, remarks=(*kernel.remarks, *tiling.remarks))


MMA = "#ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [8, 1], instrShape = [16, 64, 16]}>"
BLOCKED = "#ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [8, 1], order = [1, 0]}>"
SMALL = f"""kernel small
target sm_90a
warps 8
file ""
layout #mma = "{MMA}"
layout #rows = "#ttg.slice<{{dim = 1, parent = {MMA}}}>"
layout #columns = "#ttg.slice<{{dim = 0, parent = {MMA}}}>"
layout #blocked = "{BLOCKED}"
layout #shared = "#ttg.nvmma_shared<{{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}}>"
argument a_desc: descriptor<128x64xf16, #shared>
argument b_desc: descriptor<64x64xf16, #shared>
argument r_desc: descriptor<128x64xf32, #shared>
argument n: scalar<i32>
before
  zero = arith.constant() {{value = 0 : i32}} -> scalar<i32>
  step = arith.constant() {{value = 64 : i32}} -> scalar<i32>
  start = arith.constant() {{value = "dense<0.0> : tensor<128x64xf32, {MMA}>"}} -> registers<128x64xf32, #mma>
  EXTRA_BEFORE
loop l: k: scalar<i32> in range(zero, n, step)
  carried acc_prev: registers<128x64xf32, #mma> = start yields acc result acc_final
  a = tt.descriptor_load(a_desc, zero, k) -> registers<128x64xf16, #blocked>
  a_smem = ttg.local_alloc(a) -> smem<128x64xf16, #shared>
  b = tt.descriptor_load(b_desc, k, zero) -> registers<64x64xf16, #blocked>
  b_smem = ttg.local_alloc(b) -> smem<64x64xf16, #shared>
  acc = ttng.warp_group_dot(a_smem, b_smem, acc_prev) -> registers<128x64xf32, #mma> @ small.py:7
  EXTRA_BODY
after
  EXTRA_AFTER
"""


def small(before: str = "", body: str = "", after: str = "") -> Kernel:
    text = SMALL.replace("EXTRA_BEFORE", before).replace("EXTRA_BODY", body).replace("EXTRA_AFTER", after)
    return parse_kernel(text)


def test_a_warpgroup_that_gets_all_columns_of_a_tile_multiplies_them_with_one_instruction() -> None:
    # Two warpgroups had 64 columns each; one alone has 128, so that operand A is read once.
    text = MMA.replace("[8, 1]", "[4, 2]")
    cut = cut_layout(text, Cut(axis=None, size=64, warps=4))
    assert cut is not None
    assert "warpsPerCTA = [4, 1], instrShape = [16, 128, 16]" in cut


def test_a_reduction_over_the_rows_is_an_obstacle_with_its_line() -> None:
    body = "s = tt.reduce(acc) {axis = 0 : i32} body [arith.addf] -> registers<64xf32, #columns> @ small.py:8"
    kernel = small(body=body)
    with pytest.raises(UnsupportedError) as caught:
        subtile(kernel, 64)
    assert str(caught.value) == (
        "small.py:7: no sub-tiles of 64 rows: tt.reduce at s (small.py:8) reduces over it; "
        "choose others, or --subtile none"
    )
    tiling = subtile(kernel)
    assert tiling.parts == 1
    assert tiling.remarks == ("not cut into sub-tiles of 64 rows: tt.reduce at s (small.py:8) reduces over it",)


def test_an_op_that_cannot_be_cut_is_an_obstacle() -> None:
    kernel = small(body="s = tt.reshape(acc) -> registers<64x128xf32, #blocked>")
    with pytest.raises(UnsupportedError, match=r"tt.reshape at s cannot be cut"):
        subtile(kernel, 64)


def test_a_tile_that_has_the_dimension_twice_cannot_be_cut() -> None:
    body = """p = arith.truncf(acc) -> registers<128x64xf16, #mma>
  p_smem = ttg.local_alloc(p) -> smem<128x64xf16, #shared>
  p_trans = ttg.memdesc_trans(p_smem) {order = "array<i32: 1, 0>"} -> smem<64x128xf16, #shared>
  square = ttng.warp_group_dot(p_smem, p_trans, wide) -> registers<128x128xf32, #mma>"""
    before = f"""wide = arith.constant() {{value = "dense<0.0> : tensor<128x128xf32, {MMA}>"}}
    -> registers<128x128xf32, #mma>"""
    with pytest.raises(UnsupportedError, match=r"square has it twice, as rows and as columns"):
        subtile(small(before=before, body=body), 64)


def test_a_load_into_registers_is_cut_with_its_coordinates() -> None:
    body = """r = tt.descriptor_load(r_desc, zero, k) -> registers<128x64xf32, #blocked>
  r_mma = ttg.convert_layout(r) -> registers<128x64xf32, #mma>
  sum = arith.addf(acc, r_mma) -> registers<128x64xf32, #mma>"""
    kernel = subtile(small(body=body)).kernel
    first, second = body_op(kernel, "r_0"), body_op(kernel, "r_1")
    assert first.operands == ("r_desc", "zero", "k")
    assert first.results[0].type.shape == (64, 64)
    assert body_op(kernel, second.operands[1]).operands == ("zero", "r_constant")
    assert "warpsPerCTA = [4, 1]" in first.results[0].type.layout


def test_an_index_tile_is_made_in_every_shape_that_is_needed() -> None:
    before = """range = tt.make_range() {end = 128 : i32, start = 0 : i32} -> registers<128xi32, #rows>
  kept = arith.sitofp(range) -> registers<128xf32, #rows>
  unrelated = tt.reduce(kept) {axis = 0 : i32} body [arith.addf] -> scalar<f32>"""
    body = """column = tt.expand_dims(kept) {axis = 1 : i32} -> registers<128x1xf32, #mma>
  wide = tt.broadcast(column) -> registers<128x64xf32, #mma>
  sum = arith.addf(acc, wide) -> registers<128x64xf32, #mma>"""
    kernel = subtile(small(before=before, body=body)).kernel
    made = {op.name: op for op in kernel.before}
    assert made["range"].results[0].type.shape == (128,), "the reduction needs it whole"
    assert [made[f"range_{part}"].attribute("start") for part in (0, 1)] == ["0 : i32", "64 : i32"]
    assert [made[f"range_{part}"].attribute("end") for part in (0, 1)] == ["64 : i32", "128 : i32"]
    assert "unrelated" in made


def test_names_of_parts_avoid_names_in_use() -> None:
    before = "acc_1 = arith.addi(n, n) -> scalar<i32>"
    tile = "registers<128x64xf32, #mma>"
    body = f"sum = arith.addf(acc, acc) -> {tile}\n  sum_1 = math.exp2(sum) -> {tile}"
    kernel = subtile(small(before=before, body=body)).kernel
    names = {op.name for op in kernel.loop.body}
    assert {"acc_part_0", "acc_part_1"} <= names, "acc_1 is still there"
    assert {"sum_0", "sum_1", "sum_1_0", "sum_1_1"} <= names, "the captured sum_1 is not"


def test_a_constant_tile_with_different_elements_is_refused() -> None:
    before = f"""odd = arith.constant() {{value = "dense<[[1.0, 2.0]]> : tensor<128x64xf32, {MMA}>"}}
    -> registers<128x64xf32, #mma>"""
    kernel = small(before=before, body="sum = arith.addf(acc, odd) -> registers<128x64xf32, #mma>")
    with pytest.raises(UnsupportedError, match="a constant tile with different elements cannot be cut"):
        subtile(kernel, 64)
