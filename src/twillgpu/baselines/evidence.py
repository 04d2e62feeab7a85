"""What stands against a schedule: the first rule that it breaks, from the verifier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from twillgpu.costs.record import Problem
from twillgpu.schedule.assemble import assemble
from twillgpu.schedule.partition import widths
from twillgpu.schedule.polish import Draft
from twillgpu.schedule.record import Group, Schedule, ScheduledOp
from twillgpu.verify import Verified, Violation, check
from twillgpu.verify.groups import legality, variable_latency, warp_uniqueness
from twillgpu.verify.registers import register_peak

ROOMY_BYTES = 1 << 40
"""A memory that never is full."""


def broken(problem: Problem, groups: Mapping[str, int]) -> Violation | None:
    """Return the first rule on groups alone that a partition breaks, whatever the starts."""
    widest = problem.groups.warps[-1]
    for op in problem.ops:
        if op.warps > widest:
            message = f"{op.name} needs {op.warps} warps, the widest group has {widest}"
            return Violation(rule="warp_uniqueness", subjects=(op.name,), message=message)
    schedule = Schedule(
        graph=problem.name,
        machine=problem.machine,
        ii_cycles=1,
        ops=tuple(ScheduledOp(name=op.name, start_cycle=0, group=groups[op.name]) for op in problem.ops),
        groups=tuple(
            Group(name=f"group {index}", warps=width, registers_per_thread=0)
            for index, width in enumerate(widths(problem, groups))
        ),
        buffers=(),
    )
    rules = (warp_uniqueness, variable_latency, legality)
    # Whether a group has a pause depends on the starts.
    untimed = replace(problem, legality=tuple(pair for pair in problem.legality if pair.relation != "pause"))
    return next((violation for rule in rules for violation in rule(untimed, schedule)), None)


def objection(problem: Problem, draft: Draft, max_stages: int) -> Violation | None:
    """Return the rule that keeps given starts from being a schedule of ``problem``, ``None`` if none is found.

    Registers, then places, are taken as unlimited; what then comes out is shown to the verifier.
    """
    roomy = tuple(replace(memory, capacity_bytes=ROOMY_BYTES) for memory in problem.memories)
    for loose in (replace(problem, registers=None), replace(problem, registers=None, memories=roomy)):
        schedule = assemble(loose, draft)
        if schedule is not None:
            verdict = check(problem, _with_quotas(problem, schedule), max_stages=max_stages)
            return None if isinstance(verdict, Verified) else verdict[0]
    return None


def _with_quotas(problem: Problem, schedule: Schedule) -> Schedule:
    """Return ``schedule`` with the quotas that its groups need, as far as a quota may go."""
    limits = problem.registers
    if limits is None:
        return schedule
    groups = []
    for index, group in enumerate(schedule.groups):
        most = register_peak(problem, schedule, index)
        need = (most.amount if most else 0) + limits.overhead_per_thread
        quota = max(limits.smallest, min(limits.largest, -(-need // limits.quota_step) * limits.quota_step))
        groups.append(replace(group, registers_per_thread=quota))
    return replace(schedule, groups=tuple(groups))
