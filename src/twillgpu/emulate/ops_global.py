"""Ops on global memory: loads and stores through pointers, atomics, TMA descriptors.

Blocks run one after another, so that an atomic is a read and a write. A masked lane without ``other`` reads as zero.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from twillgpu.emulate.call import Call, Rule, Value
from twillgpu.emulate.memory import AccessError, Descriptor, Lanes
from twillgpu.emulate.numbers import Array, format_of, rounded, unsigned

_PAD_NAN = 2

_RMW: dict[int, Callable[[Array, Array], Array]] = {
    1: np.bitwise_and,
    2: np.bitwise_or,
    3: np.bitwise_xor,
    4: np.add,
    5: np.add,
    6: np.fmax,
    7: np.fmin,
    8: lambda a, b: np.maximum(unsigned(a), unsigned(b)).view(a.dtype),
    9: lambda a, b: np.minimum(unsigned(a), unsigned(b)).view(a.dtype),
    10: lambda _old, new: new,
}
"""Triton's ``RMWOp``: and or xor add fadd max min umax umin exch."""

_REDUCE: dict[int, Callable[[Array, Array], Array]] = {
    1: np.add,
    2: np.fmin,
    3: np.fmax,
    4: lambda old, limit: np.where(unsigned(old) >= unsigned(limit), 0, old + 1).astype(old.dtype),
    5: lambda old, limit: np.where(
        (old == 0) | (unsigned(old) > unsigned(limit)), limit, old - (old != 0).astype(old.dtype)
    ).astype(old.dtype),
    6: np.bitwise_and,
    7: np.bitwise_or,
    8: np.bitwise_xor,
}
"""Triton's ``DescriptorReduceKind``: add min max inc dec and or xor (PTX ISA, ``cp.reduce.async.bulk.tensor``)."""


def masked_load(call: Call, addresses: Array, mask: Array | None, other: Array | None, dtype: str) -> Array:
    """Return what a load through pointers gives, ``other`` (zero by default) where ``mask`` is false."""
    found = call.context.memory.load(addresses, mask, dtype)
    return found if mask is None or other is None else np.where(mask, found, other).astype(found.dtype)


def _load(call: Call) -> Value:
    mask, other = call.optional(1), call.optional(2)
    return masked_load(call, call.values[0], mask, other, call.result.dtype)


def _store(call: Call) -> Value:
    addresses, values, *mask = call.values
    call.context.memory.store(addresses, mask[0] if mask else None, call.types[1].dtype, values)


def _rmw(call: Call) -> Value:
    addresses, given, *mask = call.values
    operation, dtype = _RMW.get(call.integer("atomic_rmw_op")), call.types[1].dtype
    if operation is None:
        raise call.unsupported("this atomic operation is not known")
    operand = np.asarray(given)

    def change(old: Array, lanes: Lanes) -> Array:
        return rounded(operation(old, operand[lanes]), dtype)

    return call.context.memory.update(addresses, mask[0] if mask else None, dtype, change)


def _cas(call: Call) -> Value:
    addresses, expected, new = call.values[0], np.asarray(call.values[1]), np.asarray(call.values[2])
    dtype = call.types[1].dtype
    bits = format_of(dtype).encode

    def change(old: Array, lanes: Lanes) -> Array:
        # The comparison is of bits: a NaN equals itself.
        return np.where(bits(np.asarray(old)) == bits(expected[lanes]), new[lanes], old)

    return call.context.memory.update(addresses, None, dtype, change)


def _atomic_load(call: Call) -> Value:
    addresses, *mask = call.values
    return call.context.memory.load(addresses, mask[0] if mask else None, call.result.dtype)


def _poll(call: Call) -> Value:
    addresses, expected = call.values[:2]
    return call.context.memory.load(addresses, None, call.types[1].dtype) == expected


def _add_pointer(call: Call) -> Value:
    addresses, offsets = call.values
    size = format_of(call.result.dtype.removeprefix("ptr<").removesuffix(">")).size_bytes
    return addresses + np.asarray(offsets, np.int64) * size


def _make_descriptor(call: Call) -> Value:
    base, *extents = call.values
    rank = len(extents) // 2
    return Descriptor(
        address=int(base),
        shape=tuple(map(int, extents[:rank])),
        strides=tuple(map(int, extents[rank:])),
        dtype=call.result.dtype,
        pad_nan=call.integer("padding", 1) == _PAD_NAN,
    )


def _block(descriptor: Descriptor, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the block that a tile of ``shape`` is: leading dimensions of size 1 may be missing. A sub-tile is
    smaller than the descriptor's own block.
    """
    return (1,) * (len(descriptor.shape) - len(shape)) + shape


def descriptor_load(call: Call) -> Value:
    """Return the block of a TMA load: descriptor, then a coordinate for each dimension."""
    descriptor, *corner = call.values
    shape = call.result.shape
    return descriptor.read(call.context.memory, corner, _block(descriptor, shape)).reshape(shape)


def _in_block(call: Call) -> tuple[Descriptor, list[Value], Array]:
    """Return the descriptor, the coordinates and the values of a TMA store, in the shape of the block."""
    descriptor, values, *corner = call.values
    return descriptor, corner, np.asarray(values).reshape(_block(descriptor, np.shape(values)))


def descriptor_store(call: Call) -> Value:
    """Write the block of a TMA store: descriptor, values, then a coordinate for each dimension."""
    descriptor, corner, values = _in_block(call)
    descriptor.write(call.context.memory, corner, values)


def descriptor_reduce(call: Call) -> Value:
    """Combine the block with what is in memory: descriptor, values, then a coordinate for each dimension."""
    descriptor, corner, values = _in_block(call)
    operation = _REDUCE.get(call.integer("kind"))
    if operation is None:
        raise call.unsupported("this kind of reduction is not known")
    addresses, inside = descriptor.places(corner, values.shape)

    def change(old: Array, lanes: Lanes) -> Array:
        return rounded(operation(old, values[lanes]), descriptor.dtype)

    call.context.memory.update(addresses, inside, descriptor.dtype, change)


def _gather(call: Call) -> Value:
    descriptor, rows, column = call.values
    return descriptor.read(call.context.memory, (rows, column), (1, call.result.shape[1]))


def _scatter(call: Call) -> Value:
    descriptor, rows, column, values = call.values
    descriptor.write(call.context.memory, (rows, column), values)


def _assert(call: Call) -> Value:
    if not np.all(call.values[0]):
        raise AccessError(f"fails: {call.op.attribute('message')}", "check the inputs")


def _nothing(_call: Call) -> Value:
    """Do nothing: a hint, an output for people, or an order that running op by op keeps."""


GLOBAL_RULES: dict[str, Rule] = {
    "tt.addptr": _add_pointer,
    "tt.load": _load,
    "tt.store": _store,
    "tt.atomic_rmw": _rmw,
    "tt.atomic_cas": _cas,
    "tt.atomic_load": _atomic_load,
    "tt.atomic_store": _store,
    "tt.atomic_poll": _poll,
    "tt.make_tensor_descriptor": _make_descriptor,
    "tt.descriptor_load": descriptor_load,
    "tt.descriptor_store": descriptor_store,
    "tt.descriptor_reduce": descriptor_reduce,
    "tt.descriptor_gather": _gather,
    "tt.descriptor_scatter": _scatter,
    "tt.assert": _assert,
    "tt.print": _nothing,
    "tt.grid_dependency_wait": _nothing,
    "tt.grid_dependency_launch_dependents": _nothing,
    "llvm.intr.assume": _nothing,
    "gpu.barrier": _nothing,
    "ttg.barrier": _nothing,
    "ttng.fence_async_shared": _nothing,
}
