# mypy: ignore-errors
# ruff: noqa: N803, PLR0917
"""Decorated kernels; the tests import the file anew for each test."""

import triton
import triton.language as tl

import twillgpu

LAUNCH = twillgpu.Launch(
    kernel="product",
    args={
        "a": "tensordesc<fp16[BLOCK_M,BLOCK_K]>",
        "b": "tensordesc<fp16[BLOCK_K,BLOCK_N]>",
        "c": "tensordesc<fp16[BLOCK_M,BLOCK_N]>",
        "depth": "i32",
    },
    constexprs={"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64},
    num_warps=4,
)


@twillgpu.optimize(check=False)
@triton.jit
def product(a, b, c, depth, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """C = A B."""
    row = tl.program_id(0) * BLOCK_M
    column = tl.program_id(1) * BLOCK_N
    acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for k in tl.range(0, depth, BLOCK_K):
        acc = tl.dot(a.load([row, k]), b.load([k, column]), acc)
    c.store([row, column], acc.to(c.dtype))


@twillgpu.optimize(check=False)
@triton.autotune([triton.Config({"BLOCK_K": 64}, num_warps=warps) for warps in (4, 8)], ["depth"])
@triton.heuristics({"BLOCK_N": lambda given: given["BLOCK_M"]})
@triton.jit
def tuned(a, b, c, depth, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """The same, tuned."""
    row = tl.program_id(0) * BLOCK_M
    column = tl.program_id(1) * BLOCK_N
    acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for k in tl.range(0, depth, BLOCK_K):
        acc = tl.dot(a.load([row, k]), b.load([k, column]), acc)
    c.store([row, column], acc.to(c.dtype))


SCALE = tl.constexpr(2)


@triton.heuristics({"BLOCK_N": lambda _: 128})
@twillgpu.optimize(check=False)
@triton.jit
def scaled(a, b, c, depth=1024, BLOCK_M: tl.constexpr = 128, BLOCK_N: tl.constexpr = 64, BLOCK_K: tl.constexpr = 64):
    """Twice the product: with defaults, a global, and a rule outside of the decorator."""
    row = tl.program_id(0) * BLOCK_M
    column = tl.program_id(1) * BLOCK_N
    acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for k in tl.range(0, depth, BLOCK_K):
        acc = tl.dot(a.load([row, k]), b.load([k, column]), acc)
    c.store([row, column], (acc * SCALE).to(c.dtype))


@twillgpu.optimize(check=False)
@triton.jit
def paired(pair, count, BLOCK: tl.constexpr):
    """A tuple among the arguments."""
    at = tl.arange(0, BLOCK)
    for start in tl.range(0, count, BLOCK):
        tl.store(pair[1] + start + at, tl.load(pair[0] + start + at))


@twillgpu.optimize(check=False)
@triton.jit
def copied(source, target, count, BLOCK: tl.constexpr):
    """No loop: nothing to schedule."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(target + at, tl.load(source + at, mask=at < count), mask=at < count)


def tune_outside():
    """The decorator under the tuner."""
    inner = twillgpu.optimize(check=False)(product.fn)
    return triton.autotune([triton.Config({"BLOCK_K": 64}, num_warps=warps) for warps in (4, 8)], ["depth"])(inner)
