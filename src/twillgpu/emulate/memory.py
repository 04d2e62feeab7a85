"""Memory as an emulated program sees it: global buffers in one address space, TMA descriptors, tiles in SMEM and
TMEM.

A pointer is a 64-bit byte address. Buffers are ``SPACING_BYTES`` apart, so that an address says which buffer it was
made from, and arithmetic that leaves a buffer is noticed. All memory holds bits: values are encoded and decoded by
the type of the access.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from twillgpu.emulate.numbers import Array, format_of, poison

Lanes: TypeAlias = Any
"""An index into the operands of an access: which of its elements."""

SPACING_BITS = 48
SPACING_BYTES = 1 << SPACING_BITS
"""Distance of two buffers; the first one starts at this address, so that 0 is no buffer's."""


class AccessError(Exception):
    """An access that no correct program makes; the text says what and where in memory, the caller adds the op."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what)
        self.what = what
        self.remedy = remedy


@dataclass(slots=True, kw_only=True)
class Buffer:
    """A named piece of global memory: its element type for messages, and its bytes."""

    name: str
    dtype: str
    data: NDArray[np.uint8]


class GlobalMemory:
    """All buffers that a launch can reach. Reading and writing go through ``load``, ``store`` and ``update``."""

    def __init__(self) -> None:
        self.buffers: list[Buffer] = []

    def add(self, name: str, dtype: str, bits: Array) -> int:
        """Copy ``bits`` (an array in the storage type of ``dtype``) into a new buffer; return its address."""
        data = np.frombuffer(np.ascontiguousarray(bits).tobytes(), np.uint8).copy()
        self.buffers.append(Buffer(name=name, dtype=dtype, data=data))
        return len(self.buffers) << SPACING_BITS

    def contents(self, address: int) -> Array:
        """Return the elements of the buffer at ``address`` in storage type, without a copy."""
        buffer = self.buffers[(address >> SPACING_BITS) - 1]
        return buffer.data.view(format_of(buffer.dtype).storage)

    def load(self, addresses: Array, mask: Array | None, dtype: str) -> Array:
        """Return the values at byte ``addresses``, zero where ``mask`` is false.

        Raises ``AccessError`` for an address outside of every buffer, or not a multiple of the element size.
        """
        found = np.zeros(np.shape(addresses), format_of(dtype).storage)
        for lanes, elements, index in self._parts(addresses, mask, dtype, "reads"):
            found[lanes] = elements[index]
        return format_of(dtype).decode(found)

    def store(self, addresses: Array, mask: Array | None, dtype: str, values: Array) -> None:
        """Write ``values`` to byte ``addresses`` where ``mask`` is true; the last of equal addresses stays.

        Raises ``AccessError`` as ``load`` does.
        """
        bits = np.broadcast_to(format_of(dtype).encode(np.asarray(values)), np.shape(addresses))
        for lanes, elements, index in self._parts(addresses, mask, dtype, "writes"):
            elements[index] = bits[lanes]

    def update(
        self, addresses: Array, mask: Array | None, dtype: str, change: Callable[[Array, Lanes], Array]
    ) -> Array:
        """Replace each value at ``addresses`` by ``change(old, lanes)``, one lane after another where addresses
        repeat; return the old values. ``lanes`` indexes the operands of the op.

        Raises ``AccessError`` as ``load`` does.
        """
        form = format_of(dtype)
        old = np.zeros(np.shape(addresses), form.storage)
        for lanes, elements, index in self._parts(addresses, mask, dtype, "updates"):
            for lane, place in _distinct(lanes, index):
                old[lane] = elements[place]
                elements[place] = form.encode(np.asarray(change(form.decode(elements[place]), lane)))
        return form.decode(old)

    def _parts(
        self, addresses: Array, mask: Array | None, dtype: str, verb: str
    ) -> Iterator[tuple[Lanes, Array, Array]]:
        """Yield for each buffer touched: the lanes, the buffer's elements, and the index of each lane's element."""
        size = format_of(dtype).size_bytes
        where = np.asarray(addresses, np.int64)
        active = np.ones(where.shape, np.bool_) if mask is None else np.broadcast_to(mask, where.shape)
        numbers = where >> SPACING_BITS
        for number in _distinct_values(numbers[active]):
            lanes = np.nonzero(active & (numbers == number)) if where.ndim else ()
            offsets = where[lanes] & (SPACING_BYTES - 1)
            buffer = self._buffer(int(number), verb)
            if np.any(offsets % size):
                raise AccessError(
                    f"{verb} {buffer.name} at an address that is no multiple of {size} bytes",
                    "give pointers and strides of whole elements",
                )
            index = offsets // size
            self._reach(buffer, index, size, verb)
            yield lanes, buffer.data.view(format_of(dtype).storage), index

    def _buffer(self, number: int, verb: str) -> Buffer:
        if not 1 <= number <= len(self.buffers):
            raise AccessError(f"{verb} memory through a pointer into no tensor", "check the pointer arithmetic")
        return self.buffers[number - 1]

    def _reach(self, buffer: Buffer, index: Array, size: int, verb: str) -> None:
        """Check that elements of ``size`` bytes at ``index`` are inside the buffer."""
        count, last = len(buffer.data) // size, int(np.max(index, initial=-1))
        if last >= count:
            # An address a little below a buffer lies at the end of the space of the buffer before it.
            below = last >= (SPACING_BYTES >> 1) // size
            place = "before the start of the next tensor" if below else f"element {last}"
            raise AccessError(
                f"{verb} {place} of {buffer.name}, which has {count} elements",
                "mask the access, or give larger tensors",
            )


def _distinct_values(numbers: Array) -> Iterable[int]:
    if not numbers.size:
        return ()
    low, high = int(numbers.min()), int(numbers.max())
    return (low,) if low == high else (int(number) for number in np.unique(numbers))


def _distinct(lanes: Lanes, index: Array) -> Iterator[tuple[Lanes, Any]]:
    """Yield (lanes, places) with no place twice: all at once where places differ, else lane by lane in order."""
    flat = np.ravel(index)
    if len(np.unique(flat)) == flat.size:
        yield lanes, index
        return
    for at, place in enumerate(flat):
        yield tuple(axis[at] for axis in lanes), place


@dataclass(frozen=True, slots=True, kw_only=True)
class Descriptor:
    """A TMA descriptor: where a tensor is. The op that uses it says which block it moves.

    Attributes:
        address: byte address of element 0.
        shape: extent of each dimension in elements.
        strides: distance of neighbours in each dimension in elements.
        dtype: element type.
        pad_nan: whether elements outside of the tensor read as NaN instead of zero.
    """

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    pad_nan: bool = False

    def places(self, corner: Iterable[Any], block: tuple[int, ...]) -> tuple[Array, Array]:
        """Return the byte address of every element of the ``block`` at ``corner`` and whether it is in the tensor.

        A coordinate may be an array: the rows of a gather.
        """
        size = format_of(self.dtype).size_bytes
        addresses: Array = np.asarray(self.address, np.int64)
        inside: Array = np.asarray(1, np.bool_)
        rank = len(self.shape)
        for axis, (first, extent) in enumerate(zip(corner, block, strict=True)):
            steps = np.asarray(first, np.int64) if np.ndim(first) else int(first) + np.arange(extent, dtype=np.int64)
            steps = steps.reshape((-1,) + (1,) * (rank - 1 - axis))
            addresses = addresses + steps * (self.strides[axis] * size)
            inside = inside & (steps >= 0) & (steps < self.shape[axis])
        return addresses, inside

    def read(self, memory: GlobalMemory, corner: Iterable[Any], block: tuple[int, ...]) -> Array:
        """Return the block at ``corner``; what is outside of the tensor is zero or NaN."""
        addresses, inside = self.places(corner, block)
        found = memory.load(addresses, inside, self.dtype)
        return np.where(inside, found, found.dtype.type(np.nan)) if self.pad_nan else found

    def write(self, memory: GlobalMemory, corner: Iterable[Any], values: Array) -> None:
        """Write the block at ``corner``; what is outside of the tensor is dropped."""
        addresses, inside = self.places(corner, np.shape(values))
        memory.store(addresses, inside, self.dtype, values)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemDesc:
    """A tile in SMEM or TMEM: a view of somebody's array of bits, and the element type.

    An emulator makes one over a slot of its ring; every view below shares the array. Strides may be any.
    """

    bits: Array
    dtype: str

    @classmethod
    def new(cls, shape: tuple[int, ...], dtype: str) -> MemDesc:
        """Return a tile of its own, poisoned."""
        return cls(bits=poison(shape, dtype), dtype=dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents in elements."""
        return self.bits.shape

    def load(self) -> Array:
        """Return the values, a copy."""
        return np.array(format_of(self.dtype).decode(self.bits))

    def store(self, values: Array) -> None:
        """Write values that have the tile's shape."""
        self.bits[...] = format_of(self.dtype).encode(np.asarray(values))

    def fill_poison(self) -> None:
        """Make every element one that nobody wrote."""
        self.bits[...] = poison((1,), self.dtype)[0]

    def transpose(self, order: tuple[int, ...]) -> MemDesc:
        """Return a view with dimension ``order[i]`` as dimension ``i``."""
        return MemDesc(bits=self.bits.transpose(order), dtype=self.dtype)

    def subslice(self, offsets: Iterable[int], shape: Iterable[int]) -> MemDesc:
        """Return the view of ``shape`` elements at ``offsets``.

        Raises ``AccessError`` where it is not inside the tile.
        """
        parts = tuple(slice(start, start + size) for start, size in zip(offsets, shape, strict=True))
        if any(part.start < 0 or part.stop > size for part, size in zip(parts, self.shape, strict=True)):
            raise AccessError(f"takes a slice that is not inside the tile of {self.shape}", "check the offsets")
        return MemDesc(bits=self.bits[parts], dtype=self.dtype)

    def index(self, position: int) -> MemDesc:
        """Return the view of one element of the first dimension.

        Raises ``AccessError`` where there is no such element.
        """
        if not 0 <= position < self.shape[0]:
            raise AccessError(f"takes buffer {position} of {self.shape[0]}", "check the index")
        return MemDesc(bits=self.bits[position], dtype=self.dtype)

    def reshape(self, shape: tuple[int, ...]) -> MemDesc:
        """Return a view of another shape with the elements in the same order.

        Raises ``AccessError`` where the tile's strides do not allow one.
        """
        view = self.bits.reshape(shape)
        if not np.shares_memory(view, self.bits):
            raise AccessError("gives a transposed or sliced tile another shape", "reshape before slicing")
        return MemDesc(bits=view, dtype=self.dtype)

    def reinterpret(self, shape: tuple[int, ...], dtype: str) -> MemDesc:
        """Return a view of the same bytes as elements of another type, from the first byte on.

        With equal leading dimensions each row is read under the new type, which is how tensor memory shares columns;
        otherwise the tile must be one piece. Raises ``AccessError`` where neither fits.
        """
        storage = format_of(dtype).storage
        try:
            if shape[:-1] == self.shape[:-1]:
                return MemDesc(bits=self.bits.view(storage)[..., : shape[-1]], dtype=dtype)
            flat = self.reshape((-1,)).bits.view(storage)
            return MemDesc(bits=flat[: int(np.prod(shape))].reshape(shape), dtype=dtype)
        except (ValueError, IndexError):
            raise AccessError("reads a sliced tile under another type", "reinterpret before slicing") from None
