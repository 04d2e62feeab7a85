"""Matrix product C = A B with f32 accumulation: TMA descriptors, and plain pointers.

    twillgpu schedule examples/gemm.py --machine h100
    twillgpu schedule examples/gemm.py --machine b200 --const BLOCK_K=128
    twillgpu schedule examples/gemm.py --machine a100
    twillgpu schedule examples/gemm.py --machine h100 --kernel gemm_pointers

A is ``[M, K]``, B is ``[K, N]``, C is ``[M, N]``, row-major; every size is a multiple of its block's.
"""

import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

import twillgpu


@triton.jit
def gemm(
    a_desc, b_desc, c_desc, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """One block of C; descriptors are over whole matrices."""
    row = tl.program_id(0) * BLOCK_M
    column = tl.program_id(1) * BLOCK_N
    acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for k in tl.range(0, K, BLOCK_K):
        a = a_desc.load([row, k])
        b = b_desc.load([k, column])
        acc = tl.dot(a, b, acc)
    c_desc.store([row, column], acc.to(c_desc.dtype))


@triton.jit
def gemm_pointers(
    a_ptr, b_ptr, c_ptr, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """The same with pointers: each thread computes the addresses of what it loads."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    a_tile = a_ptr + rows[:, None] * K + depth[None, :]
    b_tile = b_ptr + depth[:, None] * N + columns[None, :]
    acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for _ in tl.range(0, K, BLOCK_K):
        a = tl.load(a_tile)
        b = tl.load(b_tile)
        acc = tl.dot(a, b, acc)
        a_tile += BLOCK_K
        b_tile += BLOCK_K * N
    c_tile = c_ptr + rows[:, None] * N + columns[None, :]
    tl.store(c_tile, acc.to(c_ptr.dtype.element_ty))


def pointer_launch(target, block_n, block_k):
    """Return the launch of the pointer kernel for one target."""
    return twillgpu.Launch(
        kernel="gemm_pointers",
        target=target,
        args={"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp16", "N": "i32", "K": "i32"},
        constexprs={"BLOCK_M": 128, "BLOCK_N": block_n, "BLOCK_K": block_k},
        num_warps=8,
    )


# Ampere has no TMA, and a smaller block: its accumulators live in the registers of the 8 warps that load as well.
LAUNCH = (
    twillgpu.Launch(
        kernel="gemm",
        args={
            "a_desc": "tensordesc<fp16[BLOCK_M,BLOCK_K]>",
            "b_desc": "tensordesc<fp16[BLOCK_K,BLOCK_N]>",
            "c_desc": "tensordesc<fp16[BLOCK_M,BLOCK_N]>",
            "K": "i32",
        },
        constexprs={"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64},
        num_warps=8,
    ),
    pointer_launch("sm_80", 128, 32),
)
POINTER_LAUNCH = pointer_launch(None, 256, 64)


def matmul(a, b, c, block_m=128, block_n=256, block_k=64):
    """Write ``a @ b`` into ``c``; the matrices are those of any array library that Triton can launch with."""
    (m, k), n = a.shape, b.shape[1]
    check_blocks(m, n, k, block_m, block_n, block_k)
    gemm[(m // block_m, n // block_n)](
        TensorDescriptor(a, [m, k], [k, 1], [block_m, block_k]),
        TensorDescriptor(b, [k, n], [n, 1], [block_k, block_n]),
        TensorDescriptor(c, [m, n], [n, 1], [block_m, block_n]),
        k, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, num_warps=8,
    )  # fmt: skip


def matmul_pointers(a, b, c, block_m=128, block_n=256, block_k=64):
    """The same through the pointer kernel."""
    (m, k), n = a.shape, b.shape[1]
    check_blocks(m, n, k, block_m, block_n, block_k)
    gemm_pointers[(m // block_m, n // block_n)](
        a, b, c, n, k, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, num_warps=8
    )


def check_blocks(m, n, k, block_m, block_n, block_k):
    """Refuse sizes that are not whole numbers of blocks."""
    if m % block_m or n % block_n or k % block_k:
        raise ValueError(f"{m} x {n} x {k} must be multiples of the blocks {block_m} x {block_n} x {block_k}")
