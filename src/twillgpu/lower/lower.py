"""From a verified schedule to a warp program."""

from __future__ import annotations

from twillgpu.errors import InputError
from twillgpu.frontend.kernel import Kernel
from twillgpu.graph.record import DepGraph
from twillgpu.graph.scratch import scratch_bytes
from twillgpu.lower.after import After
from twillgpu.lower.before import write_before
from twillgpu.lower.duty import Duty, Ownership, duties
from twillgpu.lower.flow import Needs, needs_of
from twillgpu.lower.loop import LoopSheet, arrivals, loop_regions
from twillgpu.lower.options import LowerOptions
from twillgpu.lower.orders import dependences, register_reads, reuses
from twillgpu.lower.outside import Loop, Outside
from twillgpu.lower.record import Barrier, GroupProgram, Ring, WarpProgram
from twillgpu.lower.room import Room, check_barriers
from twillgpu.lower.sequence import Regions
from twillgpu.lower.sheet import Sheet, sheet_of
from twillgpu.lower.steps import Handovers, Step, all_touches, handovers, op_steps
from twillgpu.lower.storage import Touch, loop_rings
from twillgpu.lower.synchronise import Synchronised, synchronise
from twillgpu.lower.turns import unit_turns
from twillgpu.schedule.record import Group
from twillgpu.verify.record import Verified

ADDITIONAL = "epilogue"
"""Name of the group that is added where no group of the schedule is wide enough for the work outside the loop."""


def lower(kernel: Kernel, graph: DepGraph, verified: Verified, options: LowerOptions | None = None) -> WarpProgram:
    """Return the explicit program of every warp group.

    Args:
        kernel: the kernel that was scheduled (after sub-tiling).
        graph: its loop body; its ops name the kernel ops that they stand for.
        verified: the schedule, which passed the verifier.
        options: what the schedule leaves open.

    Raises:
        InputError: buffers, barriers or registers do not fit; the buffer is named.
        UnsupportedError: a value after the loop is made by several groups.
    """
    return _Lowering(
        sheet_of(kernel, graph, verified.problem, verified.schedule), options or LowerOptions()
    ).program()


class _Lowering:
    def __init__(self, sheet: Sheet, options: LowerOptions) -> None:
        self.sheet = sheet
        self.options = options
        self.needs: tuple[Needs, ...] = tuple(needs_of(sheet, group) for group in range(len(sheet.schedule.groups)))
        self.given: Handovers = handovers(sheet, self.needs)
        self.touches: tuple[Touch, ...] = tuple(all_touches(sheet, self.given))
        self.rings: dict[str, Ring] = {ring.name: ring for ring in loop_rings(sheet, self.given.rings)}
        nodes = ((op.kind, sheet.members(name)) for name, op in sheet.ops.items())
        self.room = Room(sheet.problem, self.rings.values(), scratch_bytes(sheet.kernel, nodes))
        self.roots = {value: name for name, ring in self.rings.items() for value in ring.values}

    def program(self) -> WarpProgram:
        plan = self._plan()
        ownership = Ownership(self.sheet, self.touches)
        planned = duties(self.sheet, self.needs, ownership, self.roots)
        found = Loop(sheet=self.sheet, steps=plan.steps, touches=self.touches)
        out = Outside(found, self.room, planned, self.rings, persistent=self.options.persistent)
        out.fixed_buffers()
        after = After(out, {result: ownership.owner(result) for result in ownership.results})
        after.plan()
        loop = self._loop(plan, out)
        regions = [loop_regions(loop, group, need) for group, need in enumerate(self.needs)]
        write_before(out)
        after.write({group: found.outstanding for group, found in enumerate(regions)})
        barriers = (*self._loop_barriers(loop), *out.barriers.values())
        check_barriers(sum(one.copies for one in barriers))
        return WarpProgram(
            kernel=self.sheet.kernel,
            machine=self.sheet.schedule.machine,
            ii_cycles=self.sheet.interval,
            groups=self._groups(out, regions, planned),
            rings=(*self.rings.values(), *out.rings.values()),
            barriers=barriers,
            persistent=self.options.persistent,
        )

    def _plan(self) -> Synchronised:
        steps: dict[str, Step] = {step.name: step for step in (*op_steps(self.sheet), *self.given.steps)}
        turns = tuple(unit_turns(self.sheet, steps, asked=self.options.order_units))
        steps |= {step.name: step for step, _ in turns}
        orders = (
            *(order for _, order in turns),
            *dependences(self.sheet, self.needs, steps),
            *register_reads(self.sheet, steps),
            *reuses(self.sheet, self.rings.values(), self.touches, steps),
        )
        return synchronise(self.sheet, steps, orders)

    def _loop(self, plan: Synchronised, out: Outside) -> LoopSheet:
        by_step: dict[str, list[Touch]] = {}
        for touch in self.touches:
            by_step.setdefault(touch.step, []).append(touch)
        return LoopSheet(
            sheet=self.sheet,
            plan=plan,
            rings=self.rings,
            touches={name: tuple(found) for name, found in by_step.items()},
            fixed={name: out.fixed_reads(name) for name in self.sheet.ops},
        )

    def _loop_barriers(self, loop: LoopSheet) -> tuple[Barrier, ...]:
        return tuple(
            Barrier(
                name=one.name,
                copies=one.copies,
                arrivals=arrivals(loop, one),
                scope="iteration",
                serves=tuple(dict.fromkeys(str(order) for order in one.waits)),
            )
            for one in loop.plan.barriers
        )

    def _groups(self, out: Outside, regions: list[Regions], planned: list[Duty]) -> tuple[GroupProgram, ...]:
        groups = list(self.sheet.schedule.groups)
        if len(planned) > len(groups):
            groups.append(self._additional())
        empty = Regions(stages=1, prologue=(), loop=(), epilogue=(), outstanding=())
        return tuple(
            GroupProgram(
                name=group.name,
                warps=group.warps,
                registers_per_thread=group.registers_per_thread,
                stages=found.stages,
                before=tuple(out.before[at]),
                prologue=found.prologue,
                loop=found.loop,
                epilogue=found.epilogue,
                after=tuple(out.after[at]),
            )
            for at, (group, found) in enumerate(zip(groups, [*regions, empty], strict=False))
        )

    def _additional(self) -> Group:
        """Return a group for the work outside the loop, with the registers that the others leave."""
        problem, warps = self.sheet.problem, self.sheet.kernel.num_warps
        groups = self.sheet.schedule.groups
        total = warps + sum(group.warps for group in groups)
        name = ADDITIONAL
        while any(group.name == name for group in groups):
            name += "_"
        if total > problem.groups.max_warps:
            raise InputError(
                f"group {name}",
                f"no group has the {warps} warps that the work after the loop needs, and {total} warps are too many "
                f"(a block has at most {problem.groups.max_warps})",
                "use fewer warps (--num-warps)",
            )
        quota = self._left(total, warps)
        return Group(name=name, warps=warps, registers_per_thread=quota)

    def _left(self, total: int, warps: int) -> int:
        limits, groups = self.sheet.problem.registers, self.sheet.schedule.groups
        if limits is None:
            return 0
        padding = -total % 4
        taken = sum(group.registers_per_thread * group.warps for group in groups) + padding * limits.quota_min
        left = (limits.pool(total + padding) // 32 - taken) // warps // limits.quota_step * limits.quota_step
        if left < limits.smallest:
            raise InputError(
                f"group {ADDITIONAL}",
                f"the other groups leave {left} registers per thread, {limits.smallest} is the least",
                "use fewer registers (--registers)",
            )
        return min(left, limits.largest)
