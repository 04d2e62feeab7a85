"""Secondary objectives of a finished schedule, by their names in ``SearchOptions.objective``."""

from __future__ import annotations

from twillgpu.costs.record import Problem
from twillgpu.schedule.partition import COSTS
from twillgpu.schedule.record import Schedule


def measured(problem: Problem, schedule: Schedule, names: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    """Return (name, value) for each objective in ``names``.

    ``mixed``: ops in a group not of their kind; ``handoff``: cycles of hand-off per iteration; ``barriers``: (op,
    receiving group) pairs; ``warps``, ``groups``, ``stages``: numbers; ``registers``: of the whole block;
    ``length``: L in cycles.
    """
    groups = {op.name: op.group for op in schedule.ops}
    held = sum(group.registers_per_thread * group.warps * 32 for group in schedule.groups)
    timed = {
        "stages": stage_count(problem, schedule),
        "registers": held,
        "length": length_cycles(problem, schedule),
    }
    return tuple((name, timed[name] if name in timed else COSTS[name](problem, groups)) for name in names)


def length_cycles(problem: Problem, schedule: Schedule) -> int:
    """Return L: the largest start plus latency, at least one cycle after the last start."""
    starts = {op.name: op.start_cycle for op in schedule.ops}
    return max(starts[op.name] + max(1, op.latency_cycles) for op in problem.ops)


def stage_count(problem: Problem, schedule: Schedule) -> int:
    """Return S = ceil(L / I)."""
    return -(-length_cycles(problem, schedule) // schedule.ii_cycles)
