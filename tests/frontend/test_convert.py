from __future__ import annotations

import pytest
from frontend_data import FILES, body_op, captured

from twillgpu.frontend.check import check_kernel
from twillgpu.frontend.kernel import TileType

HOPPER = ("attention_fwd_sm_90a_triton36.mlir", "attention_fwd_sm_90a_triton39.mlir")
BLACKWELL = ("attention_fwd_sm_100a_triton36.mlir", "attention_fwd_sm_100a_triton39.mlir")

HOPPER_BODY = {
    "k_addi": "arith.addi",
    "k": "tt.descriptor_load",
    "k_local_alloc": "ttg.local_alloc",
    "k_memdesc_trans": "ttg.memdesc_trans",
    "qk": "ttng.warp_group_dot",
    "m_ij_reduce": "tt.reduce",
    "m_ij_mulf": "arith.mulf",
    "m_ij": "arith.maxnumf",
    "p_mulf": "arith.mulf",
    "m_ij_expand_dims": "tt.expand_dims",
    "m_ij_broadcast": "tt.broadcast",
    "p_subf": "arith.subf",
    "p": "math.exp2",
    "alpha_subf": "arith.subf",
    "alpha": "math.exp2",
    "l_ij": "tt.reduce",
    "l_i_mulf": "arith.mulf",
    "l_i": "arith.addf",
    "alpha_expand_dims": "tt.expand_dims",
    "alpha_broadcast": "tt.broadcast",
    "acc_mulf": "arith.mulf",
    "v": "tt.descriptor_load",
    "v_local_alloc": "ttg.local_alloc",
    "p_truncf": "arith.truncf",
    "p_convert_layout": "ttg.convert_layout",
    "acc": "ttng.warp_group_dot",
}
"""The loop of the attention example: names by the user's variables, opcodes of Hopper."""


@pytest.mark.parametrize("name", HOPPER)
def test_attention_on_hopper_is_named_after_the_users_variables_with_both_triton_versions(name: str) -> None:
    kernel = captured(name)
    assert (kernel.name, kernel.target, kernel.num_warps) == ("attention_fwd", "sm_90a", 8)
    assert {op.name: op.opcode for op in kernel.loop.body} == HOPPER_BODY
    carried = [(c.argument.name, c.initial, c.yielded, c.result) for c in kernel.loop.carried]
    assert carried[:2] == [
        ("m_i_prev", "m_i", "m_ij", "m_i_final"),
        ("l_i_prev", "l_i_constant", "l_i", "l_i_final"),
    ]
    assert carried[2][0::2] == ("acc_prev", "acc")


@pytest.mark.parametrize("name", BLACKWELL)
def test_attention_on_blackwell_reads_and_writes_its_accumulators_in_tensor_memory(name: str) -> None:
    kernel = captured(name)
    assert kernel.target == "sm_100a"
    extra = {op.name: op.opcode for op in kernel.loop.body if op.name not in HOPPER_BODY}
    assert extra == {
        "qk_tmem_load": "ttng.tmem_load",
        "acc_tmem_load": "ttng.tmem_load",
        "p_tmem_alloc": "ttng.tmem_alloc",
        "acc_tmem_store": "ttng.tmem_store",
    }
    assert body_op(kernel, "qk").opcode == "ttng.tc_gen5_mma"
    tile, token = body_op(kernel, "qk_tmem_load").results
    assert (tile.type.space, tile.type.shape, tile.type.dtype) == ("registers", (256, 128), "f32")
    assert (token.name, token.type) == ("qk_tmem_load_token", TileType(space="token"))
    accumulator = next(op for op in kernel.before if op.name == "acc_tmem_alloc").results[0].type
    assert accumulator.mutable
    assert accumulator.layout == "#ttng.tensor_memory_encoding<blockM = 128, blockN = 128, colStride = 1>"


@pytest.mark.parametrize("name", [name for name in FILES if "triton36" in name and "rms_norm_rows" not in name])
def test_the_loops_of_both_triton_versions_have_the_same_operations_under_the_same_names(name: str) -> None:
    old, new = captured(name), captured(name.replace("triton36", "triton39"))
    assert [(op.name, op.opcode, op.attributes) for op in old.loop.body if op.opcode != "ttng.tmem_load"] == [
        (op.name, op.opcode, op.attributes) for op in new.loop.body if op.opcode != "ttng.tmem_load"
    ]


@pytest.mark.parametrize("name", FILES)
def test_every_operation_of_the_loop_points_at_a_line_of_the_users_file(name: str) -> None:
    kernel = captured(name)
    file = kernel.loop.source.split(":")[0]
    assert file.endswith(".py")
    assert all(op.source.startswith(f"{file}:") for op in kernel.loop.body)
    check_kernel(kernel, where=name)


def test_types_have_their_layout_aliases_expanded() -> None:
    kernel = captured(HOPPER[1])
    mma = "#ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [8, 1], instrShape = [16, 128, 16]}>"
    assert body_op(kernel, "qk").results[0].type == TileType(
        space="registers", shape=(128, 128), dtype="f32", layout=mma
    )
    assert body_op(kernel, "m_ij").results[0].type.layout == f"#ttg.slice<{{dim = 1, parent = {mma}}}>"
    shared = body_op(kernel, "k_local_alloc").results[0].type
    assert (shared.space, shared.dtype) == ("smem", "f16")
    assert "transposed = false" in shared.layout
    assert not shared.mutable


def test_descriptor_arguments_have_the_same_names_with_both_triton_versions() -> None:
    names, new = ([argument.name for argument in captured(name).arguments] for name in HOPPER)
    assert names == new
    assert names[:5] == ["q_desc", "q_desc.shape.0", "q_desc.shape.1", "q_desc.stride.0", "q_desc.stride.1"]


def test_reductions_list_the_operations_of_their_combine_function() -> None:
    kernel = captured(HOPPER[1])
    assert body_op(kernel, "m_ij_reduce").body == ("arith.maxnumf",)
    assert body_op(kernel, "l_ij").body == ("arith.addf",)


def test_the_trip_count_follows_from_known_arguments() -> None:
    assert captured(HOPPER[1]).loop.trip_count is None
    assert captured(HOPPER[1], arguments={"seq_len": 4096}).loop.trip_count == 32
    assert captured(HOPPER[1], arguments={"seq_len": 4097}).loop.trip_count == 33
    assert captured(HOPPER[1], arguments={"seq_len": 0}).loop.trip_count == 0


def test_the_loop_variable_is_read_from_the_source_where_triton_does_not_say() -> None:
    line = int(captured(HOPPER[0]).loop.source.split(":")[1])
    lines = ("",) * (line - 1) + ("    for start_n in tl.range(0, seq_len, BLOCK_N):",)
    assert captured(HOPPER[0]).loop.induction.name == "iteration"
    assert captured(HOPPER[0], source_lines=lines).loop.induction.name == "start_n"
    assert captured(HOPPER[1]).loop.induction.name == "start_n"
