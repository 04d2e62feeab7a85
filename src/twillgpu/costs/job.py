"""One machine op to price: its types, its entry in the machine file, and sums that all rules need."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from twillgpu.costs.pricing import at, whole
from twillgpu.errors import InputError
from twillgpu.frontend.kernel import TileType
from twillgpu.frontend.layouts import Vector
from twillgpu.graph.layout import owners
from twillgpu.graph.record import Op, Use, Work
from twillgpu.machine.record import Machine, OpPrice

WARP = 32
"""Threads of a warp."""
SUB_PARTITIONS = 4
"""Warp schedulers of an SM; a warp only ever uses the lanes of its own."""
SMEM_PARTS = 4
"""See ``Job.smem_access``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A machine op inside ``op``, and how the machine file says to price it."""

    op: Op
    work: Work
    entry: OpPrice
    machine: Machine

    def figure(self, path: str) -> float:
        """Return a figure of the machine; raises ``InputError`` that says what to add."""
        return self.machine.figure(path)

    def fail(self, what: str, remedy: str) -> InputError:
        """Return the error to raise about this op."""
        return InputError(at(self.op), f"{self.work.opcode}: {what}", remedy)

    @property
    def tile(self) -> TileType:
        """The tile that the op works on: its first result with a shape, else its largest operand."""
        for kind in self.work.results:
            if kind.shape:
                return kind
        tiles = [kind for kind in self.work.operands if kind.shape]
        return max(tiles, key=lambda kind: math.prod(kind.shape)) if tiles else TileType(space="scalar")

    @property
    def schedulers(self) -> int:
        """Warp schedulers that the op's warps keep busy."""
        return min(self.op.warps, SUB_PARTITIONS)

    def operand(self, index: int) -> TileType:
        """Return the type of one operand; raises ``InputError`` where there are fewer."""
        if index >= len(self.work.operands):
            raise self.fail(f"operand {index} is missing", "give the op a cost in a graph file")
        return self.work.operands[index]

    def bytes_of(self, kind: TileType) -> int:
        """Return the size of a tile in bytes, without copies."""
        return math.ceil(math.prod(kind.shape) * self.bits_of(kind) / 8)

    def bits_of(self, kind: TileType) -> int:
        """Return the bits of an element: ``f8E4M3FN`` has 8, a flag takes 8, a pointer 64."""
        if kind.dtype.startswith("ptr") or kind.dtype == "index":
            return 64
        match = re.fullmatch(r"(?:i|u|si|ui|f|bf|tf)(\d+)(?:E\d+M\d+\w*)?", kind.dtype)
        if match is None:
            raise self.fail(f"unknown element type {kind.dtype!r}", "give the op a cost in a graph file")
        return max(8, int(match.group(1)))

    def use(self, unit: str, cycles: float, amount: int = 1) -> tuple[Use, ...]:
        """Return a run on a unit from the start of the op, none where the machine does not model the unit."""
        length = whole(cycles)
        modelled = any(known.name == unit for known in self.machine.units)
        return (Use(unit=unit, cycles=length, amount=amount),) if modelled and length else ()

    def shares(self, unit: str, fraction: float) -> int:
        """Return how many shares of ``unit`` a use of this fraction of its rate holds, at least one."""
        capacity = next((known.capacity for known in self.machine.units if known.name == unit), 1)
        return min(capacity, max(1, whole(capacity * fraction)))

    def smem_access(self, size_bytes: float) -> tuple[Use, ...]:
        """Return the use of the SMEM port by an access of the warps: a quarter of the port for four times as long.

        The port serves the tensor core and the warps by turns. A run at the full rate would forbid a tensor core op
        that takes half of it, and the other way round; the quarter leaves the same sum and lets them overlap. The
        run may last longer than the op; issue and latency are those of an idle port.
        """
        capacity = next((known.capacity for known in self.machine.units if known.name == "smem_port"), 1)
        amount = max(1, capacity // SMEM_PARTS)
        held = size_bytes / self.figure("smem.bytes_per_cycle")
        return self.use("smem_port", held * capacity / amount, amount)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How a register tile lies over threads: for each dimension the elements of a thread, the lanes of a warp and
    the warps that hold different ones.
    """

    thread: tuple[int, ...]
    lanes: tuple[int, ...]
    warps: tuple[int, ...]

    @property
    def per_thread(self) -> int:
        """Elements of a thread, copies of other threads' elements included."""
        return math.prod(self.thread)


def spread(kind: TileType, warps: int) -> Spread:
    """Return how a tile is spread; a tile whose layout is not known, or is one for more warps, lies evenly over
    all threads of ``warps``.
    """
    found = owners(kind)
    if found is None:
        return _even(kind, warps)
    known = Spread(
        thread=_counts(found.register, kind.shape),
        lanes=_counts(found.lane, kind.shape),
        warps=_counts(found.warp, kind.shape),
    )
    fits = known.per_thread * WARP * warps >= math.prod(kind.shape)
    return known if fits else _even(kind, warps)


def _counts(bases: tuple[Vector, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Count positions along each dimension; a vector that leaves the shape (a sub-tile's) moves nothing."""
    inside = {vector for vector in bases if all(step < size for step, size in zip(vector, shape, strict=True))}
    return tuple(2 ** sum(1 for vector in inside if vector[axis]) for axis in range(len(shape)))


def _even(kind: TileType, warps: int) -> Spread:
    elements = math.prod(kind.shape)
    each = max(1, math.ceil(elements / (WARP * warps)))
    ones = (1,) * max(0, len(kind.shape) - 1)
    return Spread(thread=(*ones, each), lanes=(*ones, 1), warps=(*ones, 1))
