"""Ops that only move elements of register tiles: shapes, transpositions, gathers, layouts."""

from __future__ import annotations

import numpy as np

from twillgpu.emulate.call import Call, Rule, Value
from twillgpu.emulate.numbers import format_of


def same(call: Call) -> Value:
    """Return the operand itself: a change of layout moves elements between threads, not between places."""
    return call.values[0]


def _expand(call: Call) -> Value:
    return np.expand_dims(call.values[0], call.integer("axis", 0))


def _splat(call: Call) -> Value:
    return np.full(call.result.shape, call.values[0], format_of(call.result.dtype).carrier)


def _cat(call: Call) -> Value:
    return np.concatenate(call.values, axis=0)


def _gather(call: Call) -> Value:
    source, index = call.values
    return np.take_along_axis(source, index.astype(np.int64), call.integer("axis"))


def _histogram(call: Call) -> Value:
    bins = call.result.shape[0]
    mask = call.optional(1)
    counted = call.values[0].ravel() if mask is None else call.values[0][mask]
    inside = counted[(counted >= 0) & (counted < bins)]
    return np.bincount(inside, minlength=bins).astype(format_of(call.result.dtype).carrier)


def _fp4_to_fp(call: Call) -> Value:
    """Unpack pairs of 4-bit floats, the lower half of the byte first, along ``axis``."""
    axis = call.integer("axis")
    packed = call.values[0].view(np.uint8)
    pairs = np.stack([packed & np.uint8(15), packed >> np.uint8(4)], axis=axis + 1)
    return call.rounded(format_of("f4E2M1FN").decode(pairs.reshape(call.result.shape)))


SHAPE_RULES: dict[str, Rule] = {
    "tt.expand_dims": _expand,
    "tt.broadcast": lambda call: np.broadcast_to(call.values[0], call.result.shape),
    "tt.splat": _splat,
    "tt.unsplat": lambda call: call.values[0].reshape(-1)[0],
    "tt.reshape": lambda call: call.values[0].reshape(call.result.shape),
    "tt.trans": lambda call: call.values[0].transpose(call.list("order")),
    "tt.cat": _cat,
    "tt.join": lambda call: np.stack(call.values, axis=-1),
    "tt.split": lambda call: (call.values[0][..., 0], call.values[0][..., 1]),
    "tt.gather": _gather,
    "tt.histogram": _histogram,
    "ttg.convert_layout": same,
    "ttg.fp4_to_fp": _fp4_to_fp,
    "tt.int_to_ptr": same,
    "tt.ptr_to_int": same,
}
