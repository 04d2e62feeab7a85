"""Global memory: loads, stores and atomics through pointers. They happen at once, in the order of the run."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from twillgpu.emulate.gluon.dtypes import DType
from twillgpu.emulate.gluon.engines import TiledDescriptor
from twillgpu.emulate.gluon.given import Given, numbers, plain
from twillgpu.emulate.gluon.runtime import Runtime
from twillgpu.emulate.gluon.tile import Tile, cast, tile_of
from twillgpu.emulate.memory import Descriptor, Lanes
from twillgpu.emulate.numbers import Array, rounded

_ATOMICS: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor, "xchg": lambda _old, new: new,
}  # fmt: skip


class Pointers:
    """The functions, bound to the block under way."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime

    def load(self, pointer: Tile, mask: Given = None, other: Given = None, **_options: object) -> Tile:
        """``gl.load``: ``other``, or zero, where ``mask`` is false."""
        kind = pointer.dtype.element
        shape, active = self._lanes(pointer, mask)
        addresses = np.broadcast_to(pointer.values, shape)
        found = self.runtime.session.place.memory.load(addresses, active, kind.name)
        if other is not None and active is not None:
            found = np.where(active, found, cast(plain(other), kind).values).astype(found.dtype)
        return Tile(found[()], kind)

    def store(self, pointer: Tile, value: Given, mask: Given = None, **_options: object) -> None:
        """``gl.store``."""
        kind = pointer.dtype.element
        shape, active = self._lanes(pointer, mask)
        values = np.broadcast_to(cast(plain(value), kind).values, shape)
        self.runtime.session.place.memory.store(np.broadcast_to(pointer.values, shape), active, kind.name, values)

    def atomic(self, name: str, pointer: Tile, value: Given, mask: Given = None, **_options: object) -> Tile:
        """``gl.atomic_add`` and its kind; return the old values."""
        kind = pointer.dtype.element
        shape, active = self._lanes(pointer, mask)
        values = np.broadcast_to(cast(plain(value), kind).values, shape)

        def change(old: Array, lanes: Lanes) -> Array:
            return rounded(_ATOMICS[name](old, values[lanes]), kind.name)

        addresses = np.broadcast_to(pointer.values, shape)
        return Tile(self.runtime.session.place.memory.update(addresses, active, kind.name, change)[()], kind)

    def make_descriptor(
        self,
        base: Tile,
        shape: Given,
        strides: Given,
        block_shape: Given,
        layout: Given,
        padding_option: Given = "zero",
    ) -> TiledDescriptor:  # as given
        """``tma.make_tensor_descriptor``."""
        kind: DType = base.dtype.element
        found = Descriptor(
            address=int(base.values),
            shape=tuple(int(size) for size in shape),
            strides=tuple(int(step) for step in strides),
            dtype=kind.name,
            pad_nan=plain(padding_option) == "nan",
        )
        return TiledDescriptor(found, numbers(block_shape), kind, plain(layout))

    @staticmethod
    def _lanes(pointer: Tile, mask: Given) -> tuple[tuple[int, ...], Array | None]:
        if mask is None:
            return pointer.shape, None
        active = tile_of(plain(mask)).values
        shape = np.broadcast_shapes(pointer.shape, np.shape(active))
        return shape, np.broadcast_to(active, shape)
