"""Who does the work before and after the loop.

Work without effects is done by every group that needs its result. What writes memory is done once: after the loop by
the group that owns most of what it needs; before the loop by a group that touches the buffer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import prod

from twillgpu.errors import UnsupportedError
from twillgpu.frontend.kernel import Carried, KernelOp, TileType
from twillgpu.graph.body import tile_bytes
from twillgpu.graph.kinds import ALLOCS, GLOBAL_OPCODES
from twillgpu.lower.flow import IN_MEMORY, Needs
from twillgpu.lower.sheet import Sheet
from twillgpu.lower.storage import Touch

LOADS = ("tt.descriptor_load", "tt.descriptor_gather")
TMA_STORES = ("tt.descriptor_store", "tt.descriptor_scatter", "tt.descriptor_reduce")
_PURE_READS = ("tt.load", *LOADS)
_LOCAL_WRITES = (
    "ttg.local_store",
    "ttng.tmem_store",
    "ttng.tc_gen5_mma",
    "ttng.tc_gen5_mma_scaled",
    "ttng.tmem_copy",
)


@dataclass(slots=True, kw_only=True)
class Duty:
    """What one group does outside the loop.

    Attributes:
        before, after: names of kernel ops, in program order.
        receives: carried results of other groups that it needs after the loop.
        outer: values from before the loop that it needs.
    """

    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    receives: dict[str, None] = field(default_factory=dict)
    outer: dict[str, None] = field(default_factory=dict)


def has_effect(op: KernelOp) -> bool:
    """Return whether an op changes global memory, or does something that nobody reads."""
    return (op.opcode in GLOBAL_OPCODES and op.opcode not in _PURE_READS) or (
        not op.results and op.opcode not in _LOCAL_WRITES
    )


def writes_local(op: KernelOp) -> bool:
    """Return whether an op writes SMEM or TMEM."""
    return op.opcode in _LOCAL_WRITES or (op.opcode in ALLOCS and bool(op.operands))


def target_of(op: KernelOp) -> str:
    """Return the value that names the memory tile which an op writes."""
    if op.opcode in ALLOCS:
        return op.results[0].name
    return op.operands[{"ttng.tmem_store": 0, "ttg.local_store": 1, "ttng.tmem_copy": 1}.get(op.opcode, 2)]


def wide(kind: TileType) -> bool:
    """Return whether a value lies over all threads of a group."""
    return kind.space == "registers" and prod(kind.shape) > 1


class Ownership:
    """Which group has what at the end of the loop."""

    def __init__(self, sheet: Sheet, touches: Iterable[Touch]) -> None:
        self.sheet = sheet
        self.results = {carried.result: carried for carried in sheet.kernel.loop.carried}
        self.rings: dict[str, set[int]] = {}
        for touch in touches:
            if touch.step in sheet.ops and sheet.engine(touch.step) == "simt":
                self.rings.setdefault(touch.ring, set()).add(sheet.group[touch.step])

    def owner(self, result: str) -> int | None:
        """Return the group that makes a carried value, ``None`` where every group can compute it."""
        carried = self.results[result]
        found = self._makers(carried)
        if len(found) > 1:
            names = ", ".join(self.sheet.schedule.groups[group].name for group in sorted(found))
            raise UnsupportedError(
                self.sheet.kernel.loop.source or self.sheet.kernel.name,
                f"{result} is put together from values of several warp groups ({names})",
                "use a schedule in which one group makes them",
            )
        return next(iter(found), None)

    def _makers(self, carried: Carried) -> set[int]:
        sheet, found = self.sheet, set[int]()
        pending, seen = [carried.yielded], set[str]()
        while pending:
            value = pending.pop()
            if value in seen:
                continue
            seen.add(value)
            again, op = sheet.carried(value), sheet.body.inner.get(value)
            if again is not None:
                pending.append(again.yielded)
            elif op is not None and sheet.makers.get(op.name):
                found.add(sheet.group[sheet.makers[op.name][-1]])
            elif op is not None:
                pending += op.operands
        return found


def duties(sheet: Sheet, needs: tuple[Needs, ...], ownership: Ownership, ring_by_root: dict[str, str]) -> list[Duty]:
    """Return the duties of all groups; the last one is that of an additional group where no group is wide enough."""
    planner = _Planner(sheet, needs, ownership, ring_by_root)
    planner.after()
    planner.before()
    return planner.listed()


class _Planner:
    def __init__(
        self, sheet: Sheet, needs: tuple[Needs, ...], ownership: Ownership, ring_by_root: dict[str, str]
    ) -> None:
        self.sheet = sheet
        self.needs = needs
        self.ownership = ownership
        self.ring_by_root = ring_by_root
        kernel = sheet.kernel
        self.made_after = {result.name: op for op in kernel.after for result in op.results}
        self.made_before = {result.name: op for op in kernel.before for result in op.results}
        self.types = dict(sheet.body.types)
        self.types |= {carried.result: carried.argument.type for carried in kernel.loop.carried}
        self.types |= {result.name: result.type for op in kernel.after for result in op.results}
        self.wanted: list[dict[str, None]] = [{} for _ in range(len(needs) + 1)]
        self.result = [Duty() for _ in range(len(needs) + 1)]

    def listed(self) -> list[Duty]:
        extra = self.result[-1]
        used = extra.after or extra.before
        return self.result if used else self.result[:-1]

    def after(self) -> None:
        """Give every op with an effect to a group, with all that it needs: one effect after the other, so that what
        one of them needs is not held in registers while another is prepared.
        """
        for op in self.sheet.kernel.after:
            if has_effect(op) and not self._has_taken(op):
                known = [set(wanted) for wanted in self.wanted]
                self._take(self._chosen(op), op)
                for group, wanted in enumerate(self.wanted):
                    new = set(wanted) - known[group]
                    self.result[group].after += [one.name for one in self.sheet.kernel.after if one.name in new]

    def _has_taken(self, op: KernelOp) -> bool:
        return any(op.name in wanted for wanted in self.wanted)

    def _take(self, group: int, op: KernelOp) -> None:
        if op.name in self.wanted[group]:
            return
        self.wanted[group][op.name] = None
        for value in op.operands:
            self._need(group, value)

    def _need(self, group: int, value: str) -> None:
        if self.types[value].space == "token":
            for writer in self._writers(value):
                self._take(group, writer)
            return
        maker = self.made_after.get(value)
        if maker is not None:
            self._take(group, maker)
        elif value in self.ownership.results:
            if self.ownership.owner(value) not in (group, None):
                self.result[group].receives[value] = None
        else:
            self.result[group].outer[value] = None

    def _writers(self, token: str) -> list[KernelOp]:
        maker = self.made_after.get(token)
        return [maker] if maker is not None and writes_local(maker) else []

    def _chosen(self, op: KernelOp) -> int:
        """Return the group that owns most bytes of what an op needs and is wide enough, else the additional one."""
        owned: dict[int, int] = {}
        broad = False
        for value in self._leaves(op):
            kind = self.types[value]
            broad = broad or wide(kind) or kind.space == "tmem"
            for group in self._owners(value):
                owned[group] = owned.get(group, 0) + tile_bytes(kind)
        broad = broad or any(wide(self.types[value]) for value in op.operands)
        groups = self.sheet.schedule.groups
        enough = [at for at, group in enumerate(groups) if not broad or group.warps >= self.sheet.kernel.num_warps]
        if not enough:
            return len(groups)
        return max(enough, key=lambda group: (owned.get(group, 0), groups[group].warps, -group))

    def _owners(self, value: str) -> tuple[int, ...]:
        if value in self.ownership.results:
            owner = self.ownership.owner(value)
            return () if owner is None else (owner,)
        if self.types[value].space not in IN_MEMORY:
            return ()
        ring = self.ring_by_root.get(self.sheet.root(value), "")
        return tuple(sorted(self.ownership.rings.get(ring, ())))

    def _leaves(self, op: KernelOp) -> dict[str, None]:
        found: dict[str, None] = {}
        seen: set[str] = set()
        pending = list(op.operands)
        while pending:
            value = pending.pop()
            if value in seen or self.types[value].space == "token":
                continue
            seen.add(value)
            maker = self.made_after.get(value)
            if maker is None:
                found[value] = None
            else:
                pending += maker.operands
        return found

    def before(self) -> None:
        """Let every group compute what it needs from before the loop, and one group fill each buffer."""
        loop, kernel = self.sheet.kernel.loop, self.sheet.kernel
        wanted: list[dict[str, None]] = [{} for _ in self.result]
        for group, duty in enumerate(self.result):
            extra = group == len(self.needs)
            if not extra:
                duty.outer |= self.needs[group].outer
            if not extra or duty.after:
                duty.outer |= dict.fromkeys((loop.lower, loop.upper, loop.step))
                self._take_before(wanted[group], duty.outer)
        for op in kernel.before:
            if has_effect(op) or (writes_local(op) and self._is_used(target_of(op))):
                group = self._filler(op)
                if not wanted[group]:
                    self._take_before(wanted[group], dict.fromkeys((loop.lower, loop.upper, loop.step)))
                wanted[group][op.name] = None
                self._take_before(wanted[group], dict.fromkeys(op.operands))
        for op in kernel.before:
            if op.opcode in LOADS and any(op.name in names for names in wanted):
                wanted[loader(self.sheet)][op.name] = None
                self._take_before(wanted[loader(self.sheet)], op.operands)
        for group, duty in enumerate(self.result):
            duty.before = [op.name for op in kernel.before if op.name in wanted[group]]

    def _take_before(self, wanted: dict[str, None], values: Iterable[str]) -> None:
        pending = list(values)
        while pending:
            op = self.made_before.get(pending.pop())
            if op is None or op.name in wanted or writes_local(op) or has_effect(op):
                continue
            if op.opcode not in ALLOCS:
                wanted[op.name] = None
            if op.opcode not in LOADS:
                pending += op.operands

    def _is_used(self, value: str) -> bool:
        root = self.sheet.root(value)
        if root in self.ring_by_root:
            return True
        return any(
            self.types[name].space in IN_MEMORY and self.sheet.root(name) == root
            for duty in self.result
            for name in duty.outer
        )

    def _filler(self, op: KernelOp) -> int:
        """Return the group that executes an op with an effect before the loop."""
        groups = self.sheet.schedule.groups
        source = self._tma_source(op)
        if source:
            return loader(self.sheet)
        enough = [at for at, group in enumerate(groups) if group.warps >= self.sheet.kernel.num_warps]
        if not enough:
            return len(groups)
        ring = self.ring_by_root.get(self.sheet.root(target_of(op)), "") if writes_local(op) else ""
        touching = self.ownership.rings.get(ring, set())
        return min(enough, key=lambda group: (group not in touching, group))

    def _tma_source(self, op: KernelOp) -> bool:
        if op.opcode not in ALLOCS:
            return False
        maker = self.made_before.get(op.operands[0])
        return maker is not None and maker.opcode in LOADS


def loader(sheet: Sheet) -> int:
    """Return the group that loads fixed buffers: the first one that loads in the loop."""
    loading = [sheet.group[name] for name in sheet.ops if sheet.engine(name) == "tma"]
    return min(loading, default=0)
