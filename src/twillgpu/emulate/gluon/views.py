"""Tiles in SMEM and TMEM as a kernel names them: views of bytes, and which bytes of the machine's memory they are.

SMEM is row-major whatever the layout says: a layout moves elements within a tile, alike for everybody. A column of
TMEM is 4 bytes in each of 128 lanes; its bytes are counted column by column. A tile of more rows than lanes lies in
blocks of 128 rows, side by side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from twillgpu.emulate.gluon.dtypes import DType
from twillgpu.emulate.gluon.given import Given
from twillgpu.emulate.memory import AccessError
from twillgpu.emulate.numbers import POISON_BYTE, Array, format_of
from twillgpu.emulate.steps import Touch

LANES = 128
COLUMNS = 512
COLUMN_BYTES = 4
"""Bytes of a column in one lane."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Allocation:
    """A piece of memory: its name in the source, its first byte (TMEM: column) among all pieces, its bytes."""

    name: str
    memory: str
    start: int
    data: NDArray[np.uint8]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class View:
    """A view of an allocation: ``offset`` and ``strides`` in bytes of its array, shape in elements.

    ``block_step``: bytes from one block of 128 rows to the next, 0 where there is one block. ``fault``: why the view
    may be named and not used: a predicated access is the usual reason.
    """

    allocation: Allocation
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: DType
    layout: Given = None
    block_step: int = 0
    fault: str = ""

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return prod(self.shape) * self.dtype.size_bytes

    def bits(self) -> Array:
        """Return the elements in storage type, without a copy; blocks of rows are a dimension of their own.

        Raises ``AccessError`` where the view leaves its allocation.
        """
        storage = format_of(self.dtype.name).storage
        data = self.allocation.data
        self.check()
        shape, strides = self._blocked()
        last = self.offset + sum((size - 1) * step for size, step in zip(shape, strides, strict=True))
        if self.offset < 0 or last + storage.itemsize > data.nbytes:
            raise AccessError(
                f"leaves {self.allocation.name}, which has {data.nbytes} bytes", "check shapes and slices"
            )
        return np.ndarray(shape, storage, data.data, self.offset, strides)

    def read(self) -> Array:
        """Return the values, a copy."""
        return np.array(format_of(self.dtype.name).decode(self.bits())).reshape(self.shape)

    def write(self, values: Array) -> None:
        """Write values of the view's shape, already rounded to its type."""
        bits = self.bits()
        bits[...] = format_of(self.dtype.name).encode(np.asarray(values)).reshape(bits.shape)

    def poison(self) -> None:
        """Make every element one that nobody wrote."""
        storage = format_of(self.dtype.name).storage
        self.bits()[...] = np.full(storage.itemsize, POISON_BYTE, np.uint8).view(storage)[0]

    def index(self, position: int) -> View:
        """Return one element of the first dimension; where there is none, it may not be used."""
        fault = self.fault
        if not 0 <= position < self.shape[0]:
            fault = f"uses copy {position} of {self.allocation.name}, which has {self.shape[0]}"
        offset = self.offset + position * self.strides[0]
        return replace(self, offset=offset, shape=self.shape[1:], strides=self.strides[1:], fault=fault)

    def check(self) -> None:
        """Raise ``AccessError`` where the view may not be used."""
        if self.fault:
            raise AccessError(self.fault, "check the index")

    def slice(self, first: int, count: int, dim: int) -> View:
        """Return ``count`` elements of a dimension from ``first`` on. Raises ``AccessError`` beyond its end."""
        if not 0 <= first <= first + count <= self.shape[dim]:
            raise AccessError(f"takes elements {first} to {first + count} of {self.shape[dim]}", "check the slice")
        shape = (*self.shape[:dim], count, *self.shape[dim + 1 :])
        return replace(self, offset=self.offset + first * self.strides[dim], shape=shape)

    def permute(self, order: Sequence[int]) -> View:
        """Return the view with dimension ``order[i]`` as dimension ``i``."""
        return replace(
            self, shape=tuple(self.shape[at] for at in order), strides=tuple(self.strides[at] for at in order)
        )

    def reshape(self, shape: Sequence[int]) -> View:
        """Return the elements, in order, in another shape. Raises ``AccessError`` where strides do not allow it."""
        bits = self.bits()
        view = bits.reshape(tuple(shape))
        if not np.shares_memory(view, bits):
            raise AccessError("gives a transposed or sliced tile another shape", "reshape before slicing")
        return replace(self, shape=view.shape, strides=view.strides)

    def reinterpret(self, dtype: DType, shape: Sequence[int], layout: Given) -> View:
        """Return the bytes from the view's first one on as another tile."""
        extents = tuple(shape)
        if self.allocation.memory == "tmem":
            return tensor_view(self.allocation, self.offset // COLUMN_BYTES, dtype, extents, layout)
        return shared_view(self.allocation, self.offset, dtype, extents, layout)

    def touches(self) -> tuple[Touch, ...]:
        """Return the bytes of the machine's memory that the view covers, one touch for each piece."""
        self.check()
        start = self.allocation.start
        pieces = self._columns() if self.allocation.memory == "tmem" else self._bytes()
        return tuple(
            Touch(self.allocation.memory, start + first, start + last, self.allocation.name, 0)
            for first, last in pieces
        )

    def _bytes(self) -> Iterator[tuple[int, int]]:
        dims = sorted((step, size) for step, size in zip(self.strides, self.shape, strict=True) if size > 1)
        run = self.dtype.size_bytes
        while dims and dims[0][0] == run:
            run *= dims.pop(0)[1]
        for place in product(*(range(size) for _, size in dims)):
            first = self.offset + sum(at * step for at, (step, _) in zip(place, dims, strict=True))
            yield first, first + run

    def _columns(self) -> Iterator[tuple[int, int]]:
        """Columns as bytes: column c is bytes 512 c to 512 c + 511."""
        shape, strides = self._blocked()
        lanes = len(shape) - 2
        outer = [
            (step, size) for at, (step, size) in enumerate(zip(strides[:-1], shape[:-1], strict=True)) if at != lanes
        ]
        width = self.strides[-1] * (self.shape[-1] - 1) + self.dtype.size_bytes
        for place in product(*(range(size) for _, size in outer)):
            first = self.offset + sum(at * step for at, (step, _) in zip(place, outer, strict=True))
            column, end = first // COLUMN_BYTES, -(-(first + width) // COLUMN_BYTES)
            yield column * COLUMN_BYTES * LANES, end * COLUMN_BYTES * LANES

    def _blocked(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return shape and strides with blocks of rows as a dimension of their own."""
        if not self.block_step or self.shape[-2] <= LANES:
            return self.shape, self.strides
        *copies, rows, columns = self.shape
        shape = (*copies, rows // LANES, LANES, columns)
        return shape, (*self.strides[:-2], self.block_step, *self.strides[-2:])


def shared_view(allocation: Allocation, offset: int, dtype: DType, shape: tuple[int, ...], layout: Given) -> View:
    """Return the row-major tile that begins at byte ``offset`` of an allocation in SMEM."""
    strides = [dtype.size_bytes]
    for extent in reversed(shape[1:]):
        strides.append(strides[-1] * extent)
    found = View(
        allocation=allocation,
        offset=offset,
        shape=shape,
        strides=tuple(reversed(strides[: len(shape)])),
        dtype=dtype,
        layout=layout,
    )
    found.bits()
    return found


def tensor_view(allocation: Allocation, column: int, dtype: DType, shape: tuple[int, ...], layout: Given) -> View:
    """Return the tile that begins at a column of TMEM: leading dimensions are copies side by side.

    Raises ``AccessError`` where it ends behind the last column.
    """
    copies = shape[:-2]
    pitch = dtype.size_bytes * int(getattr(layout, "col_stride", 1) or 1)
    block = columns_of(dtype, (1, shape[-1]), layout) * COLUMN_BYTES
    step = columns_of(dtype, shape, layout) * COLUMN_BYTES
    strides = [pitch, COLUMNS * COLUMN_BYTES]
    for extent in reversed(copies):
        strides.append(step)
        step *= extent
    found = View(
        allocation=allocation,
        offset=column * COLUMN_BYTES,
        shape=shape,
        strides=tuple(reversed(strides)),
        dtype=dtype,
        layout=layout,
        block_step=block if shape[-2] > LANES else 0,
    )
    if column * COLUMN_BYTES + step > COLUMNS * COLUMN_BYTES:
        raise AccessError(f"ends behind column {COLUMNS} of tensor memory", "allocate fewer columns")
    return found


def columns_of(dtype: DType, shape: tuple[int, ...], layout: Given) -> int:
    """Return the columns of one tile in TMEM."""
    pitch = dtype.size_bytes * int(getattr(layout, "col_stride", 1) or 1)
    return -(-shape[-1] * pitch // COLUMN_BYTES) * -(-shape[-2] // LANES)
