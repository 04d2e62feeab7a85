"""What a group has the engines do: TMA, wgmma, tcgen05, plain asynchronous copies; barriers and fences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from twillgpu.emulate.gluon.dtypes import F32, DType
from twillgpu.emulate.gluon.given import Given, numbers, plain
from twillgpu.emulate.gluon.layouts import no_clusters
from twillgpu.emulate.gluon.runtime import Memory, Runtime, drain
from twillgpu.emulate.gluon.tile import Tile
from twillgpu.emulate.memory import AccessError, Descriptor, Lanes
from twillgpu.emulate.numbers import Array, format_of, poison, rounded
from twillgpu.emulate.ops_product import multiply
from twillgpu.emulate.steps import Action, Arrive, Cell, Commit, Fence, Wait, Work
from twillgpu.errors import InputError, UnsupportedError

_COMBINE = {
    "add": np.add, "min": np.minimum, "max": np.maximum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockType:
    """The type of the blocks that a TMA descriptor moves."""

    shape: list[int]
    element_ty: DType
    layout: Given

    @property
    def nbytes(self) -> int:
        """Bytes of a block."""
        return prod(self.shape) * self.element_ty.size_bytes


class TiledDescriptor:
    """A TMA descriptor in a kernel."""

    def __init__(self, descriptor: Descriptor, block: Sequence[int], dtype: DType, layout: Given) -> None:
        self.descriptor, self.block, self.dtype, self.layout = descriptor, tuple(block), dtype, layout

    @property
    def block_shape(self) -> list[int]:
        """Extents of a block."""
        return list(self.block)

    @property
    def block_type(self) -> BlockType:
        """Type of a block."""
        return BlockType(shape=list(self.block), element_ty=self.dtype, layout=self.layout)

    @property
    def shape(self) -> list[int]:
        """Extents of the tensor."""
        return list(self.descriptor.shape)

    @property
    def strides(self) -> list[int]:
        """Strides of the tensor in elements."""
        return list(self.descriptor.strides)

    @property
    def nbytes_per_cta(self) -> int:
        """Bytes of a block."""
        return self.block_type.nbytes


class InFlight(Tile):
    """A result of ``warpgroup_mma``: there when its group has drained it.

    ``handed``: a wait has returned it, so that it may be used as a tile.
    """

    def __init__(self, runtime: Runtime, cell: Cell, values: Array, dtype: DType, *, handed: bool = False) -> None:
        super().__init__(values, dtype)
        self.runtime, self.cell, self.handed = runtime, cell, handed
        self.finished: list[Array] = []

    @property
    def values(self) -> Array:
        """The values; poison, and a finding, where they are not known to be there."""
        session = self.runtime.session
        if not session.drained(self.cell):
            session.post(Work(session.label(), "simt", uses=(self.cell,)))
            return self._values
        if not self.handed:
            raise InputError(
                "the kernel",
                "an accumulator is used that no warpgroup_mma_wait has returned",
                "use what the wait returns",
            )
        return self.finished[0] if self.finished else self._values

    def waited(self) -> InFlight:
        """Return what a wait returns."""
        twin = InFlight(self.runtime, self.cell, self._values, self.dtype, handed=True)
        twin.finished = self.finished
        return twin

    def current(self) -> Array:
        """Return the values as they are when the next product begins."""
        return self.finished[0] if self.finished else self._values


class Engines:
    """The functions, bound to the block under way."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime

    def init(self, mbarrier: Memory, count: Given) -> None:
        """``mbarrier.init``."""
        self.runtime.session.start_barrier(mbarrier.view, int(plain(count)))

    def invalidate(self, mbarrier: Memory) -> None:
        """``mbarrier.invalidate``."""
        self.runtime.session.end_barrier(mbarrier.view)

    def wait(self, mbarrier: Memory, phase: Given, pred: Given = True, deps: Given = ()) -> None:  # noqa: ARG002  # part of Gluon's signature
        """``mbarrier.wait``. The parity says which phase is meant: of those that the group can still meet, the last
        one that it knows to be complete, or the next.
        """
        if not pred:
            return
        session = self.runtime.session
        barrier = session.barrier(mbarrier.view)
        known = session.machine.order.phases_known(session.number, barrier)
        target = known - (int(phase) ^ known) % 2
        session.post(Wait(session.label(), barrier, target))

    def expect(self, mbarrier: Memory, bytes_per_cta: Given = None, pred: Given = True, **named: Given) -> None:
        """``mbarrier.expect``: one arrival, which announces bytes (3.6 calls them ``bytes``)."""
        self._arrive(mbarrier, int(named["bytes"] if bytes_per_cta is None else bytes_per_cta), pred)

    def arrive(self, mbarrier: Memory, *, count: Given = 1, pred: Given = True) -> None:
        """``mbarrier.arrive``."""
        for _ in range(int(plain(count))):
            self._arrive(mbarrier, 0, pred)

    def tma_load(
        self,
        tensor_desc: TiledDescriptor,
        coord: Given,
        barrier: Memory,
        result: Memory,
        pred: Given = True,
        **options: Given,
    ) -> None:  # as given
        """``tma.async_load``."""
        _alone(options)
        if not pred:
            return
        session, view = self.runtime.session, result.view
        corner, block = _corner(tensor_desc, coord, result), tensor_desc.block
        memory = session.place.memory

        def write() -> None:
            values = tensor_desc.descriptor.read(memory, corner, block)
            view.write(values.reshape(view.shape))

        signal = (session.barrier(barrier.view), view.nbytes)
        session.work("tma", Action(view.poison, write), writes=view.touches(), signal=signal)

    def tma_store(self, tensor_desc: TiledDescriptor, coord: Given, src: Memory, cache_policy: Given = None) -> None:  # noqa: ARG002  # part of Gluon's signature
        """``tma.async_store``."""
        memory = self.runtime.session.place.memory
        self._bulk_store(
            tensor_desc, coord, src, lambda corner, values: tensor_desc.descriptor.write(memory, corner, values)
        )

    def tma_atomic(self, kind: str, tensor_desc: TiledDescriptor, coord: Given, src: Memory) -> None:
        """``tma.async_atomic_add`` and its kind."""
        memory, descriptor = self.runtime.session.place.memory, tensor_desc.descriptor

        def update(corner: list[int], values: Array) -> None:
            def change(old: Array, lanes: Lanes) -> Array:
                return rounded(_COMBINE[kind](old, values[lanes]), descriptor.dtype)

            addresses, inside = descriptor.places(corner, values.shape)
            memory.update(addresses, inside, descriptor.dtype, change)

        self._bulk_store(tensor_desc, coord, src, update)

    def store_wait(self, pendings: Given, read_only: Given = True) -> None:
        """``tma.store_wait``."""
        drain(self.runtime, "tma_store", int(plain(pendings)), reads_only=bool(plain(read_only)))

    def fence_async_shared(self, cluster: Given = False) -> None:  # noqa: ARG002  # part of Gluon's signature
        """``fence_async_shared``."""
        self.runtime.session.post(Fence(self.runtime.session.label(), "async_shared"))

    def warpgroup_mma_init(self, value: Tile) -> InFlight:
        """``warpgroup_mma_init``: a tile as an accumulator."""
        return InFlight(self.runtime, self.runtime.session.cell(), value.values, value.dtype)

    def warpgroup_mma(self, a: Given, b: Memory, acc: Tile, *, use_acc: Given = True, **options: Given) -> Tile:
        """``warpgroup_mma``: the product begins now, and is there after a wait."""
        session = self.runtime.session
        base = acc.current if isinstance(acc, InFlight) else _held(acc)
        product = _Product(a, b, options.get("precision"))
        shape = (a.shape[-2], b.shape[-1])
        if tuple(acc.shape) != shape:
            raise InputError(
                "the kernel", f"a product of {list(shape)} accumulates on {list(acc.shape)}", "use one shape"
            )
        unknown = format_of(acc.dtype.name).decode(poison(shape, acc.dtype.name))
        result, used = InFlight(self.runtime, session.cell(), unknown, acc.dtype), bool(use_acc)

        def write() -> None:
            found = product.result()
            total = found + base().astype(found.dtype) if used else found
            result.finished.append(rounded(total, acc.dtype.name))

        session.work(
            "wgmma", Action(product.read, write), reads=product.touches(), uses=product.cells(), gives=(result.cell,)
        )
        if plain(options.get("is_async")):
            return result
        drain(self.runtime, "wgmma", 0)
        return Tile(result.finished[0], acc.dtype)

    def warpgroup_mma_wait(self, num_outstanding: Given = 0, deps: Given = None) -> Given:
        """``warpgroup_mma_wait``."""
        if deps is None:
            raise InputError("the kernel", "warpgroup_mma_wait is given no deps", "give the accumulators")
        drain(self.runtime, "wgmma", int(plain(num_outstanding)))
        found = tuple(dep.waited() if isinstance(dep, InFlight) else dep for dep in deps)
        return found[0] if len(found) == 1 else found

    def tcgen05_mma(self, a: Memory, b: Memory, acc: Memory, *, use_acc: Given = True, **options: Given) -> None:
        """``tcgen05_mma``."""
        _alone(options)
        if options.get("pred", True):
            self._tensor_product(_Product(a, b, None), acc, use=bool(use_acc))
        barriers = options.get("mbarriers") or ()
        wanted = options.get("mbarrier_preds") or [True] * len(barriers)
        for barrier, one in zip(barriers, wanted, strict=True):
            self.tcgen05_commit(barrier, pred=one)

    def tcgen05_commit(self, barrier: Memory, pred: Given = True, descs: Given = ()) -> None:  # noqa: ARG002  # part of Gluon's signature
        """``tcgen05_commit``."""
        self._commit(barrier, "tcgen05", pred)

    def async_load(self, smem: Memory, pointer: Tile, mask: Given = None, **options: Given) -> None:  # noqa: ARG002  # part of Gluon's signature
        """``async_copy.async_load``."""
        session, view, addresses = self.runtime.session, smem.view, pointer.values
        active = None if mask is None else np.broadcast_to(mask.values, view.shape)
        places = np.broadcast_to(addresses, view.shape)
        dtype = pointer.dtype.element.name

        def write() -> None:
            view.write(session.place.memory.load(places, active, dtype))

        session.partition.copies[-1] += 1
        session.work("cp_async", Action(view.poison, write), writes=view.touches())

    def commit_group(self) -> None:
        """``async_copy.commit_group``."""
        self.runtime.session.partition.copies.append(0)

    def wait_group(self, num_outstanding: Given = 0) -> None:
        """``async_copy.wait_group``: copies that no group holds yet are not waited for."""
        *committed, loose = self.runtime.session.partition.copies
        newest = committed[len(committed) - int(plain(num_outstanding)) :] if int(plain(num_outstanding)) else []
        drain(self.runtime, "cp_async", loose + sum(newest))

    def copies_arrive(self, mbarrier: Memory, increment_count: Given = True) -> None:
        """``async_copy.mbarrier_arrive``."""
        if plain(increment_count):
            raise UnsupportedError("the kernel", "arrivals that raise the count they wait for", "count them at init")
        self._commit(mbarrier, "cp_async", pred=True)

    def _arrive(self, mbarrier: Memory, expected: int, pred: Given) -> None:
        if pred:
            session = self.runtime.session
            session.post(Arrive(session.label(), session.barrier(mbarrier.view), None, expected))

    def _commit(self, mbarrier: Memory, engine: str, pred: Given) -> None:
        if pred:
            session = self.runtime.session
            session.post(Commit(session.label(), session.barrier(mbarrier.view), None, engine))

    def _bulk_store(self, desc: TiledDescriptor, coord: Given, src: Memory, put: Given) -> None:
        corner, view = _corner(desc, coord, src), src.view
        held: list[Array] = []
        action = Action(lambda: held.append(view.read()), lambda: put(corner, held[0].reshape(desc.block)))
        self.runtime.session.work("tma_store", action, reads=view.touches())

    def _tensor_product(self, product: _Product, acc: Memory, *, use: bool) -> None:
        view = acc.view
        held: list[Array] = []

        def read() -> None:
            product.read()
            held.append(view.read())
            view.poison()

        def write() -> None:
            found = product.result()
            total = found + held[0].astype(found.dtype) if use else found
            view.write(rounded(total, acc.dtype.name))

        touches = view.touches()
        reads = product.touches() + (touches if use else ())
        self.runtime.session.work("tcgen05", Action(read, write), reads=reads, writes=touches)


class _Product:
    """The operands of a product: read by the engine, at any time before it is complete."""

    def __init__(self, a: Given, b: Memory, precision: Given) -> None:
        self._operands = (a, b)
        self._tf32 = b.dtype == F32 and plain(precision) in (None, "tf32")
        self._given = None if isinstance(a, Memory | InFlight) else a.values
        self._values: list[Array] = []
        if a.shape[-1] != b.shape[-2] or a.dtype.size_bytes != b.dtype.size_bytes:
            raise InputError(
                "the kernel",
                f"a product of {a.dtype} {list(a.shape)} and {b.dtype} {list(b.shape)}",
                "check the operands",
            )

    def touches(self) -> tuple[Given, ...]:
        """Return the bytes that are read."""
        return tuple(
            one for operand in self._operands if isinstance(operand, Memory) for one in operand.view.touches()
        )

    def cells(self) -> tuple[Cell, ...]:
        """Return the register results in flight that are read."""
        return tuple(operand.cell for operand in self._operands if isinstance(operand, InFlight))

    def read(self) -> None:
        """Fetch the operands."""
        a, b = self._operands
        left: Given = (
            a.view.read() if isinstance(a, Memory) else a.current() if isinstance(a, InFlight) else self._given
        )
        self._values = [left, b.view.read()]

    def result(self) -> Array:
        """Return the product of what was fetched."""
        with np.errstate(all="ignore"):
            return multiply(*self._values, tf32=self._tf32)


def _held(acc: Tile) -> Given:
    values = acc.values
    return lambda: values


def _corner(desc: TiledDescriptor, coord: Given, tile: Memory) -> list[int]:
    extents = tuple(size for size in desc.block if size != 1)
    if extents != tuple(size for size in tile.shape if size != 1) or desc.dtype.size_bytes != tile.dtype.size_bytes:
        raise AccessError(
            f"moves blocks of {desc.dtype} {list(desc.block)} to {tile.dtype} {tile.shape}", "use one shape"
        )
    return list(numbers(coord))


def _alone(options: dict[str, Given]) -> None:
    """Check that nothing is asked for that needs several blocks; a cluster of one has nobody to multicast to."""
    if plain(options.get("two_ctas")):
        raise no_clusters()
