"""Attention forward (FlashAttention's online softmax), non-causal: TMA descriptors, and plain pointers.

    twillgpu schedule examples/attention_fwd.py --machine h100
    twillgpu schedule examples/attention_fwd.py --machine b200 --const HEAD_DIM=64
    twillgpu schedule examples/attention_fwd.py --machine h100 --kernel attention_fwd_pointers

Tensors are ``[batch, heads, seq_len, HEAD_DIM]``, contiguous; ``seq_len`` is a multiple of both block sizes.
"""

import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

import twillgpu


@triton.jit
def attention_fwd(
    q_desc, k_desc, v_desc, o_desc, lse_ptr, sm_scale, seq_len,
    HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """One block of BLOCK_M queries against all keys; descriptors are over ``[batch * heads * seq_len, HEAD_DIM]``."""
    block = tl.program_id(0)
    first_row = tl.program_id(1) * seq_len
    first_query = block * BLOCK_M
    q = q_desc.load([first_row + first_query, 0])
    # Base-2 exponentials: the factor log2(e) is folded into the scale of the scores.
    qk_scale = sm_scale * 1.4426950408889634
    m_i = tl.full([BLOCK_M], float("-inf"), tl.float32)
    l_i = tl.full([BLOCK_M], 0.0, tl.float32)
    acc = tl.zeros([BLOCK_M, HEAD_DIM], tl.float32)
    for start_n in tl.range(0, seq_len, BLOCK_N):
        k = k_desc.load([first_row + start_n, 0])
        qk = tl.dot(q, k.T)
        m_ij = tl.maximum(m_i, tl.max(qk, 1) * qk_scale)
        p = tl.math.exp2(qk * qk_scale - m_ij[:, None])
        alpha = tl.math.exp2(m_i - m_ij)
        l_ij = tl.sum(p, 1)
        l_i = l_i * alpha + l_ij
        acc = acc * alpha[:, None]
        v = v_desc.load([first_row + start_n, 0])
        acc = tl.dot(p.to(v.dtype), v, acc)
        m_i = m_ij
    acc = acc / l_i[:, None]
    rows = first_query + tl.arange(0, BLOCK_M)
    tl.store(lse_ptr + first_row + rows, m_i + tl.math.log2(l_i))
    o_desc.store([first_row + first_query, 0], acc.to(o_desc.dtype))


@triton.jit
def attention_fwd_pointers(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, sm_scale, seq_len,
    HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """The same with pointers: each thread computes the addresses of what it loads."""
    block = tl.program_id(0)
    first_row = tl.program_id(1) * seq_len
    columns = tl.arange(0, HEAD_DIM)
    rows = block * BLOCK_M + tl.arange(0, BLOCK_M)
    keys = tl.arange(0, BLOCK_N)
    q_tile = q_ptr + (first_row + rows)[:, None] * HEAD_DIM + columns[None, :]
    o_tile = o_ptr + (first_row + rows)[:, None] * HEAD_DIM + columns[None, :]
    k_tile = k_ptr + (first_row + keys)[:, None] * HEAD_DIM + columns[None, :]
    v_tile = v_ptr + (first_row + keys)[:, None] * HEAD_DIM + columns[None, :]
    q = tl.load(q_tile)
    qk_scale = sm_scale * 1.4426950408889634
    m_i = tl.full([BLOCK_M], float("-inf"), tl.float32)
    l_i = tl.full([BLOCK_M], 0.0, tl.float32)
    acc = tl.zeros([BLOCK_M, HEAD_DIM], tl.float32)
    for _ in tl.range(0, seq_len, BLOCK_N):
        k = tl.load(k_tile)
        qk = tl.dot(q, k.T)
        m_ij = tl.maximum(m_i, tl.max(qk, 1) * qk_scale)
        p = tl.math.exp2(qk * qk_scale - m_ij[:, None])
        alpha = tl.math.exp2(m_i - m_ij)
        l_ij = tl.sum(p, 1)
        l_i = l_i * alpha + l_ij
        acc = acc * alpha[:, None]
        v = tl.load(v_tile)
        acc = tl.dot(p.to(v.dtype), v, acc)
        m_i = m_ij
        k_tile += BLOCK_N * HEAD_DIM
        v_tile += BLOCK_N * HEAD_DIM
    acc = acc / l_i[:, None]
    tl.store(lse_ptr + first_row + rows, m_i + tl.math.log2(l_i))
    tl.store(o_tile, acc.to(o_ptr.dtype.element_ty))


def descriptor_launch(target, block_m):
    """Return the launch of the descriptor kernel: 8 warps, one block of ``block_m`` queries."""
    return twillgpu.Launch(
        kernel="attention_fwd",
        target=target,
        args={
            "q_desc": "tensordesc<fp16[BLOCK_M,HEAD_DIM]>",
            "k_desc": "tensordesc<fp16[BLOCK_N,HEAD_DIM]>",
            "v_desc": "tensordesc<fp16[BLOCK_N,HEAD_DIM]>",
            "o_desc": "tensordesc<fp16[BLOCK_M,HEAD_DIM]>",
            "lse_ptr": "*fp32",
            "sm_scale": "fp32",
            "seq_len": "i32",
        },
        constexprs={"HEAD_DIM": 128, "BLOCK_M": block_m, "BLOCK_N": 128},
        num_warps=8,
    )


def pointer_launch(target):
    """Return the launch of the pointer kernel for one target."""
    return twillgpu.Launch(
        kernel="attention_fwd_pointers",
        target=target,
        args={
            "q_ptr": "*fp16",
            "k_ptr": "*fp16",
            "v_ptr": "*fp16",
            "o_ptr": "*fp16",
            "lse_ptr": "*fp32",
            "sm_scale": "fp32",
            "seq_len": "i32",
        },
        constexprs={"HEAD_DIM": 128, "BLOCK_M": 128, "BLOCK_N": 64},
        num_warps=8,
    )


# Blackwell's tensor core works on 128 rows: 256 queries make the two sub-tiles whose softmax alternates. Ampere has
# no TMA.
LAUNCH = (descriptor_launch("sm_90a", 128), descriptor_launch("sm_100a", 256), pointer_launch("sm_80"))
POINTER_LAUNCH = pointer_launch(None)


def attention(q, k, v, o, lse, sm_scale, block_m=128, block_n=128):
    """Write softmax(q k^T sm_scale) v into ``o`` and each row's base-2 log-sum-exp into ``lse``.

    The tensors are those of any array library that Triton can launch with.
    """
    batch, heads, seq_len, head_dim = q.shape
    if seq_len % block_m or seq_len % block_n:
        raise ValueError(f"seq_len {seq_len} must be a multiple of the block sizes {block_m} and {block_n}")

    def tiles(tensor, rows):
        return TensorDescriptor(tensor, [batch * heads * seq_len, head_dim], [head_dim, 1], [rows, head_dim])

    attention_fwd[(seq_len // block_m, batch * heads)](
        tiles(q, block_m), tiles(k, block_n), tiles(v, block_n), tiles(o, block_m), lse, sm_scale, seq_len,
        HEAD_DIM=head_dim, BLOCK_M=block_m, BLOCK_N=block_n, num_warps=8,
    )  # fmt: skip


def attention_pointers(q, k, v, o, lse, sm_scale, block_m=128, block_n=64):
    """The same through the pointer kernel."""
    batch, heads, seq_len, head_dim = q.shape
    if seq_len % block_m or seq_len % block_n:
        raise ValueError(f"seq_len {seq_len} must be a multiple of the block sizes {block_m} and {block_n}")
    attention_fwd_pointers[(seq_len // block_m, batch * heads)](
        q, k, v, o, lse, sm_scale, seq_len,
        HEAD_DIM=head_dim, BLOCK_M=block_m, BLOCK_N=block_n, num_warps=8,
    )  # fmt: skip
