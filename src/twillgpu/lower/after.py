"""What the groups do after the loop."""

from __future__ import annotations

from collections.abc import Iterator

from twillgpu.frontend.kernel import KernelOp, TileType
from twillgpu.graph.body import tile_bytes
from twillgpu.graph.kinds import VIEWS
from twillgpu.lower.duty import TMA_STORES, has_effect, loader, target_of, wide, writes_local
from twillgpu.lower.outside import Outside, tile_access, tile_use
from twillgpu.lower.record import (
    Arrive,
    Commit,
    Drain,
    Engine,
    Execute,
    Fence,
    Get,
    Instruction,
    Put,
    Ring,
    Wait,
)


class After:
    """Writes ``after`` of every group: ``plan`` first, for the rings and barriers; ``write`` when the loop is known.

    Attributes:
        finals: the barrier that says that the last iteration has written a ring, by ring; the groups that signal it,
            and whether by the completion of tensor core work.
        handed: the barrier of each carried result that another group needs.
        staging: the ring of each TMA store.
        crowded: the barrier that says that the place of a staging ring is no longer in use by the loop, and by whom.
    """

    def __init__(self, out: Outside, owners: dict[str, int | None]) -> None:
        self.out = out
        self.owners = owners
        self.finals: dict[str, tuple[str, dict[int, set[Engine]]]] = {}
        self.handed: dict[str, str] = {}
        self.staging: dict[str, Ring] = {}
        self.crowded: dict[str, tuple[str, dict[int, set[Engine]]]] = {}
        self.drained: dict[str, str] = {}
        """The barrier that says that a staging ring in the place of loop buffers was read, by ring."""
        self.again: set[str] = set()
        """TMA stores whose staging ring is at the place of an earlier one of the same group."""

    # Rings and barriers

    def plan(self) -> None:
        """Add rings and barriers."""
        for group, duty in enumerate(self.out.duties):
            for name in duty.after:
                self._plan_reads(group, self.out.ops[name])
        for result in self._received():
            kind = self.out.types[result]
            tile = TileType(space="smem", shape=kind.shape, dtype=kind.dtype)
            self._plan_handover(result, tile)
            self.handed[result] = self.out.add_barrier(f"{result}.ready", 1, f"{result} -> work after the loop")
            receivers = {group for group, duty in enumerate(self.out.duties) if result in duty.receives}
            self.out.add_free(f"{result}.handover", receivers)
        for group, duty in enumerate(self.out.duties):
            for name in duty.after:
                op = self.out.ops[name]
                if op.opcode in TMA_STORES:
                    self._plan_staging(group, op)

    def _plan_handover(self, result: str, tile: TileType) -> None:
        name, size = f"{result}.handover", self.out.room.aligned("smem", tile_bytes(tile))
        place = self.out.room.place("smem", size)
        if place is not None:
            self.out.add_ring(name, "smem", tile, (result,), place)
            return
        owner = self.owners[result]
        self._over_the_loop(-1 if owner is None else owner, name, tile, (result,), size)

    def _received(self) -> dict[str, None]:
        return {result: None for duty in self.out.duties for result in duty.receives}

    def _plan_reads(self, group: int, op: KernelOp) -> None:
        for value in self.out.memory_operands(op):
            ring = self.out.ring_of(value)
            if ring is None or ring.scope != "iteration" or ring.name in self.finals:
                continue
            writers = {
                one: engines
                for one, engines in self.out.loop_users(ring.name).items()
                if one != group or "tcgen05" in engines
            }
            if writers:
                barrier = self.out.add_barrier(
                    f"{ring.name}.final", len(writers), f"{ring.name} of the last iteration -> {op.name}"
                )
                self.finals[ring.name] = (barrier, writers)
                self._reopen(ring, set(writers) - {group})

    def _reopen(self, ring: Ring, writers: set[int]) -> None:
        """Hold the next tile's writes back until a ring of the loop was read after it, unless they wait for its
        initial value anyway.
        """
        begun = any(
            writes_local(self.out.ops[name]) and self.out.ring_of(target_of(self.out.ops[name])) == ring
            for duty in self.out.duties
            for name in duty.before
        )
        if not begun and writers:
            self.out.add_free(ring.name, self.out.after_users(ring.name))
            if self.out.persistent:
                self.out.reopened[f"{ring.name}.free"] = writers

    def _plan_staging(self, group: int, op: KernelOp) -> None:
        kind = self.out.types[op.operands[1]]
        layout = self.out.types[op.operands[0]].layout
        tile = TileType(space="smem", shape=kind.shape, dtype=kind.dtype, layout=layout)
        name, size = f"{op.name}.staging", self.out.room.aligned("smem", tile_bytes(kind))
        values = (op.operands[1],)
        place = self.out.room.place("smem", size)
        if place is not None:
            self.staging[op.name] = self.out.add_ring(name, "smem", tile, values, place)
            return
        earlier = [
            self.staging[one]
            for one in self.out.duties[group].after
            if one in self.staging and self.staging[one].bytes >= size
        ]
        if earlier:
            self.again.add(op.name)
            self.staging[op.name] = self.out.add_ring(name, "smem", tile, values, earlier[0].offset_bytes)
            return
        self.staging[op.name] = self._over_the_loop(group, name, tile, values, size)

    def _over_the_loop(self, group: int, name: str, tile: TileType, values: tuple[str, ...], size: int) -> Ring:
        """Place a staging ring where the loop, which is over then, has its buffers."""
        mine = [ring for ring in self.out.rings.values() if ring.name.endswith((".staging", ".handover"))]
        place = self.out.room.place("smem", size, mine)
        if place is None:
            raise self.out.room.fail(name, "smem", size)
        ring = self.out.add_ring(name, "smem", tile, values, place)
        users: dict[int, set[Engine]] = {}
        for other in self._overlapping(ring):
            for one, engines in self.out.loop_users(other.name).items():
                if engines != {"tma"}:
                    users.setdefault(one, set()).update(engines)
        writers = {one for other in self._overlapping(ring) for one in self._writers(other)} - {group}
        if self.out.persistent and writers:
            # They wait for the staging ring in the next tile; that they signal too keeps them within one phase of it.
            users |= {one: users.get(one, set()) for one in writers}
            done = f"{name}.free"
            if not name.endswith(".handover"):
                done = self.drained[name] = self.out.add_barrier(f"{name}.drained", 1, f"{name} -> the next tile")
            self.out.reopened[done] = writers
        others = {one: engines for one, engines in users.items() if one != group or "tcgen05" in engines}
        if others:
            barrier = self.out.add_barrier(f"{name}.room", len(others), f"end of the loop -> {name}")
            self.crowded[name] = (barrier, others)
        return ring

    def _writers(self, ring: Ring) -> set[int]:
        """Return the groups that write a ring in the loop or before it."""
        fixed = {loader(self.out.sheet)} if ring.scope == "tile" else set()
        return self.out.loop_writers(ring.name) | fixed

    def _overlapping(self, ring: Ring) -> Iterator[Ring]:
        end = ring.offset_bytes + ring.bytes
        for other in (*self.out.loop_rings.values(), *self.out.rings.values()):
            if other.memory == ring.memory and other.name not in {one.name for one in self.staging.values()}:
                last = other.offset_bytes + other.depth * other.bytes
                if other.name != ring.name and other.offset_bytes < end and ring.offset_bytes < last:
                    yield other

    # Instructions

    def write(self, outstanding: dict[int, tuple[Engine, ...]]) -> None:
        """Write ``after`` of every group; ``outstanding``: engines with work that the loop has not waited for."""
        for group, duty in enumerate(self.out.duties):
            region = self.out.after[group]
            left = outstanding.get(group, ())
            region += (Drain(engine=engine, pending=0) for engine in left if engine in ("wgmma", "cp_async"))
            self._signals(group, region)
            self._ops(group, region, [self.out.ops[name] for name in duty.after])
            if "tma_store" in left or any(name in self.staging for name in duty.after):
                region.append(Drain(engine="tma_store", pending=0))
            mine = [self.staging[name].name for name in duty.after if name in self.staging]
            region += (Arrive(use=tile_use(self.drained[ring])) for ring in mine if ring in self.drained)
            region += (Arrive(use=tile_use(f"{ring}.free")) for ring in self._freed(group, late=True))

    def _signals(self, group: int, region: list[Instruction]) -> None:
        """Say that the loop's results are there, and that its buffers are free."""
        for barrier, writers in (*self.finals.values(), *self.crowded.values()):
            if group in writers:
                if self.out.persistent and len(writers) > 1:
                    # A group that is a tile ahead (after one without iterations) must not arrive twice in a phase.
                    region.append(Wait(use=tile_use(barrier, 1)))
                use = tile_use(barrier)
                tensor = "tcgen05" in writers[group]
                region.append(Commit(engine="tcgen05", use=use) if tensor else Arrive(use=use))
        for ring in self._freed(group, late=False):
            tensor = "tcgen05" in self.out.loop_users(ring).get(group, ())
            use = tile_use(f"{ring}.free")
            region.append(Commit(engine="tcgen05", use=use) if tensor else Arrive(use=use))
        for result, barrier in self.handed.items():
            if self.owners[result] == group:
                if f"{result}.handover" in self.out.frees:
                    region.append(Wait(use=tile_use(f"{result}.handover.free", 1)))
                if f"{result}.handover" in self.crowded:
                    region.append(Wait(use=tile_use(self.crowded[f"{result}.handover"][0])))
                region.append(Put(value=result, iteration=None, access=tile_access(f"{result}.handover")))
                region.append(Arrive(use=tile_use(barrier)))

    def _freed(self, group: int, *, late: bool) -> list[str]:
        """Return the rings that a group is done with: after its work behind the loop (``late``), or before it."""
        return [
            ring
            for ring, users in self.out.frees.items()
            if group in users and (ring.endswith(".handover") or group in self.out.after_users(ring)) == late
        ]

    def _ops(self, group: int, region: list[Instruction], ops: list[KernelOp]) -> None:
        done: set[str] = set()
        for op in ops:
            for value in op.operands:
                if value in self.out.duties[group].receives and value not in done:
                    done.add(value)
                    region.append(Wait(use=tile_use(self.handed[value])))
                    region.append(Get(value=value, iteration=None, access=tile_access(f"{value}.handover")))
            self._wait_for_memory(region, op, done)
            self._op(region, op)

    def _wait_for_memory(self, region: list[Instruction], op: KernelOp, done: set[str]) -> None:
        for value in self.out.memory_operands(op):
            ring = self.out.ring_of(value)
            if ring is None or ring.name in done or ring.name not in self.finals:
                continue
            done.add(ring.name)
            region.append(Wait(use=tile_use(self.finals[ring.name][0])))

    def _op(self, region: list[Instruction], op: KernelOp) -> None:
        if op.opcode in TMA_STORES:
            self._store(region, op)
        elif op.opcode in VIEWS or not (has_effect(op) or writes_local(op) or self._works(op)):
            self.out.batch(region, op)
        else:
            self.out.perform(region, op, "after")

    def _works(self, op: KernelOp) -> bool:
        return any(wide(result.type) for result in op.results)

    def _store(self, region: list[Instruction], op: KernelOp) -> None:
        ring = self.staging[op.name]
        crowded = self.crowded.get(ring.name)
        if crowded is not None:
            region.append(Wait(use=tile_use(crowded[0])))
        if op.name in self.again:
            region.append(Drain(engine="tma_store", pending=0, reads_only=True))
        region.append(Put(value=op.operands[1], iteration=None, access=tile_access(ring.name)))
        region.append(Fence(kind="async_shared"))
        region.append(Execute(op=op.name, members=(op.name,), engine="tma_store", reads=(tile_access(ring.name),)))
