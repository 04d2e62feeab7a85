"""The rule on registers: what is live in each group at every cycle, and the quotas."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from twillgpu.costs.record import Problem
from twillgpu.machine.record import Registers
from twillgpu.schedule.record import Group, Schedule
from twillgpu.verify.expand import Peak, peak
from twillgpu.verify.lifetimes import register_spans
from twillgpu.verify.record import Violation
from twillgpu.verify.sheet import sheet

THREADS_PER_WARP = 32


def register_limit(problem: Problem, schedule: Schedule) -> Iterable[Violation]:
    """Check that at every cycle of the steady state the registers per thread of what is live in a group, and
    the machine's overhead, fit its quota; that quotas are legal; and that all quotas fit the register file.
    Where registers are unlimited, a quota other than 0 claims what the machine does not say.
    """
    limits = problem.registers
    if limits is None:
        yield from (
            _broken(group.name, f"registers are unlimited here: the quota of {group.name} must be 0")
            for group in schedule.groups
            if group.registers_per_thread
        )
        return
    for index, group in enumerate(schedule.groups):
        yield from _quota(group, limits)
        yield from _pressure(group, register_peak(problem, schedule, index), limits)
    yield from _file(schedule, limits)


def register_peak(problem: Problem, schedule: Schedule, group: int) -> Peak | None:
    """Return the most registers per thread that are live at once in the group of this index, without the
    overhead, in one period of the steady state; ``None`` where none ever is.
    """
    return peak(register_spans(sheet(problem, schedule), group), schedule.ii_cycles)


def registers_taken(schedule: Schedule, limits: Registers) -> int:
    """Return the registers of the register file that the groups take: each thread its group's quota, and the
    warps that fill up the last four the machine's smallest.
    """
    warps = sum(group.warps for group in schedule.groups)
    padding = -warps % 4
    quotas = sum(group.warps * group.registers_per_thread for group in schedule.groups)
    return THREADS_PER_WARP * (quotas + padding * limits.quota_min)


def _broken(name: str, message: str) -> Violation:
    return Violation(rule="register_limit", subjects=(name,), message=message)


def _quota(group: Group, limits: Registers) -> Iterator[Violation]:
    quota = group.registers_per_thread
    if not limits.quota_min <= quota <= limits.per_thread or quota % limits.quota_step:
        legal = f"multiples of {limits.quota_step} from {limits.quota_min} to {limits.per_thread}"
        yield _broken(group.name, f"the quota of {group.name} is {quota} registers per thread; legal are {legal}")


def _pressure(group: Group, most: Peak | None, limits: Registers) -> Iterator[Violation]:
    live = most.amount if most else 0
    if live + limits.overhead_per_thread <= group.registers_per_thread:
        return
    held = sorted(most.held, key=lambda item: -item.span.amount) if most else []
    parts = ", ".join(f"{item.span.amount} of {item.span.subject} (iteration {item.iteration})" for item in held)
    cycle = f"at cycle {most.cycle} " if most else ""
    yield _broken(
        group.name,
        f"{group.name} needs {live} + {limits.overhead_per_thread} registers per thread {cycle}"
        f"and has {group.registers_per_thread}: {parts or 'nothing live'}",
    )


def _file(schedule: Schedule, limits: Registers) -> Iterator[Violation]:
    taken, warps = registers_taken(schedule, limits), sum(group.warps for group in schedule.groups)
    padding = -warps % 4
    each = limits.per_sm // (THREADS_PER_WARP * (warps + padding))
    shared = THREADS_PER_WARP * (warps + padding) * (each - each % limits.quota_step)
    if taken > shared:
        parts = " + ".join(f"{group.warps} x {group.registers_per_thread}" for group in schedule.groups)
        filled = f" + {padding} x {limits.quota_min} for the warps that fill up a warp group" if padding else ""
        yield _broken(
            "register file",
            f"the groups take 32 x ({parts}{filled}) = {taken} registers, a block of {warps + padding} warps gets"
            f" {shared} of the register file's {limits.per_sm} ({each - each % limits.quota_step} per thread)",
        )
