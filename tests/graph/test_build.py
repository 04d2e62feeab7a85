"""Graphs of captured kernels: expected nodes, values and edges, with and without sub-tiles."""

from __future__ import annotations

from pathlib import Path

import pytest

from twillgpu.frontend.convert import ConvertOptions, convert
from twillgpu.frontend.generic import parse_generic
from twillgpu.frontend.kernel import Kernel
from twillgpu.frontend.subtile import subtile
from twillgpu.graph.body import body_of
from twillgpu.graph.build import build
from twillgpu.graph.kinds import ASYNCHRONOUS, idle_ops
from twillgpu.graph.record import DepGraph, Op
from twillgpu.graph.scratch import scratch_bytes

DATA = Path(__file__).parents[1] / "frontend" / "data"
TRITONS = ("triton36", "triton39")
TWO_LOOPS = "rms_norm_sm"
KERNELS = sorted(
    path.stem.rpartition("_")[0] for path in DATA.glob("*_triton39.mlir") if (DATA / path.name).is_file()
)


def captured(name: str, triton: str = "triton39") -> Kernel:
    path = DATA / f"{name}_{triton}.mlir"
    loop = 2 if name.startswith(TWO_LOOPS) else None
    return convert(parse_generic(path.read_text(), where=path.name), ConvertOptions(where=path.name, loop=loop))


def kinds(graph: DepGraph) -> list[str]:
    return [f"{op.name}: {op.kind}" for op in graph.ops]


def edges(graph: DepGraph) -> set[str]:
    """Return edges as text: ``*`` blocks, ``+1`` is the distance, other kinds than data are named."""
    return {
        f"{edge.tail} -> {edge.head}"
        + (f" +{edge.distance}" if edge.distance else "")
        + ("" if edge.kind == "data" else f" {edge.kind}")
        + ("*" if edge.blocking else "")
        for edge in graph.edges
    }


def op(graph: DepGraph, name: str) -> Op:
    return next(op for op in graph.ops if op.name == name)


def parts(*lines: str) -> set[str]:
    """Return each line for part 0 and part 1 of two sub-tiles."""
    return {line.replace("#", str(part)) for line in lines for part in (0, 1)}


def value(graph: DepGraph, name: str) -> tuple[str, int, int | None, str | None]:
    result = op(graph, name).result
    assert result is not None
    return result.space, result.bytes, result.registers_per_thread, result.alias


@pytest.mark.parametrize("triton", TRITONS)
def test_attention_forward_on_hopper_in_two_sub_tiles(triton: str) -> None:
    graph = build(subtile(captured("attention_fwd_sm_90a", triton)).kernel)
    assert set(kinds(graph)) == {"load_k: tma_load", "load_v: tma_load"} | parts(
        "qk_#: mma",
        "m_ij_#: reduce",
        "p_subf_#: elementwise",
        "p_#: exp",
        "alpha_#: exp",
        "l_i_#: reduce",
        "acc_mulf_#: elementwise",
        "p_truncf_#: convert",
        "acc_#: mma",
    )
    assert edges(graph) == parts(
        "load_k -> qk_#*",
        "qk_# -> m_ij_#*",
        "m_ij_# -> m_ij_# +1",
        "qk_# -> p_subf_#*",
        "m_ij_# -> p_subf_#",
        "p_subf_# -> p_#",
        "m_ij_# -> alpha_# +1",
        "m_ij_# -> alpha_#",
        "p_# -> l_i_#",
        "alpha_# -> l_i_#",
        "l_i_# -> l_i_# +1",
        "acc_# -> acc_mulf_# +1*",
        "alpha_# -> acc_mulf_#",
        "p_# -> p_truncf_#",
        "p_truncf_# -> acc_#",
        "load_v -> acc_#*",
        "acc_mulf_# -> acc_#",
    )
    assert value(graph, "load_k") == ("smem", 128 * 128 * 2, None, None)
    assert value(graph, "qk_0") == ("registers", 64 * 128 * 4, 64, None)
    assert value(graph, "p_truncf_1") == ("registers", 64 * 128 * 2, 32, None)
    assert value(graph, "acc_mulf_1") == value(graph, "acc_1") == ("registers", 64 * 128 * 4, 64, "acc_1")
    assert {op.warps for op in graph.ops if op.kind != "tma_load"} == {4}
    assert {op.name for op in graph.ops if op.variable_latency} == {"load_k", "load_v"}
    assert graph.fixed_bytes == (("smem", 128 * 128 * 2 + 1024),)
    assert graph.flop_per_iteration == 2 * 2 * 128 * 128 * 128
    assert graph.residents == ()


@pytest.mark.parametrize("triton", TRITONS)
def test_attention_forward_on_blackwell_in_two_sub_tiles(triton: str) -> None:
    graph = build(subtile(captured("attention_fwd_sm_100a", triton)).kernel)
    assert set(kinds(graph)) == {"load_k: tma_load", "load_v: tma_load"} | parts(
        "qk_#: mma",
        "qk_tmem_load_#: tmem_load",
        "m_ij_#: reduce",
        "p_subf_#: elementwise",
        "p_#: exp",
        "alpha_#: exp",
        "l_i_#: reduce",
        "acc_tmem_load_#: tmem_load",
        "acc_mulf_#: elementwise",
        "p_truncf_#: convert",
        "p_tmem_alloc_#: tmem_store",
        "acc_tmem_store_#: tmem_store",
        "acc_#: mma",
    )
    assert edges(graph) == parts(
        "load_k -> qk_#*",
        "qk_# -> qk_tmem_load_#*",
        "qk_tmem_load_# -> m_ij_#*",
        "m_ij_# -> m_ij_# +1",
        "qk_tmem_load_# -> p_subf_#*",
        "m_ij_# -> p_subf_#",
        "p_subf_# -> p_#",
        "m_ij_# -> alpha_# +1",
        "m_ij_# -> alpha_#",
        "p_# -> l_i_#",
        "alpha_# -> l_i_#",
        "l_i_# -> l_i_# +1",
        "acc_# -> acc_tmem_load_# +1*",
        "acc_tmem_load_# -> acc_mulf_#*",
        "alpha_# -> acc_mulf_#",
        "acc_mulf_# -> acc_tmem_store_#",
        "acc_tmem_store_# -> acc_#",
        "p_# -> p_truncf_#",
        "p_truncf_# -> p_tmem_alloc_#",
        "p_tmem_alloc_# -> acc_#",
        "load_v -> acc_#*",
    )
    assert value(graph, "qk_0") == ("tmem", 128 * 128 * 4, None, None)
    assert value(graph, "p_tmem_alloc_0") == ("tmem", 128 * 128 * 2, None, None)
    assert value(graph, "acc_0") == ("tmem", 128 * 128 * 4, None, "acc_0")
    assert value(graph, "acc_tmem_store_0") == value(graph, "acc_0")
    assert {op.kind for op in graph.ops if op.warps == 1} == {"tma_load", "mma"}
    assert {op.warps for op in graph.ops if op.kind not in ("tma_load", "mma")} == {4}
    assert graph.fixed_bytes == (("smem", 256 * 128 * 2 + 1024),)


@pytest.mark.parametrize("triton", TRITONS)
def test_the_whole_tile_keeps_its_warps(triton: str) -> None:
    graph = build(captured("attention_fwd_sm_90a", triton))
    assert len(graph.ops) == 11
    assert op(graph, "qk").warps == 8
    assert value(graph, "qk") == ("registers", 128 * 128 * 4, 64, None)


@pytest.mark.parametrize("triton", TRITONS)
def test_gemm_carries_its_accumulator_in_place(triton: str) -> None:
    hopper = build(subtile(captured("gemm_sm_90a", triton)).kernel)
    assert kinds(hopper) == ["load_a: tma_load", "load_b: tma_load", "acc_0: mma", "acc_1: mma"]
    assert edges(hopper) == parts("load_a -> acc_#*", "load_b -> acc_#*", "acc_# -> acc_# +1")
    assert value(hopper, "acc_0") == ("registers", 64 * 256 * 4, 128, "acc_0")
    blackwell = build(captured("gemm_sm_100a", triton))
    assert edges(blackwell) == {"load_a -> acc*", "load_b -> acc*", "acc -> acc +1"}
    assert value(blackwell, "acc") == ("tmem", 128 * 256 * 4, None, "acc")
    assert blackwell.fixed_bytes == (("smem", 1024),)


@pytest.mark.parametrize("triton", TRITONS)
def test_gemm_on_ampere_copies_asynchronously_and_reads_operands_from_smem(triton: str) -> None:
    graph = build(captured("gemm_pointers_sm_80", triton))
    assert kinds(graph) == ["load_a: async_copy", "load_b: async_copy", "acc: mma"]
    assert edges(graph) == {"load_a -> acc*", "load_b -> acc*", "acc -> acc +1"}
    assert [work.opcode for work in op(graph, "acc").work] == ["ttg.local_load", "ttg.local_load", "tt.dot"]
    assert op(graph, "load_a").work[0].opcode == "ttg.async_copy_global_to_local"
    assert op(graph, "load_a").warps == 8
    assert value(graph, "load_a") == ("smem", 128 * 32 * 2, None, None)


@pytest.mark.parametrize("triton", TRITONS)
def test_attention_backward_on_hopper_chains_the_product_over_keys(triton: str) -> None:
    graph = build(subtile(captured("attention_bwd_sm_90a", triton)).kernel)
    found = edges(graph)
    assert parts("dv_# -> dv_# +1", "dk_# -> dk_# +1", "p16_# -> dv_#", "ds16_# -> dk_#") <= found
    assert {"dq_0 -> dq_1", "dq_1 -> descriptor_reduce_staging*"} <= found
    assert value(graph, "dq_0") == value(graph, "dq_1") == ("registers", 64 * 128 * 4, 64, "dq_1")
    assert "descriptor_reduce_staging -> descriptor_reduce" in found
    assert [op.kind for op in graph.ops if op.name.startswith("descriptor_reduce")] == ["local_store", "tma_reduce"]
    assert value(graph, "descriptor_reduce_staging") == ("smem", 64 * 128 * 4, None, None)
    # Every thread of a warp group needs the log-sum-exp of 16 of the 64 queries: columns of S^T.
    assert value(graph, "load_lse") == ("registers", 256, 16, None)
    assert graph.flop_per_iteration == 5 * 2 * 64 * 128 * 128


@pytest.mark.parametrize("triton", TRITONS)
def test_attention_backward_on_blackwell(triton: str) -> None:
    whole = build(captured("attention_bwd_sm_100a", triton))
    assert {"dv -> dv +1", "dk -> dk +1", "dq -> dq_tmem_load*", "ds16 -> ds16_local_alloc"} <= edges(whole)
    assert value(whole, "dv") == ("tmem", 128 * 128 * 4, None, "dv")
    assert value(whole, "dq") == ("tmem", 128 * 512, None, None), "64 rows take 128 columns of 512 bytes"
    halves = build(subtile(captured("attention_bwd_sm_100a", triton), 64).kernel)
    assert {"ds16_local_alloc_0 -> dq_0", "ds16_local_alloc_1 -> dq_1", "dq_0 -> dq_1"} <= edges(halves)
    assert value(halves, "dq_0")[3] == value(halves, "dq_1")[3] == "dq_1"


@pytest.mark.parametrize("triton", TRITONS)
def test_a_kernel_without_tensor_core(triton: str) -> None:
    graph = build(captured("rms_norm_sm_90a", triton))
    assert [op.kind for op in graph.ops] == [
        "load", "load", "convert", "elementwise", "convert", "elementwise", "convert", "store",
    ]  # fmt: skip
    assert graph.flop_per_iteration == 0
    assert [(resident.name, resident.users) for resident in graph.residents] == [("scale", ("y_mulf",))]
    assert not [edge for edge in graph.edges if edge.kind == "memory"], "x is read and y is written"


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("rows", [0, None])
def test_every_op_of_the_body_has_one_place(name: str, rows: int | None) -> None:
    kernel = subtile(captured(name), rows).kernel
    graph = build(kernel)
    members = [member for op in graph.ops for member in op.members]
    body = {op.name for op in kernel.loop.body}
    assert len(members) == len(set(members))
    assert set(members) <= body
    assert body - set(members) <= idle_ops(body_of(kernel)), "what is no member does no work"


@pytest.mark.parametrize("name", KERNELS)
def test_graphs_are_deterministic_and_only_asynchronous_results_block(name: str) -> None:
    graph = build(captured(name))
    assert build(captured(name)) == graph
    assert len(graph.sha256) == 64
    asynchronous = {op.name for op in graph.ops if op.kind in ASYNCHRONOUS}
    assert {edge.tail for edge in graph.edges if edge.blocking} <= asynchronous
    assert all(op.work and op.cost is None for op in graph.ops)
    assert all(op.source for op in graph.ops)


def _tiles_outside(graph: DepGraph, kernel: Kernel) -> int:
    """Return the SMEM that tiles outside the loop take: without the scratch of layout changes, which differ."""
    members = {one.name: one for one in kernel.loop.body}
    nodes = ((node.kind, tuple(members[name] for name in node.members)) for node in graph.ops)
    return dict(graph.fixed_bytes)["smem"] - scratch_bytes(kernel, nodes)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("rows", [None, 64, 128])
def test_sub_tiles_do_the_same_work_and_share_the_loads(name: str, rows: int | None) -> None:
    whole, cut = build(captured(name)), build(subtile(captured(name), rows).kernel)
    assert cut.flop_per_iteration == whole.flop_per_iteration
    assert _tiles_outside(cut, subtile(captured(name), rows).kernel) == _tiles_outside(whole, captured(name))
    if name.endswith("sm_80"):
        return  # A load through pointers that feeds tt.dot is cut with its rows: no tile in SMEM to slice.
    for kind in ("tma_load", "async_copy", "load", "tma_reduce"):
        assert [op.name for op in cut.ops if op.kind == kind] == [op.name for op in whole.ops if op.kind == kind]
