"""The instructions before and after the loop: fixed buffers, initial values in TMEM, results.

Scope of everything here is the tile: a barrier has one phase for each, and a buffer is free again when all who read
it have said so, which matters only where a block works on several tiles.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from twillgpu.errors import TwillError
from twillgpu.frontend.kernel import KernelOp, TileType
from twillgpu.graph.body import tensor_memory_bytes, tile_bytes
from twillgpu.graph.kinds import ALLOCS
from twillgpu.lower.duty import LOADS, Duty, target_of, writes_local
from twillgpu.lower.flow import IN_MEMORY, values_read
from twillgpu.lower.record import (
    Access,
    Barrier,
    BarrierUse,
    Commit,
    Drain,
    Engine,
    Execute,
    Fence,
    Instance,
    Instruction,
    Iteration,
    Memory,
    Ring,
    Wait,
)
from twillgpu.lower.room import Room
from twillgpu.lower.sheet import Sheet
from twillgpu.lower.steps import Step
from twillgpu.lower.storage import Touch

_PRODUCTS: dict[str, Engine] = {
    "ttng.warp_group_dot": "wgmma",
    "ttng.tc_gen5_mma": "tcgen05",
    "ttng.tc_gen5_mma_scaled": "tcgen05",
}


def tile_use(barrier: str, lag: int = 0) -> BarrierUse:
    """Return the phase of a barrier for this tile, or ``lag`` tiles before."""
    return BarrierUse(barrier=barrier, instance=Instance(scope="tile", lag=lag))


def tile_access(ring: str) -> Access:
    """Return the instance of a ring for this tile."""
    return Access(ring=ring, instance=Instance(scope="tile"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """What the loop does: its steps by name, and what they do to rings."""

    sheet: Sheet
    steps: dict[str, Step]
    touches: tuple[Touch, ...]


class Outside:
    """Builds ``before`` and ``after`` of every group, with the rings and barriers that they need.

    Attributes:
        rings, barriers: those of the tile.
        before, after: instructions by group.
        frees: for each ring that is written once per tile, the groups that say when the next tile may write it.
        reopened: barriers that groups wait for before a tile, since buffers of the loop were used otherwise.
    """

    def __init__(
        self, loop: Loop, room: Room, duties: list[Duty], loop_rings: dict[str, Ring], *, persistent: bool
    ) -> None:
        sheet = loop.sheet
        self.steps = loop.steps
        self.touches = loop.touches
        self.sheet = sheet
        self.room = room
        self.duties = duties
        self.loop_rings = loop_rings
        self.persistent = persistent
        self.rings: dict[str, Ring] = {}
        self.frees: dict[str, set[int]] = {}
        self.reopened: dict[str, set[int]] = {}
        self.barriers: dict[str, Barrier] = {}
        self.before: list[list[Instruction]] = [[] for _ in duties]
        self.after: list[list[Instruction]] = [[] for _ in duties]
        self.ops = {op.name: op for op in (*sheet.kernel.before, *sheet.kernel.after)}
        self.made = {result.name: op for op in self.ops.values() for result in op.results}
        self.types = dict(sheet.body.types)
        self.types |= {result.name: result.type for op in sheet.kernel.after for result in op.results}
        self.types |= {carried.result: carried.argument.type for carried in sheet.kernel.loop.carried}
        self.ring_by_root = {value: name for name, ring in loop_rings.items() for value in ring.values}

    # Storage

    def root(self, value: str) -> str:
        """Return the memory tile that a value is a view of."""
        while (op := self.made.get(value)) is not None and op.opcode not in ALLOCS and op.operands:
            value = op.operands[0]
        return self.sheet.root(value) if value in self.sheet.body.types else value

    def ring_of(self, value: str) -> Ring | None:
        """Return the ring of a memory tile or of a view of it."""
        name = self.ring_by_root.get(self.root(value))
        return None if name is None else self.rings.get(name) or self.loop_rings.get(name)

    def known_ring(self, value: str) -> Ring:
        """Return the ring of a memory tile that has one."""
        ring = self.ring_of(value)
        if ring is None:
            raise TwillError(
                value, "this memory tile is in no buffer", "this is a defect of twillgpu: please report it"
            )
        return ring

    def access(self, ring: Ring, region: str) -> Access:
        """Return the instance of a ring that exists before or after the loop."""
        if ring.scope == "tile":
            return tile_access(ring.name)
        iteration = (
            Iteration(anchor="first", offset=-1) if region == "before" else Iteration(anchor="last", offset=-1)
        )
        return Access(ring=ring.name, instance=Instance(scope="iteration", iteration=iteration))

    def add_ring(
        self, name: str, memory: Memory, kind: TileType, values: tuple[str, ...], place: int | None = None
    ) -> Ring:
        """Add a ring of one copy for the tile; raises ``InputError`` where there is no room."""
        size = self.room.aligned(memory, tensor_memory_bytes(kind) if memory == "tmem" else tile_bytes(kind))
        place = self.room.place(memory, size) if place is None else place
        if place is None:
            raise self.room.fail(name, memory, size)
        ring = Ring(
            name=name,
            memory=memory,
            bytes=size,
            depth=1,
            offset_bytes=place,
            scope="tile",
            tile=TileType(
                space=memory, shape=kind.shape, dtype=kind.dtype, layout=_memory_layout(kind), mutable=True
            ),
            values=values,
        )
        self.rings[name] = self.room.add(ring)
        self.ring_by_root |= dict.fromkeys(values, name)
        return ring

    def add_barrier(self, name: str, arrivals: int, serves: str) -> str:
        """Add a barrier with one phase per tile, and return its name."""
        self.barriers[name] = Barrier(name=name, copies=1, arrivals=arrivals, scope="tile", serves=(serves,))
        return name

    def add_free(self, ring: str, users: set[int]) -> None:
        """Where a block works on several tiles, let all ``users`` of a ring say that they are done with it."""
        if self.persistent and users and ring not in self.frees:
            self.frees[ring] = users
            self.add_barrier(f"{ring}.free", len(users), f"users of {ring} -> the next tile")

    def fixed_buffers(self) -> None:
        """Place the buffers that are filled before the loop and are no storage of the loop."""
        used = {self.root(value) for value in self._memory_values()}
        for op in self.sheet.kernel.before:
            if op.opcode in ALLOCS and op.results[0].name in used - set(self.ring_by_root):
                kind = op.results[0].type
                memory: Memory = "tmem" if kind.space == "tmem" else "smem"
                same = [one for one in self.sheet.kernel.before if one.operands == op.operands and op.operands]
                values = [one.results[0].name for one in (op, *same) if one.opcode == op.opcode]
                self.add_ring(op.name, memory, kind, tuple(dict.fromkeys(values)))
        for op in self.sheet.kernel.before:
            if op.opcode in LOADS and any(op.name in duty.before for duty in self.duties):
                filled = self.allocs(op)
                if not filled:
                    kind = op.results[0].type
                    layout = self.types[op.operands[0]].layout
                    tile = TileType(space="smem", shape=kind.shape, dtype=kind.dtype, layout=layout)
                    self.add_ring(op.name, "smem", tile, (op.results[0].name,))

    def _memory_values(self) -> Iterator[str]:
        for name in self.sheet.ops:
            yield from (value for value in values_read(self.sheet, name) if self.types[value].space in IN_MEMORY)
        for duty in self.duties:
            for name in (*duty.before, *duty.after):
                yield from self.memory_operands(self.ops[name])

    def memory_operands(self, op: KernelOp) -> tuple[str, ...]:
        """Return the operands of an op that are memory tiles, and the tile that an allocation with content makes."""
        made = tuple(one.name for one in op.results if op.opcode in ALLOCS and op.operands)
        return (*made, *(value for value in op.operands if self.types[value].space in IN_MEMORY))

    def allocs(self, op: KernelOp) -> tuple[KernelOp, ...]:
        """Return the allocations in rings that a TMA load fills."""
        return tuple(
            one
            for one in self.ops.values()
            if one.opcode == "ttg.local_alloc"
            and one.operands == (op.results[0].name,)
            and one.results[0].name in self.ring_by_root
        )

    # Who touches what

    def loop_users(self, ring: str) -> dict[int, set[Engine]]:
        """Return the groups that touch a ring in the loop, and the engines that they use for it."""
        found: dict[int, set[Engine]] = {}
        reading = (name for name in self.sheet.ops if any(one.ring == ring for one in self.fixed_reads(name)))
        for name in (*(touch.step for touch in self.touches if touch.ring == ring), *reading):
            found.setdefault(self.steps[name].group, set()).add(self.steps[name].engine)
        return found

    def loop_writers(self, ring: str) -> set[int]:
        """Return the groups that write a ring in the loop."""
        return {self.steps[touch.step].group for touch in self.touches if touch.ring == ring and touch.writes}

    def fixed_reads(self, name: str) -> tuple[Access, ...]:
        """Return the buffers of the tile that an op of the loop reads."""
        rings = (self.ring_of(value) for value in self._roots(name))
        return tuple(
            dict.fromkeys(tile_access(ring.name) for ring in rings if ring is not None and ring.scope == "tile")
        )

    def _roots(self, name: str) -> Iterator[str]:
        for value in values_read(self.sheet, name):
            if self.types[value].space in IN_MEMORY:
                yield self.sheet.root(value)

    def after_users(self, ring: str) -> set[int]:
        """Return the groups that touch a ring after the loop."""
        return {
            group for group, duty in enumerate(self.duties) if any(self._touches(name, ring) for name in duty.after)
        }

    def _touches(self, name: str, ring: str) -> bool:
        found = (self.ring_of(value) for value in self.memory_operands(self.ops[name]))
        return any(one is not None and one.name == ring for one in found)

    def batch(self, region: list[Instruction], op: KernelOp) -> None:
        """Append an op that every group computes for itself, in one instruction with those just before it."""
        last = region[-1] if region else None
        if isinstance(last, Execute) and not last.op and last.iteration is None:
            region[-1] = replace(last, members=(*last.members, op.name))
        else:
            region.append(Execute(op="", members=(op.name,)))

    def perform(self, region: list[Instruction], op: KernelOp, place: str) -> None:
        """Append an op that one group executes: with its accesses, and with the wait for its completion where an
        engine does it.
        """
        engine = _PRODUCTS.get(op.opcode, "simt")
        target = self.ring_of(target_of(op)) if writes_local(op) else None
        read = (self.ring_of(value) for value in self.memory_operands(op))
        reads = tuple(dict.fromkeys(self.access(ring, place) for ring in read if ring is not None and ring != target))
        writes = () if target is None else (self.access(target, place),)
        region.append(Execute(op=op.name, members=(op.name,), engine=engine, reads=reads, writes=writes))
        if engine == "wgmma":
            region.append(Drain(engine="wgmma", pending=0))
        elif engine == "tcgen05":
            done = self.add_barrier(f"{op.name}.done", 1, f"{op.name} -> what follows it")
            region += (Commit(engine="tcgen05", use=tile_use(done)), Wait(use=tile_use(done)))
        elif target is not None:
            region.append(Fence(kind="tmem_store" if target.memory == "tmem" else "async_shared"))


def _memory_layout(kind: TileType) -> str:
    return kind.layout if kind.space in IN_MEMORY else ""
