"""A dry run: which part of each tensor a launch touches, so that tensors can be made without being told their shapes.

Every tensor is given more room than any kernel uses. A tensor with a descriptor (or with shape and stride arguments)
has strides that are powers of two far apart, so that the coordinates can be read off an address. Loads give zeros, or
the values of a tensor that was made before: addresses may depend on what is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from twillgpu.emulate.call import Context, Value
from twillgpu.emulate.inputs import (
    element_type,
    is_descriptor_flag,
    is_tensor,
    metadata_of,
    typed_scalar,
)
from twillgpu.emulate.memory import SPACING_BITS, SPACING_BYTES, AccessError, Descriptor, GlobalMemory, Lanes
from twillgpu.emulate.numbers import Array, format_of, rounded
from twillgpu.emulate.reference import blocks, run_block
from twillgpu.frontend.kernel import Kernel, KernelValue
from twillgpu.frontend.subtile_dims import value_types

_ROOM_BITS = SPACING_BITS - 4
"""Elements of a tensor's room: at most 8 bytes each, and a gap that shows accesses before the next tensor."""


@dataclass(slots=True, kw_only=True)
class Room:
    """A tensor in a dry run.

    Attributes:
        name: name of the argument.
        dtype: element type.
        rank: dimensions that can be told apart, 1 for a plain pointer.
        extents: what was touched so far, from element 0 on, in each dimension.
        read: whether anything was loaded.
        values: contents, in the carrier type, ``None`` for zeros.
    """

    name: str
    dtype: str
    rank: int
    extents: list[int]
    read: bool = False
    values: Array | None = None

    @property
    def bits(self) -> int:
        """Bits of a coordinate."""
        return _ROOM_BITS // self.rank

    @property
    def strides(self) -> tuple[int, ...]:
        """Strides in elements."""
        return tuple(1 << (self.bits * axis) for axis in reversed(range(self.rank)))

    def coordinates(self, index: Array) -> tuple[Array, ...]:
        """Return the coordinates of elements in each dimension."""
        return tuple((index // stride) & ((1 << self.bits) - 1) for stride in self.strides)


class ProbeMemory(GlobalMemory):
    """Global memory without contents that notes what is touched."""

    def __init__(self) -> None:
        super().__init__()
        self.rooms: list[Room] = []

    def room(self, room: Room) -> int:
        """Add a tensor; return its address."""
        self.rooms.append(room)
        return len(self.rooms) << SPACING_BITS

    def load(self, addresses: Array, mask: Array | None, dtype: str) -> Array:
        """Note the elements and return zeros, or what the tensor holds.

        Raises ``AccessError`` for a pointer into no tensor.
        """
        found = np.zeros(np.shape(addresses), format_of(dtype).carrier)
        for lanes, room, index in self._touched(addresses, mask, dtype, "reads"):
            room.read = True
            if room.values is not None and room.dtype == dtype:
                found[lanes] = _contents(room, index)
        return found[()]

    def store(self, addresses: Array, mask: Array | None, dtype: str, values: Array) -> None:
        """Note the elements.

        Raises ``AccessError`` for a pointer into no tensor.
        """
        del values
        for _ in self._touched(addresses, mask, dtype, "writes"):
            pass

    def update(
        self, addresses: Array, mask: Array | None, dtype: str, change: Callable[[Array, Lanes], Array]
    ) -> Array:
        """Note the elements and return zeros.

        Raises ``AccessError`` for a pointer into no tensor.
        """
        del change
        for _ in self._touched(addresses, mask, dtype, "updates"):
            pass
        return np.zeros(np.shape(addresses), format_of(dtype).carrier)[()]

    def _touched(
        self, addresses: Array, mask: Array | None, dtype: str, verb: str
    ) -> Iterable[tuple[Lanes, Room, Array]]:
        where = np.asarray(addresses, np.int64)
        active = np.ones(where.shape, np.bool_) if mask is None else np.broadcast_to(mask, where.shape)
        numbers = where >> SPACING_BITS
        found = []
        for number in np.unique(numbers[active]):
            lanes = np.nonzero(active & (numbers == number)) if where.ndim else ()
            offsets = np.asarray(where[lanes] & (SPACING_BYTES - 1))
            if not 1 <= number <= len(self.rooms) or int(offsets.max()) >= SPACING_BYTES >> 1:
                raise AccessError(f"{verb} memory before the start of a tensor", "check the pointer arithmetic")
            room = self.rooms[int(number) - 1]
            index = offsets // format_of(room.dtype).size_bytes
            last = offsets + (format_of(dtype).size_bytes - 1)
            for axis, at in enumerate(room.coordinates(last // format_of(room.dtype).size_bytes)):
                room.extents[axis] = max(room.extents[axis], int(at.max()) + 1)
            found.append((lanes, room, index))
        return found


def _contents(room: Room, index: Array) -> Array:
    """Return the values of a tensor at ``index``, zero where it does not reach."""
    values = np.asarray(room.values)
    places = room.coordinates(index)
    inside = np.logical_and.reduce([at < size for at, size in zip(places, values.shape, strict=True)])
    kept = tuple(np.minimum(at, size - 1) for at, size in zip(places, values.shape, strict=True))
    return np.where(inside, values[kept], 0).astype(values.dtype)


def probe(
    kernel: Kernel, scalars: Mapping[str, float], grid: tuple[int, int, int], values: Mapping[str, Array]
) -> tuple[Room, ...]:
    """Run every block dry and return what each tensor was touched in; ``values`` are contents known so far.

    Raises ``InputError`` with the op's source line where a pointer leaves every tensor.
    """
    memory, arguments = probe_arguments(kernel, scalars, values)
    types = value_types(kernel)
    for program in blocks(grid):
        run_block(kernel, arguments, Context(types=types, memory=memory, program=program, grid=grid))
    return tuple(memory.rooms)


def probe_arguments(
    kernel: Kernel, scalars: Mapping[str, float], values: Mapping[str, Array]
) -> tuple[ProbeMemory, dict[str, Value]]:
    """Return memory with room for every tensor, and the values of the kernel's arguments.

    ``scalars`` are by name and may give shape arguments of descriptors too.
    """
    memory = ProbeMemory()
    rooms = {argument.name: _room(kernel, argument, values) for argument in kernel.arguments if is_tensor(argument)}
    addresses = {name: memory.room(room) for name, room in rooms.items()}
    arguments = {
        argument.name: _tensor_value(argument, rooms[argument.name], addresses[argument.name])
        if is_tensor(argument)
        else _scalar_value(argument, scalars, rooms)
        for argument in kernel.arguments
    }
    return memory, arguments


def _room(kernel: Kernel, argument: KernelValue, values: Mapping[str, Array]) -> Room:
    parts = [part for other in kernel.arguments if (part := metadata_of(other)) and part[0] == argument.name]
    rank = max((axis + 1 for _, _, axis in parts), default=max(1, len(argument.type.shape)))
    dtype = element_type(argument.type)
    held = values.get(argument.name)
    return Room(
        name=argument.name,
        dtype=dtype,
        rank=rank,
        extents=[0] * rank,
        values=None if held is None else np.asarray(rounded(held, dtype)),
    )


def _tensor_value(argument: KernelValue, room: Room, address: int) -> Value:
    if argument.type.space == "global":
        return np.int64(address)
    shape = (1 << room.bits,) * room.rank
    return Descriptor(address=address, shape=shape, strides=room.strides, dtype=room.dtype)


def _scalar_value(argument: KernelValue, scalars: Mapping[str, float], rooms: Mapping[str, Room]) -> Value:
    name, dtype = argument.name, argument.type.dtype
    part = metadata_of(argument)
    if name in scalars:
        return typed_scalar(scalars[name], dtype)
    if is_descriptor_flag(argument) or part is None or part[0] not in rooms:
        return typed_scalar(0, dtype)
    room = rooms[part[0]]
    return typed_scalar(1 << room.bits if part[1] == "shape" else room.strides[part[2]], dtype)
