"""Attention backward in a single pass: one block of keys against all queries, five matrix products an iteration.

    twillgpu schedule examples/attention_bwd.py --machine h100
    twillgpu schedule examples/attention_bwd.py --machine b200 --const BLOCK_M=128

With P = exp2(Q K^T qk_scale - lse) and delta = rowsum(O dO), transposed so that keys are the rows of every tile:

    S^T = K Q^T,   dP^T = V dO^T,   dS^T = P^T (dP^T - delta),
    dV += P^T dO,  dK += dS^T Q,    dQ += dS K   (added to global memory: all key blocks share it)

Tensors are ``[batch, heads, seq_len, HEAD_DIM]``, contiguous; ``seq_len`` is a multiple of both block sizes. ``lse`` is
the base-2 log-sum-exp that ``attention_fwd.py`` writes.
"""

import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

import twillgpu


@triton.jit
def attention_bwd(
    q_desc, k_desc, v_desc, do_desc, dq_desc, dk_desc, dv_desc, lse_ptr, delta_ptr, sm_scale, seq_len,
    HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Gradients of BLOCK_N keys and values, and their share of dQ; descriptors are over flattened rows."""
    first_row = tl.program_id(1) * seq_len
    first_key = first_row + tl.program_id(0) * BLOCK_N
    k = k_desc.load([first_key, 0])
    v = v_desc.load([first_key, 0])
    qk_scale = sm_scale * 1.4426950408889634
    dk = tl.zeros([BLOCK_N, HEAD_DIM], tl.float32)
    dv = tl.zeros([BLOCK_N, HEAD_DIM], tl.float32)
    for start_m in tl.range(0, seq_len, BLOCK_M):
        row = first_row + start_m
        rows = row + tl.arange(0, BLOCK_M)
        q = q_desc.load([row, 0])
        lse = tl.load(lse_ptr + rows)
        qk = tl.dot(k, q.T)
        p = tl.math.exp2(qk * qk_scale - lse[None, :])
        p16 = p.to(q.dtype)
        do = do_desc.load([row, 0])
        dv = tl.dot(p16, do, dv)
        delta = tl.load(delta_ptr + rows)
        dp = tl.dot(v, do.T)
        ds = p * (dp - delta[None, :])
        ds16 = ds.to(q.dtype)
        dk = tl.dot(ds16, q, dk)
        dq = tl.dot(ds16.T, k)
        dq_desc.atomic_add([row, 0], dq)
    dk_desc.store([first_key, 0], (dk * sm_scale).to(dk_desc.dtype))
    dv_desc.store([first_key, 0], dv.to(dv_desc.dtype))


@triton.jit
def row_dots(o_ptr, do_ptr, delta_ptr, HEAD_DIM: tl.constexpr, BLOCK: tl.constexpr):
    """delta = rowsum(O dO) of BLOCK rows."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tile = rows[:, None] * HEAD_DIM + tl.arange(0, HEAD_DIM)[None, :]
    o = tl.load(o_ptr + tile).to(tl.float32)
    do = tl.load(do_ptr + tile).to(tl.float32)
    tl.store(delta_ptr + rows, tl.sum(o * do, 1))


@triton.jit
def finish_dq(dq32_ptr, dq_ptr, sm_scale, HEAD_DIM: tl.constexpr, BLOCK: tl.constexpr):
    """Scale the accumulated dQ and round it, BLOCK rows."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tile = rows[:, None] * HEAD_DIM + tl.arange(0, HEAD_DIM)[None, :]
    dq = tl.load(dq32_ptr + tile) * sm_scale
    tl.store(dq_ptr + tile, dq.to(dq_ptr.dtype.element_ty))


# 64 queries: with 128, the five accumulators of Blackwell's tensor memory only fit where two share columns.
LAUNCH = twillgpu.Launch(
    kernel="attention_bwd",
    args={
        "q_desc": "tensordesc<fp16[BLOCK_M,HEAD_DIM]>",
        "k_desc": "tensordesc<fp16[BLOCK_N,HEAD_DIM]>",
        "v_desc": "tensordesc<fp16[BLOCK_N,HEAD_DIM]>",
        "do_desc": "tensordesc<fp16[BLOCK_M,HEAD_DIM]>",
        "dq_desc": "tensordesc<fp32[BLOCK_M,HEAD_DIM]>",
        "dk_desc": "tensordesc<fp16[BLOCK_N,HEAD_DIM]>",
        "dv_desc": "tensordesc<fp16[BLOCK_N,HEAD_DIM]>",
        "lse_ptr": "*fp32",
        "delta_ptr": "*fp32",
        "sm_scale": "fp32",
        "seq_len": "i32",
    },
    constexprs={"HEAD_DIM": 128, "BLOCK_M": 64, "BLOCK_N": 128},
    num_warps=8,
)


def attention_gradients(q, k, v, o, do, lse, sm_scale, delta, dq32, dq, dk, dv, block_m=64, block_n=128):
    """Write the gradients of ``q``, ``k`` and ``v`` into ``dq``, ``dk`` and ``dv``.

    ``delta`` (one f32 a row) and ``dq32`` (f32 zeros shaped like ``q``) are scratch. The tensors are those of any array
    library that Triton can launch with.
    """
    batch, heads, seq_len, head_dim = q.shape
    if seq_len % block_m or seq_len % block_n:
        raise ValueError(f"seq_len {seq_len} must be a multiple of the block sizes {block_m} and {block_n}")
    rows = batch * heads * seq_len

    def tiles(tensor, block):
        return TensorDescriptor(tensor, [rows, head_dim], [head_dim, 1], [block, head_dim])

    row_dots[(rows // block_m,)](o, do, delta, HEAD_DIM=head_dim, BLOCK=block_m)
    attention_bwd[(seq_len // block_n, batch * heads)](
        tiles(q, block_m), tiles(k, block_n), tiles(v, block_n), tiles(do, block_m), tiles(dq32, block_m),
        tiles(dk, block_n), tiles(dv, block_n), lse, delta, sm_scale, seq_len,
        HEAD_DIM=head_dim, BLOCK_M=block_m, BLOCK_N=block_n, num_warps=8,
    )  # fmt: skip
    finish_dq[(rows // block_m,)](dq32, dq, sm_scale, HEAD_DIM=head_dim, BLOCK=block_m)
