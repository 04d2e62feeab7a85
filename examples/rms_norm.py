"""Root-mean-square normalisation, without the tensor core.

    twillgpu schedule examples/rms_norm.py --machine h100
    twillgpu schedule examples/rms_norm.py --machine h100 --loop 1
    twillgpu schedule examples/rms_norm.py --machine h100 --kernel rms_norm_rows

``y[r, c] = x[r, c] w[c] / sqrt(mean(x[r, :]^2) + eps)``; the matrices are row-major.
"""

import triton
import triton.language as tl

import twillgpu


@triton.jit
def rms_norm(
    x_ptr, w_ptr, y_ptr, columns, eps,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """BLOCK_M rows of any length, in blocks of columns: one loop adds up the squares, one scales and stores."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offsets = tl.arange(0, BLOCK_N)
    row_start = rows[:, None] * columns
    squares = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in tl.range(0, columns, BLOCK_N):
        inside = start + offsets < columns
        x = tl.load(x_ptr + row_start + (start + offsets)[None, :], mask=inside[None, :], other=0.0)
        x32 = x.to(tl.float32)
        squares += x32 * x32
    scale = tl.math.rsqrt(tl.sum(squares, 1) / columns + eps)
    for start in tl.range(0, columns, BLOCK_N):
        inside = start + offsets < columns
        x = tl.load(x_ptr + row_start + (start + offsets)[None, :], mask=inside[None, :], other=0.0)
        w = tl.load(w_ptr + start + offsets, mask=inside, other=0.0)
        y = x.to(tl.float32) * scale[:, None] * w.to(tl.float32)[None, :]
        tl.store(y_ptr + row_start + (start + offsets)[None, :], y.to(x.dtype), mask=inside[None, :])


@triton.jit
def rms_norm_rows(
    x_ptr, w_ptr, y_ptr, rows, eps,
    COLUMNS: tl.constexpr, BLOCK_M: tl.constexpr,
):  # fmt: skip
    """Rows that fit in registers: each block of the grid walks over blocks of BLOCK_M whole rows."""
    first = tl.program_id(0) * BLOCK_M
    offsets = tl.arange(0, COLUMNS)
    w = tl.load(w_ptr + offsets).to(tl.float32)
    for start in tl.range(first, rows, tl.num_programs(0) * BLOCK_M):
        tile = (start + tl.arange(0, BLOCK_M))[:, None] * COLUMNS + offsets[None, :]
        x = tl.load(x_ptr + tile)
        x32 = x.to(tl.float32)
        scale = tl.math.rsqrt(tl.sum(x32 * x32, 1) / COLUMNS + eps)
        y = x32 * scale[:, None] * w[None, :]
        tl.store(y_ptr + tile, y.to(x.dtype))


MATRICES = {"x_ptr": "*fp16", "w_ptr": "*fp16", "y_ptr": "*fp16"}

# The second loop is the one that loads, computes and stores.
LAUNCH = twillgpu.Launch(
    kernel="rms_norm",
    args={**MATRICES, "columns": "i32", "eps": "fp32"},
    constexprs={"BLOCK_M": 4, "BLOCK_N": 1024},
    num_warps=4,
    loop=2,
)

ROWS_LAUNCH = twillgpu.Launch(
    kernel="rms_norm_rows",
    args={**MATRICES, "rows": "i32", "eps": "fp32"},
    constexprs={"COLUMNS": 4096, "BLOCK_M": 1},
    num_warps=4,
)


def normalise(x, w, y, eps, block_m=4, block_n=1024):
    """Write the normalised rows of ``x`` into ``y``."""
    rows, columns = x.shape
    if rows % block_m:
        raise ValueError(f"{rows} rows must be a multiple of {block_m}")
    rms_norm[(rows // block_m,)](x, w, y, columns, eps, BLOCK_M=block_m, BLOCK_N=block_n, num_warps=4)


def normalise_rows(x, w, y, eps, blocks, block_m=1):
    """The same with ``blocks`` blocks in the grid and whole rows; the row length is a power of two."""
    rows, columns = x.shape
    if rows % block_m:
        raise ValueError(f"{rows} rows must be a multiple of {block_m}")
    rms_norm_rows[(blocks,)](x, w, y, rows, eps, COLUMNS=columns, BLOCK_M=block_m, num_warps=4)
