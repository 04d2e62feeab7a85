"""Matrix products of the tensor core: exact inputs, f32 accumulation, one rounding to the accumulator's type.

The order of the additions is numpy's, not the chip's. Products of f16, bf16 and narrower floats are exact in f32.
Hopper accumulates products of 8-bit floats in fewer bits than f32 (``maxNumImpreciseAcc``); that is not modelled.
"""

from __future__ import annotations

import numpy as np

from twillgpu.emulate.call import Call, Rule, Value
from twillgpu.emulate.memory import MemDesc
from twillgpu.emulate.numbers import Array, format_of, rounded, truncated_tf32, unsigned

_TF32 = 0
_IEEE = 2
_SCALED_TYPES = ("f8E4M3FN", "f8E5M2", "f6E2M3FN", "f6E3M2FN", "f4E2M1FN", "bf16", "f16")
"""Triton's ``ScaleDotElemType`` by number."""


def multiply(a: Array, b: Array, *, tf32: bool = False, is_unsigned: bool = False) -> Array:
    """Return the product of two (batches of) matrices ``[M, K]`` and ``[K, N]`` with wide accumulation: f32 for
    floats up to f32, f64 for f64, wrapping i32 for integers. ``tf32`` cuts f32 inputs to what the tensor core reads.

    The result depends on values and shapes only, not on how the arrays lie in memory.
    """
    if np.issubdtype(a.dtype, np.integer):
        read = unsigned if is_unsigned else np.asarray
        exact = np.matmul(read(a).astype(np.float64), read(b).astype(np.float64))
        return np.asarray(exact.astype(np.int64).astype(np.int32))
    wide = np.float64 if a.dtype == np.float64 else np.float32
    left, right = np.ascontiguousarray(a, wide), np.ascontiguousarray(b, wide)
    if tf32:
        left, right = truncated_tf32(left), truncated_tf32(right)
    return np.asarray(np.matmul(left, right))


def matrix(value: Value) -> Array:
    """Return the values of an operand in registers, SMEM or TMEM."""
    return value.load() if isinstance(value, MemDesc) else value


def _dot(call: Call) -> Value:
    """``tt.dot`` and ``ttng.warp_group_dot``: A, B, C and a flag that C counts."""
    a, b, c = (matrix(value) for value in call.values[:3])
    tf32 = call.types[0].dtype == "f32" and call.integer("inputPrecision", _IEEE) == _TF32
    product = multiply(a, b, tf32=tf32)
    counts = len(call.values) < 4 or bool(call.values[3])
    return call.rounded(product + c.astype(product.dtype) if counts else product)


def _accumulate(target: MemDesc, product: Array, *, use: bool) -> None:
    """Write the product to the accumulator in tensor memory, added to what is there only where ``use`` is true."""
    total = product + target.load().astype(product.dtype) if use else product
    target.store(rounded(total, target.dtype))


def _mma(call: Call) -> Value:
    """``ttng.tc_gen5_mma``: A, B, D, then whether D counts and whether anything happens."""
    a, b, d, use, predicate = call.values[:5]
    if predicate:
        is_unsigned = call.integer("is_unsigned", 0) == 1
        product = multiply(a.load(), b.load(), tf32=call.types[0].dtype == "f32", is_unsigned=is_unsigned)
        _accumulate(d, product, use=bool(use))


def _scaled_operand(value: Value, element: int, packed_axis: int | None) -> Array:
    """Return a microscaled operand as f32: bytes are decoded, 4-bit floats unpacked along ``packed_axis``."""
    raw, name = matrix(value), _SCALED_TYPES[element]
    if not np.issubdtype(raw.dtype, np.integer):
        return np.asarray(raw, np.float32)
    bits = raw.view(np.uint8)
    if name == "f4E2M1FN" and packed_axis is not None:
        axis = packed_axis % bits.ndim
        pairs = np.stack([bits & np.uint8(15), bits >> np.uint8(4)], axis=axis + 1)
        bits = pairs.reshape(*bits.shape[:axis], 2 * bits.shape[axis], *bits.shape[axis + 1 :])
    return np.asarray(format_of(name).decode(bits), np.float32)


def _scale(value: Value, depth: int) -> Array:
    """Return scales ``[rows, K / factor]`` spread over ``[rows, K]``: bytes are powers of two (E8M0), 255 is NaN."""
    raw = matrix(value)
    if np.issubdtype(raw.dtype, np.integer):
        exponent = raw.view(np.uint8).astype(np.int32)
        raw = np.where(exponent == 255, np.nan, np.ldexp(np.float64(1), exponent - 127))
    return np.repeat(np.asarray(raw, np.float32), depth // raw.shape[-1], axis=-1)


def _scaled_product(call: Call, operands: tuple[Value, ...], kinds: tuple[str, str]) -> Array:
    """Multiply A and B after scaling; ``operands`` are A, B, scales of A, scales of B (``None``: no scales)."""
    a, b, a_scale, b_scale = operands
    left = _scaled_operand(a, call.integer(kinds[0]), -1 if call.integer("lhs_k_pack", 1) else -2)
    right = _scaled_operand(b, call.integer(kinds[1]), -2 if call.integer("rhs_k_pack", 1) else -1)
    if a_scale is not None:
        left = left * _scale(a_scale, left.shape[-1])
    if b_scale is not None:
        right = right * np.swapaxes(_scale(b_scale, right.shape[-2]), -1, -2)
    return multiply(left, right)


def _dot_scaled(call: Call) -> Value:
    a, b, c = call.values[:3]
    operands = (a, b, call.optional(3), call.optional(4))
    return call.rounded(_scaled_product(call, operands, ("a_elem_type", "b_elem_type")) + c)


def _mma_scaled(call: Call) -> Value:
    a, b, d, a_scale, b_scale, use, predicate = call.values[:7]
    if predicate:
        product = _scaled_product(call, (a, b, a_scale, b_scale), ("a_type", "b_type"))
        _accumulate(d, product, use=bool(use))


def _wait(call: Call) -> Value:
    return call.values if len(call.results) > 1 else call.values[0]


PRODUCT_RULES: dict[str, Rule] = {
    "tt.dot": _dot,
    "tt.dot_scaled": _dot_scaled,
    "ttng.warp_group_dot": _dot,
    "ttng.warp_group_dot_wait": _wait,
    "ttng.tc_gen5_mma": _mma,
    "ttng.tc_gen5_mma_scaled": _mma_scaled,
}
