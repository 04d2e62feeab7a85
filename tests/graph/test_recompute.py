"""Index tiles: computed by each reader, one small loop each."""

from __future__ import annotations

import pytest

from twillgpu.frontend.text import parse_kernel
from twillgpu.graph.build import build
from twillgpu.graph.record import DepGraph, Op

MMA = "#ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>"
TILE = "registers<64x64xf32, #mma>"
MASK = "registers<64x64xi1, #mma>"
INDICES = "registers<64xi32, #columns>"
TEXT = f"""kernel masked
target sm_90a
warps 4
file ""
layout #mma = "{MMA}"
layout #rows = "#ttg.slice<{{dim = 1, parent = {MMA}}}>"
layout #columns = "#ttg.slice<{{dim = 0, parent = {MMA}}}>"
argument f_ptr: global<ptr<f32>>
argument g_ptr: global<ptr<f32>>
argument i_ptr: global<ptr<i32>>
argument n: scalar<i32>
before
  zero = arith.constant() {{value = 0 : i32}} -> scalar<i32>
  one = arith.constant() {{value = 1 : i32}} -> scalar<i32>
  low = arith.constant() {{value = "dense<0.0> : tensor<64x64xf32, {MMA}>"}} -> {TILE}
  range = tt.make_range() {{end = 64 : i32, start = 0 : i32}} -> {INDICES}
  row_range = tt.make_range() {{end = 64 : i32, start = 0 : i32}} -> registers<64xi32, #rows>
  row_start = tt.splat(n) -> registers<64xi32, #rows>
  row_numbers = arith.addi(row_range, row_start) -> registers<64xi32, #rows>
  rows_2d = tt.expand_dims(row_numbers) {{axis = 1 : i32}} -> registers<64x1xi32, #mma>
  rows = tt.broadcast(rows_2d) -> registers<64x64xi32, #mma>
  f_tile = tt.splat(f_ptr) -> registers<64x64xptr<f32>, #mma>
  g_tile = tt.splat(g_ptr) -> registers<64x64xptr<f32>, #mma>
  i_tile = tt.splat(i_ptr) -> registers<64xptr<i32>, #columns>
loop l: k: scalar<i32> in range(zero, n, one) trips 7
  start = tt.splat(k) -> {INDICES}
  INDEX
  index_2d = tt.expand_dims(index) {{axis = 0 : i32}} -> registers<1x64xi32, #mma>
  columns = tt.broadcast(index_2d) -> registers<64x64xi32, #mma>
  x = tt.load(f_tile) -> {TILE}
  y = tt.load(g_tile) -> {TILE}
  BODY
after
"""
INDEX = f"index = arith.addi(start, range) -> {INDICES}"
TWO_MASKS = f"""x_mask = arith.cmpi(rows, columns) {{predicate = 5 : i64}} -> {MASK}
  x_masked = arith.select(x_mask, x, low) -> {TILE}
  y_mask = arith.cmpi(rows, columns) {{predicate = 2 : i64}} -> {MASK}
  y_masked = arith.select(y_mask, y, low) -> {TILE}
  f_store = tt.store(f_tile, x_masked)
  g_store = tt.store(g_tile, y_masked)"""


def graph_of(body: str, index: str = INDEX) -> DepGraph:
    return build(parse_kernel(TEXT.replace("INDEX", index).replace("BODY", body)))


def op(graph: DepGraph, name: str) -> Op:
    return next(op for op in graph.ops if op.name == name)


def names(graph: DepGraph) -> set[str]:
    return {op.name for op in graph.ops}


def test_both_parts_of_a_causal_mask_compute_the_columns() -> None:
    graph = graph_of(TWO_MASKS)
    assert names(graph) == {"load_x", "load_y", "x_masked", "y_masked", "f_store", "g_store"}
    assert op(graph, "x_masked").members == ("index", "x_mask", "x_masked")
    assert op(graph, "y_masked").members == ("index", "y_mask", "y_masked")
    assert [work.opcode for work in op(graph, "y_masked").work] == ["arith.addi", "arith.cmpi", "arith.select"]
    data = {(edge.tail, edge.head) for edge in graph.edges if edge.kind == "data"}
    assert data == {("load_x", "x_masked"), ("load_y", "y_masked"), ("x_masked", "f_store"), ("y_masked", "g_store")}
    assert [(tile.name, tile.users) for tile in graph.residents] == [("row_numbers", ("x_masked", "y_masked"))]


def test_an_index_tile_made_from_another_goes_where_that_one_went() -> None:
    body = TWO_MASKS.replace("arith.cmpi(rows, columns) {predicate = 2", "arith.cmpi(rows, shifted) {predicate = 2")
    shifted = f"""later = arith.addi(index, start) -> {INDICES}
  later_2d = tt.expand_dims(later) {{axis = 0 : i32}} -> registers<1x64xi32, #mma>
  shifted = tt.broadcast(later_2d) -> registers<64x64xi32, #mma>
  """
    graph = graph_of(shifted + body)
    assert op(graph, "x_masked").members == ("index", "x_mask", "x_masked")
    assert op(graph, "y_masked").members == ("index", "later", "y_mask", "y_masked")
    assert not names(graph) & {"index", "later"}


def test_a_load_takes_the_indices_of_its_addresses_for_nothing() -> None:
    load = f"""there = tt.addptr(i_tile, index) -> registers<64xptr<i32>, #columns>
  z = tt.load(there) -> {INDICES}
  z_store = tt.store(i_tile, z)
  """
    graph = graph_of(load + TWO_MASKS)
    assert [work.opcode for work in op(graph, "load_z").work] == ["tt.load"]
    assert "index" not in names(graph)


def test_a_store_of_the_tile_itself_keeps_the_node() -> None:
    graph = graph_of(f"i_store = tt.store(i_tile, index)\n  {TWO_MASKS}")
    assert {edge.head for edge in graph.edges if edge.tail == "index"} == {"i_store"}
    assert op(graph, "x_masked").members[0] == "index"


def test_the_mask_of_a_whole_tile_is_computed_once() -> None:
    body = TWO_MASKS.replace("arith.select(y_mask,", "arith.select(x_mask,")
    graph = graph_of(body)
    assert op(graph, "x_mask").members == ("index", "x_mask")
    assert {edge.head for edge in graph.edges if edge.tail == "x_mask"} == {"x_masked", "y_masked"}


@pytest.mark.parametrize(
    "index",
    [
        f"index = arith.remsi(start, range) -> {INDICES}",
        f"seen = tt.load(i_tile) -> {INDICES}\n  index = arith.addi(seen, range) -> {INDICES}",
    ],
)
def test_what_is_dear_or_read_from_memory_is_handed_over(index: str) -> None:
    graph = graph_of(TWO_MASKS, index)
    assert len({edge.head for edge in graph.edges if edge.tail == "index"}) == 2
    assert sum("index" in one.members for one in graph.ops) == 1
