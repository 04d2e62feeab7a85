"""The rules of graph building, one small loop each."""

from __future__ import annotations

import pytest

from twillgpu.errors import UnsupportedError
from twillgpu.frontend.kernel import Kernel
from twillgpu.frontend.text import parse_kernel
from twillgpu.graph.build import build
from twillgpu.graph.record import DepGraph, Op

MMA = "#ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>"
BLOCKED = "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>"
TEXT = f"""kernel small
target sm_90a
warps 4
file ""
layout #mma = "{MMA}"
layout #rows = "#ttg.slice<{{dim = 1, parent = {MMA}}}>"
layout #columns = "#ttg.slice<{{dim = 0, parent = {MMA}}}>"
layout #blocked = "{BLOCKED}"
layout #shared = "#ttg.nvmma_shared<{{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}}>"
layout #tmem = "#ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>"
argument x_desc: descriptor<64x64xf16, #shared>
argument y_desc: descriptor<64x64xf16, #shared>
argument f_ptr: global<ptr<f32>>
argument g_ptr: global<ptr<f32>>
argument scale: scalar<f32>
argument n: scalar<i32>
before
  zero = arith.constant() {{value = 0 : i32}} -> scalar<i32>
  one = arith.constant() {{value = 1 : i32}} -> scalar<i32>
  no = arith.constant() {{value = false}} -> scalar<i1>
  yes = arith.constant() {{value = true}} -> scalar<i1>
  start = arith.constant() {{value = "dense<0.0> : tensor<64x64xf32, {MMA}>"}} -> registers<64x64xf32, #mma>
  few = arith.constant() {{value = "dense<0.0> : tensor<64xf32>"}} -> registers<64xf32, #rows>
  f_tile = tt.splat(f_ptr) -> registers<64x64xptr<f32>, #mma>
  g_tile = tt.splat(g_ptr) -> registers<64x64xptr<f32>, #mma>
  step = arith.constant() {{value = "dense<64> : tensor<64x64xi32, {MMA}>"}} -> registers<64x64xi32, #mma>
  scales = tt.splat(scale) -> registers<64x64xf32, #mma>
  q = tt.descriptor_load(x_desc, zero, zero) -> registers<64x64xf16, #blocked>
  q_smem = ttg.local_alloc(q) -> smem<64x64xf16, #shared>
  s_tmem = ttng.tmem_alloc() -> s_tmem: tmem<128x64xf32, #tmem, mutable>, s_token: token
  wide = tt.descriptor_load(x_desc, zero, zero) -> registers<128x64xf16, #blocked>
  wide_smem = ttg.local_alloc(wide) -> smem<128x64xf16, #shared>
  BEFORE
loop l: k: scalar<i32> in range(zero, n, one) trips 7
  CARRIED
  BODY
after
  AFTER
"""
TILE = "registers<64x64xf32, #mma>"
ROW = "registers<64xf32, #rows>"
LOADS = f"""x = tt.descriptor_load(x_desc, k, zero) -> registers<64x64xf16, #blocked>
  x_smem = ttg.local_alloc(x) -> smem<64x64xf16, #shared>
  qk = ttng.warp_group_dot(q_smem, x_smem, start) -> {TILE}
  """


def small(body: str, *, carried: str = "", before: str = "", after: str = "") -> Kernel:
    text = TEXT.replace("BEFORE", before).replace("CARRIED", carried).replace("BODY", body).replace("AFTER", after)
    return parse_kernel(text)


def graph_of(body: str, *, carried: str = "", before: str = "", after: str = "") -> DepGraph:
    return build(small(body, carried=carried, before=before, after=after))


def op(graph: DepGraph, name: str) -> Op:
    return next(op for op in graph.ops if op.name == name)


def names(graph: DepGraph) -> list[str]:
    return [op.name for op in graph.ops]


def edges(graph: DepGraph, kind: str = "data") -> set[tuple[str, str, int]]:
    return {(edge.tail, edge.head, edge.distance) for edge in graph.edges if edge.kind == kind}


def test_a_multiplication_with_one_reader_is_folded_into_the_addition() -> None:
    graph = graph_of(LOADS + f"m = arith.mulf(qk, scales) -> {TILE}\n  y = arith.subf(m, qk) -> {TILE}")
    assert names(graph) == ["load_x", "qk", "y"]
    assert [(work.opcode, work.fused) for work in op(graph, "y").work] == [
        ("arith.mulf", True),
        ("arith.subf", False),
    ]
    assert op(graph, "y").members == ("m", "y")


def test_a_multiplication_with_two_readers_stays() -> None:
    body = f"m = arith.mulf(qk, scales) -> {TILE}\n  y = arith.subf(m, qk) -> {TILE}\n  z = math.exp2(m) -> {TILE}"
    graph = graph_of(LOADS + body)
    assert names(graph) == ["load_x", "qk", "m", "y", "z"]
    assert not any(work.fused for work in op(graph, "y").work)


def test_an_addition_takes_in_one_multiplication_only() -> None:
    body = f"""m1 = arith.mulf(qk, scales) -> {TILE}
  m2 = arith.mulf(qk, scales) -> {TILE}
  y = arith.addf(m1, m2) -> {TILE}"""
    graph = graph_of(LOADS + body)
    assert sum(work.fused for one in graph.ops for work in one.work) == 1


def test_elementwise_chains_are_one_node_where_nothing_new_is_waited_for() -> None:
    body = f"a = arith.maxnumf(qk, scales) -> {TILE}\n  b = arith.divf(a, qk) -> {TILE}"
    graph = graph_of(LOADS + body)
    assert op(graph, "b").members == ("a", "b")


def test_a_node_does_not_come_to_wait_for_another_tensor_core_op() -> None:
    """dS = P (dP - delta): the subtraction must not wait for P, nor P's exponential for dP."""
    body = f"""p = math.exp2(qk) -> {TILE}
  dp = ttng.warp_group_dot(x_smem, x_smem, start) -> {TILE}
  d = arith.subf(dp, scales) -> {TILE}
  ds = arith.mulf(p, d) -> {TILE}"""
    assert names(graph_of(LOADS + body)) == ["load_x", "qk", "p", "dp", "d", "ds"]


def test_different_units_stay_apart_on_whole_tiles_and_not_on_a_few_elements() -> None:
    body = f"""a = arith.maxnumf(qk, scales) -> {TILE}
  b = math.exp2(a) -> {TILE}
  r = tt.reduce(qk) {{axis = 1 : i32}} body [arith.maxnumf] -> {ROW}
  s = arith.maxnumf(r, few) -> {ROW}
  t = math.exp2(s) -> {ROW}"""
    graph = graph_of(LOADS + body)
    assert names(graph) == ["load_x", "qk", "a", "b", "t"]
    assert op(graph, "t").kind == "reduce"
    assert op(graph, "t").members == ("r", "s", "t")


CARRIED_SUM = f"carried total_prev: {ROW} = few yields total result total_final"


def test_a_carried_sum_takes_in_its_reduction_behind_a_tensor_core_op() -> None:
    body = f"""r = tt.reduce(qk) {{axis = 1 : i32}} body [arith.addf] -> {ROW}
  total = arith.addf(total_prev, r) -> {ROW}"""
    graph = graph_of(LOADS + body, carried=CARRIED_SUM)
    assert names(graph) == ["load_x", "qk", "total"]
    assert edges(graph) >= {("total", "total", 1)}


def test_a_carried_sum_is_not_slowed_down_where_iterations_are_short() -> None:
    body = f"""x = tt.load(f_tile) -> {TILE}
  r = tt.reduce(x) {{axis = 1 : i32}} body [arith.addf] -> {ROW}
  total = arith.addf(total_prev, r) -> {ROW}"""
    graph = graph_of(body, carried=CARRIED_SUM)
    assert names(graph) == ["load_x", "r", "total"]
    assert edges(graph) == {("load_x", "r", 0), ("r", "total", 0), ("total", "total", 1)}


def test_address_arithmetic_is_no_node_and_carried_pointers_are_no_dependence() -> None:
    body = f"""x = tt.load(pointers) -> {TILE}
  y = math.exp2(x) -> {TILE}
  tt_store = tt.store(g_tile, y)
  next = tt.addptr(pointers, step) -> registers<64x64xptr<f32>, #mma>"""
    carried = "carried pointers: registers<64x64xptr<f32>, #mma> = f_tile yields next result last"
    graph = graph_of(body, carried=carried)
    assert names(graph) == ["load_x", "y", "tt_store"]
    assert edges(graph) == {("load_x", "y", 0), ("y", "tt_store", 0)}
    assert graph.residents == ()


def test_integers_that_are_data_do_work() -> None:
    body = f"""spread = tt.splat(k) -> registers<64x64xi32, #mma>
  offsets = arith.addi(spread, step) -> registers<64x64xi32, #mma>
  mask = arith.cmpi(offsets, step) -> registers<64x64xi1, #mma>
  y = arith.select(mask, qk, start) -> {TILE}
  z = math.exp2(y) -> {TILE}"""
    graph = graph_of(LOADS + body)
    assert names(graph) == ["load_x", "qk", "y", "z"]
    assert op(graph, "y").members == ("offsets", "mask", "y"), "index arithmetic is done where it is needed"


def test_an_address_read_from_memory_is_a_dependence_of_the_load() -> None:
    body = """page_ptr = tt.addptr(f_ptr, k) -> global<ptr<f32>>
  page = tt.load(page_ptr) -> scalar<i32>
  row = arith.muli(page, n) -> scalar<i32>
  x = tt.descriptor_load(x_desc, row, zero) -> registers<64x64xf16, #blocked>
  x_smem = ttg.local_alloc(x) -> smem<64x64xf16, #shared>"""
    graph = graph_of(body)
    assert names(graph) == ["load_page", "load_x"]
    assert edges(graph) == {("load_page", "load_x", 0)}
    assert op(graph, "load_page").kind == "load"


def test_a_tma_load_read_in_registers_is_followed_by_a_local_load() -> None:
    body = """x = tt.descriptor_load(x_desc, k, zero) -> registers<64x64xf16, #blocked>
  y = arith.extf(x) -> registers<64x64xf32, #blocked>"""
    graph = graph_of(body)
    assert [(op.name, op.kind) for op in graph.ops] == [
        ("load_x", "tma_load"),
        ("x_local_load", "local_load"),
        ("y", "convert"),
    ]
    assert edges(graph) == {("load_x", "x_local_load", 0), ("x_local_load", "y", 0)}
    result = op(graph, "load_x").result
    assert result is not None
    assert (result.space, result.bytes) == ("smem", 64 * 64 * 2)


def test_a_load_that_only_goes_to_smem_is_an_asynchronous_copy() -> None:
    body = f"""x = tt.load(f_tile) -> {TILE}
  x_blocked = ttg.convert_layout(x) -> registers<64x64xf32, #blocked>
  x_smem = ttg.local_alloc(x_blocked) -> smem<64x64xf32, #shared>
  y = ttng.warp_group_dot(x_smem, x_smem, start) -> {TILE}"""
    graph = graph_of(body)
    assert [(op.name, op.kind) for op in graph.ops] == [("load_x", "async_copy"), ("y", "mma")]
    assert op(graph, "load_x").variable_latency
    assert op(graph, "load_x").members == ("x", "x_blocked", "x_smem")


def test_a_load_with_another_use_goes_through_registers() -> None:
    body = f"""x = tt.load(f_tile) -> {TILE}
  x_smem = ttg.local_alloc(x) -> smem<64x64xf32, #shared>
  y = math.exp2(x) -> {TILE}"""
    graph = graph_of(body)
    assert [(op.name, op.kind) for op in graph.ops] == [("load_x", "load"), ("x_smem", "local_store"), ("y", "exp")]
    assert not op(graph, "load_x").variable_latency


def test_a_tma_store_has_a_staging_buffer_of_its_own_and_no_change_of_layout() -> None:
    body = """p = arith.truncf(qk) -> registers<64x64xf16, #mma>
  p_blocked = ttg.convert_layout(p) -> registers<64x64xf16, #blocked>
  out = tt.descriptor_store(y_desc, p_blocked, k, zero)"""
    graph = graph_of(LOADS + body)
    assert names(graph) == ["load_x", "qk", "p", "out_staging", "out"]
    assert edges(graph) >= {("p", "out_staging", 0), ("out_staging", "out", 0)}
    assert op(graph, "out_staging").work[0].operands[0].layout == MMA
    assert (op(graph, "out").kind, op(graph, "out").warps, op(graph, "out").result) == ("tma_store", 1, None)


def test_a_change_of_layout_between_threads_is_a_node() -> None:
    body = f"""p = ttg.convert_layout(qk) -> registers<64x64xf32, #blocked>
  y = math.exp2(p) -> registers<64x64xf32, #blocked>
  same = ttg.convert_layout(qk) -> {TILE}
  z = math.exp2(same) -> {TILE}"""
    graph = graph_of(LOADS + body)
    assert [(op.name, op.kind) for op in graph.ops][2:] == [("p", "layout"), ("y", "exp"), ("z", "exp")]


def test_an_unknown_opcode_is_kept_for_pricing_to_refuse() -> None:
    graph = graph_of(LOADS + f"y = tt.histogram(qk) -> {TILE}\n  z = math.exp2(y) -> {TILE}")
    assert op(graph, "y").kind == "op"
    assert op(graph, "y").work[0].opcode == "tt.histogram"
    assert ("y", "z", 0) in edges(graph)


def store_and_load(store_base: str, load_base: str) -> DepGraph:
    return graph_of(
        f"""x = tt.load({load_base}) -> {TILE}
  y = math.exp2(x) -> {TILE}
  out = tt.store({store_base}, y)"""
    )


def test_a_store_and_a_load_through_one_pointer_may_touch_the_same_address() -> None:
    graph = store_and_load("f_tile", "f_tile")
    assert edges(graph, "memory") == {("load_x", "out", 0), ("out", "load_x", 1)}


def test_different_arguments_do_not_overlap() -> None:
    assert edges(store_and_load("g_tile", "f_tile"), "memory") == set()


def test_reductions_into_one_tensor_commute() -> None:
    body = """p = arith.truncf(qk) -> registers<64x64xf16, #mma>
  r1 = tt.descriptor_reduce(y_desc, p, k, zero)
  r2 = tt.descriptor_reduce(y_desc, p, zero, k)
  w = tt.descriptor_store(y_desc, p, k, k)"""
    graph = graph_of(LOADS + body)
    assert edges(graph, "memory") == {("r1", "w", 0), ("w", "r1", 1), ("r2", "w", 0), ("w", "r2", 1)}


def test_what_is_made_before_the_loop_is_resident_unless_it_is_a_constant_or_a_scalar() -> None:
    before = f"""bias = tt.load(f_tile) -> {TILE}
  row_ptr = tt.splat(g_ptr) -> registers<64xptr<f32>, #columns>
  weight = tt.load(row_ptr) -> registers<64xf32, #columns>
  weight_row = tt.expand_dims(weight) {{axis = 0 : i32}} -> registers<1x64xf32, #mma>
  weights = tt.broadcast(weight_row) -> {TILE}"""
    body = f"""a = arith.addf(qk, bias) -> {TILE}
  b = arith.mulf(a, weights) -> {TILE}
  c = arith.mulf(b, scales) -> {TILE}
  d = math.exp2(c) -> {TILE}"""
    graph = graph_of(LOADS + body, before=before)
    found = {resident.name: (resident.registers_per_thread, resident.users) for resident in graph.residents}
    assert found == {"bias": (32, ("c",)), "weight": (16, ("c",))}, "each thread holds 16 of the 64 columns"


def test_smem_from_before_the_loop_is_fixed_while_it_is_used() -> None:
    assert graph_of(LOADS).fixed_bytes == (("smem", 64 * 64 * 2 + 1024),), "q is read, wide_smem is not"
    before = "held = ttng.tmem_alloc(q) -> tmem<64x64xf16, #tmem>"
    body = f"y = ttng.tmem_load(held) -> {TILE}"
    assert graph_of(body, before=before).fixed_bytes == (("smem", 1024), ("tmem", 32 * 512))


def test_the_trip_count_is_kept() -> None:
    assert graph_of(LOADS).trip_count == 7


BLACKWELL = """x = tt.descriptor_load(x_desc, k, zero) -> registers<64x64xf16, #blocked>
  x_smem = ttg.local_alloc(x) -> smem<64x64xf16, #shared>
  s = ttng.tc_gen5_mma(wide_smem, x_smem, s_tmem, token, FLAG, yes) -> s: token
  y = ttng.tmem_load(s_tmem, s) -> y: registers<128x64xf32>, y_token: token
  z = math.exp2(y) -> registers<128x64xf32>"""
CARRIED_LOAD = "carried token: token = s_token yields y_token result last"


def test_a_buffer_written_anew_is_no_storage_in_place() -> None:
    graph = graph_of(BLACKWELL.replace("FLAG", "no"), carried=CARRIED_LOAD)
    assert edges(graph) == {("load_x", "s", 0), ("s", "y", 0), ("y", "z", 0)}
    assert edges(graph, "anti") == set()
    result = op(graph, "s").result
    assert result is not None
    assert (result.space, result.bytes, result.alias) == ("tmem", 64 * 512, None)


def test_an_accumulator_that_is_read_in_every_iteration_must_be_read_before_the_next_update() -> None:
    graph = graph_of(BLACKWELL.replace("FLAG", "yes"), carried=CARRIED_LOAD)
    assert ("s", "s", 1) in edges(graph)
    assert edges(graph, "anti") == {("y", "s", 1)}
    result = op(graph, "s").result
    assert result is not None
    assert result.alias == "s"
    assert [edge.blocking for edge in graph.edges if edge.tail == edge.head] == [False]
    assert [edge.blocking for edge in graph.edges if (edge.tail, edge.head) == ("s", "y")] == [True]


def test_a_store_that_rewrites_an_accumulator_waits_for_a_reader_that_nothing_else_orders() -> None:
    """The tile is loaded for two uses; the store follows from one of them, the MMA updates what was stored."""
    body = """old = ttng.tmem_load(s_tmem, token) -> old: registers<128x64xf32>, t0: token
  again = ttng.tmem_load(s_tmem, t0) -> again: registers<128x64xf32>, t1: token
  new = math.exp2(old) -> registers<128x64xf32>
  put = ttng.tmem_store(s_tmem, t1, new, yes) -> put: token
  s = ttng.tc_gen5_mma(wide_smem, q_smem, s_tmem, put, yes, yes) -> s: token"""
    graph = graph_of(body, carried="carried token: token = s_token yields s result last")
    assert edges(graph) == {("s", "old", 1), ("s", "again", 1), ("old", "new", 0), ("new", "put", 0), ("put", "s", 0)}
    assert edges(graph, "anti") == {("again", "put", 0)}
    assert {op(graph, name).result.alias for name in ("put", "s")} == {"s"}  # type: ignore[union-attr]


ACCUMULATE = f"acc = ttng.warp_group_dot(q_smem, x_smem, acc_prev) -> {TILE}"
CARRIED_ACC = f"carried acc_prev: {TILE} = start yields acc result acc_final"


def test_a_register_accumulator_that_is_read_in_every_iteration() -> None:
    body = LOADS + ACCUMULATE + f"\n  y = math.exp2(acc) -> {TILE}"
    graph = graph_of(body, carried=CARRIED_ACC)
    assert ("acc", "acc", 1) in edges(graph)
    assert edges(graph, "anti") == {("y", "acc", 1)}


def test_a_register_accumulator_read_later_than_its_update_is_a_new_value_each_time() -> None:
    carried = CARRIED_ACC + f"\n  carried older: {TILE} = start yields acc_prev result older_final"
    body = LOADS + ACCUMULATE + f"\n  y = math.exp2(older) -> {TILE}"
    graph = graph_of(body, carried=carried)
    assert ("acc", "y", 2) in edges(graph)
    assert edges(graph, "anti") == set()
    result = op(graph, "acc").result
    assert result is not None
    assert result.alias is None


def test_rescaling_in_place_needs_that_nothing_else_reads_the_rescaled_tile() -> None:
    scaled = f"r = arith.mulf(acc_prev, scales) -> {TILE}\n  acc = ttng.warp_group_dot(q_smem, x_smem, r) -> {TILE}"
    graph = graph_of(LOADS + scaled, carried=CARRIED_ACC)
    assert [op(graph, name).result.alias for name in ("r", "acc")] == ["acc", "acc"]  # type: ignore[union-attr]
    graph = graph_of(LOADS + scaled + f"\n  y = math.exp2(r) -> {TILE}", carried=CARRIED_ACC)
    assert [op(graph, name).result.alias for name in ("r", "acc")] == [None, None]  # type: ignore[union-attr]


def test_a_buffer_in_smem_that_is_read_before_it_is_overwritten() -> None:
    """acc += S; copy(A[k], S): S is read in the next iteration; how many copies it has is the search's choice."""
    before = "ring = ttg.local_alloc() -> smem<64x64xf32, #shared, mutable>"
    body = f"""s = ttg.local_load(ring) -> {TILE}
  y = math.exp2(s) -> {TILE}
  x = tt.load(f_tile) -> {TILE}
  e = math.exp2(x) -> {TILE}
  put = ttg.local_store(e, ring)"""
    graph = graph_of(body, before=before)
    assert edges(graph) == {("put", "s", 1), ("s", "y", 0), ("load_x", "e", 0), ("e", "put", 0)}
    assert edges(graph, "anti") == set()
    assert dict(graph.fixed_bytes) == {"smem": 1024}


def test_a_write_of_a_part_updates_the_whole() -> None:
    before = "ring = ttg.local_alloc() -> smem<64x64xf32, #shared, mutable>"
    body = f"""piece = ttg.memdesc_subslice(ring) {{offsets = "[0, 0]"}} -> smem<32x64xf32, #shared, mutable>
  x = tt.load(f_tile) -> {TILE}
  e = math.exp2(x) -> {TILE}
  put = ttg.local_store(e, piece)
  s = ttg.local_load(ring) -> {TILE}"""
    graph = graph_of(body, before=before)
    assert {("put", "s", 0), ("put", "put", 1)} <= edges(graph)
    assert edges(graph, "anti") == {("s", "put", 1)}


@pytest.mark.parametrize("flag", ["yes", "no"])
def test_flop_count_every_product(flag: str) -> None:
    graph = graph_of(BLACKWELL.replace("FLAG", flag), carried=CARRIED_LOAD)
    assert graph.flop_per_iteration == 2 * 128 * 64 * 64


def test_an_accumulator_whose_old_value_is_read_after_its_update_is_copied() -> None:
    body = LOADS + ACCUMULATE + f"\n  d = arith.divf(acc, acc_prev) -> {TILE}\n  y = math.exp2(d) -> {TILE}"
    graph = graph_of(body, carried=CARRIED_ACC)
    assert {("acc", "d", 0), ("acc", "d", 1)} <= edges(graph)
    assert edges(graph, "anti") == set(), "it would have to come before what it follows from"
    assert op(graph, "acc").result.alias is None  # type: ignore[union-attr]


def test_an_op_takes_over_the_storage_of_one_operand_only() -> None:
    body = f"""e = math.exp2(qk) -> {TILE}
  factor = arith.maxnumf(e, scales) -> {TILE}
  other = ttng.warp_group_dot(x_smem, x_smem, start) -> {TILE}
  r = arith.divf(other, acc_prev) -> {TILE}
  acc = ttng.warp_group_dot(q_smem, x_smem, r) -> {TILE}
  f = math.exp2(factor) -> {TILE}"""
    graph = graph_of(LOADS + body, carried=CARRIED_ACC)
    aliases = {op.name: op.result.alias for op in graph.ops if op.result is not None and op.result.alias is not None}
    assert aliases == {"r": "acc", "acc": "acc"}


def test_a_value_that_outlives_the_iteration_through_a_view_is_not_fused_away() -> None:
    body = f"""r = tt.reduce(qk) {{axis = 1 : i32}} body [arith.maxnumf] -> {ROW}
  y = math.exp2(r) -> {ROW}
  z = tt.store(rows_ptr, y)
  column = tt.expand_dims(r) {{axis = 1 : i32}} -> registers<64x1xf32, #mma>"""
    before = """rows_ptr = tt.splat(g_ptr) -> registers<64xptr<f32>, #rows>
  first = tt.expand_dims(few) {axis = 1 : i32} -> registers<64x1xf32, #mma>"""
    carried = "carried last: registers<64x1xf32, #mma> = first yields column result last_final"
    assert names(graph_of(LOADS + body, before=before, carried=carried)) == ["load_x", "qk", "r", "y", "z"]
    assert names(graph_of(LOADS + body, before=before)) == ["load_x", "qk", "y", "z"]


def test_a_value_and_its_predecessor_in_one_view_are_two_dependences() -> None:
    body = f"""r = tt.reduce(qk) {{axis = 1 : i32}} body [arith.maxnumf] -> {ROW}
  both = tt.join(r, r_prev) -> registers<64x2xf32, #mma>
  y = math.exp2(both) -> registers<64x2xf32, #mma>"""
    graph = graph_of(LOADS + body, carried=f"carried r_prev: {ROW} = few yields r result r_final")
    assert {("r", "y", 0), ("r", "y", 1)} <= edges(graph)


def test_a_loop_without_work_is_declined() -> None:
    with pytest.raises(UnsupportedError) as caught:
        graph_of("m = arith.addi(k, one) -> scalar<i32>")
    assert str(caught.value) == "loop l: the loop does nothing that could be scheduled; choose another loop (--loop)"
