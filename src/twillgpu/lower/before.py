"""What the groups do before the loop."""

from __future__ import annotations

from twillgpu.frontend.kernel import KernelOp
from twillgpu.graph.body import tile_bytes
from twillgpu.graph.kinds import ALLOCS
from twillgpu.lower.duty import LOADS, has_effect, loader, target_of, writes_local
from twillgpu.lower.outside import Outside, tile_access, tile_use
from twillgpu.lower.record import Arrive, Execute, ExpectBytes, Get, Instruction, Ring, Wait


def write_before(out: Outside) -> None:
    """Write ``before`` of every group."""
    Before(out).write()


class Before:
    """``published``: barrier that says that a ring is filled, and the groups for which program order says it."""

    def __init__(self, out: Outside) -> None:
        self.out = out
        self.loader = loader(out.sheet)
        self.published: dict[str, tuple[str, int | None]] = {}
        self.waited: list[set[str]] = [set() for _ in out.duties]

    def write(self) -> None:
        """Fill every buffer, then let every group compute what it needs."""
        self._plan()
        for group, duty in enumerate(self.out.duties):
            region = self.out.before[group]
            region += (Wait(use=tile_use(name, 1)) for name, groups in self.out.reopened.items() if group in groups)
            for name in duty.before:
                self._op(group, region, self.out.ops[name])
            for ring in self.published:
                if group in self._users(ring):
                    self._wait(group, region, ring)

    def _plan(self) -> None:
        """Name the barrier of each ring that is filled before the loop."""
        out = self.out
        for op in out.sheet.kernel.before:
            if op.opcode in LOADS and any(op.name in duty.before for duty in out.duties):
                ring = self._loaded(op)
                self.published[ring.name] = (out.add_barrier(f"{ring.name}.full", 1, f"{op.name} -> readers"), None)
                out.add_free(ring.name, self._users(ring.name))
        for group, duty in enumerate(out.duties):
            for name in duty.before:
                op = out.ops[name]
                if writes_local(op) and not self._from_load(op):
                    ring = self._target(op)
                    others = self._users(ring.name) - {group}
                    if others:
                        done = out.add_barrier(f"{ring.name}.init", 1, f"{name} -> users")
                        self.published[ring.name] = (done, group)
                    own = set(out.loop_users(ring.name).get(group, ())) - {"simt"}
                    out.add_free(ring.name, others | ({group} if own else set()))

    def _loaded(self, op: KernelOp) -> Ring:
        filled = self.out.allocs(op)
        return self.out.known_ring(filled[0].results[0].name if filled else op.results[0].name)

    def _target(self, op: KernelOp) -> Ring:
        return self.out.known_ring(target_of(op))

    def _from_load(self, op: KernelOp) -> bool:
        if op.opcode not in ALLOCS:
            return False
        maker = self.out.made.get(op.operands[0])
        return maker is not None and maker.opcode in LOADS and op in self.out.allocs(maker)

    def _users(self, ring: str) -> set[int]:
        return set(self.out.loop_users(ring)) | self.out.after_users(ring)

    def _op(self, group: int, region: list[Instruction], op: KernelOp) -> None:
        if op.opcode in LOADS:
            self._load(group, region, op)
        elif self._from_load(op):
            return
        elif writes_local(op) or has_effect(op):
            self._wait_for_operands(group, region, op)
            self._fill(group, region, op)
        elif any(self.out.ring_of(value) for value in self.out.memory_operands(op)) and op.results[
            0
        ].type.space not in (
            "smem",
            "tmem",
        ):
            self._wait_for_operands(group, region, op)
            self.out.perform(region, op, "before")
        else:
            self.out.batch(region, op)

    def _wait_for_operands(self, group: int, region: list[Instruction], op: KernelOp) -> None:
        for value in self.out.memory_operands(op):
            ring = self.out.ring_of(value)
            if ring is not None and ring.name in self.published:
                self._wait(group, region, ring.name)

    def _wait(self, group: int, region: list[Instruction], ring: str) -> None:
        barrier, filler = self.published[ring]
        if group != filler and ring not in self.waited[group]:
            self.waited[group].add(ring)
            region.append(Wait(use=tile_use(barrier)))

    def _load(self, group: int, region: list[Instruction], op: KernelOp) -> None:
        ring = self._loaded(op)
        if group == self.loader:
            full = tile_use(self.published[ring.name][0])
            members = (op.name, *(one.name for one in self.out.allocs(op)))
            self._wait_until_free(region, ring)
            region.append(ExpectBytes(use=full, bytes=tile_bytes(op.results[0].type)))
            region.append(
                Execute(op=op.name, members=members, engine="tma", writes=(tile_access(ring.name),), completes=full)
            )
        if self._in_registers(group, op):
            self._wait(group, region, ring.name)
            region.append(Get(value=op.results[0].name, iteration=None, access=tile_access(ring.name)))

    def _in_registers(self, group: int, op: KernelOp) -> bool:
        """Return whether a group reads a loaded tile itself, not only through the allocation that it fills."""
        duty, value = self.out.duties[group], op.results[0].name
        readers = (self.out.ops[name] for name in (*duty.before, *duty.after))
        filled = self.out.allocs(op)
        return value in duty.outer or any(value in one.operands for one in readers if one not in filled)

    def _fill(self, group: int, region: list[Instruction], op: KernelOp) -> None:
        if not writes_local(op):
            self.out.perform(region, op, "before")
            return
        ring = self._target(op)
        self._wait_until_free(region, ring)
        self.out.perform(region, op, "before")
        later = [
            name
            for name in self.out.duties[group].before
            if writes_local(self.out.ops[name]) and self._target(self.out.ops[name]) == ring
        ]
        if ring.name in self.published and op.name == later[-1]:
            region.append(Arrive(use=tile_use(self.published[ring.name][0])))

    def _wait_until_free(self, region: list[Instruction], ring: Ring) -> None:
        free = f"{ring.name}.free"
        wait = Wait(use=tile_use(free, 1))
        if free in self.out.barriers and wait not in region:
            region.append(wait)
