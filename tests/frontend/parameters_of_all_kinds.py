# mypy: ignore-errors
# ruff: noqa: N803, PLR0917
"""A kernel whose parameters are of every kind; the tests of the emitted launcher launch it."""

import triton
import triton.language as tl

import twillgpu

LAUNCH = twillgpu.Launch(
    kernel="scaled",
    args={
        "x_ptr": "*fp16",
        "y_ptr": "*fp16",
        "columns": "i32",
        "offset": "i64:1",
        "bias_ptr": None,
        "one": 1,
        "eps": "fp32",
    },
    constexprs={"BLOCK": 1024, "DTYPE": "tl.float32"},
    num_warps=4,
)


@triton.jit
def scaled(
    x_ptr, y_ptr, columns, offset: tl.int64, bias_ptr, one, DTYPE: tl.constexpr, BLOCK: tl.constexpr, eps=1e-5,
    MODE: tl.constexpr = "plain", SHIFTED: tl.constexpr = False,
):  # fmt: skip
    """Scale a row, block of columns by block of columns."""
    row = tl.program_id(0) * columns + offset
    for start in tl.range(0, columns, BLOCK):
        at = row + start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at).to(DTYPE)
        if SHIFTED and MODE == "plain" and bias_ptr is not None:
            x += one
        tl.store(y_ptr + at, (x * eps).to(tl.float16))
