"""Secondary objectives of a finished schedule, by their names in ``SearchOptions.objective``."""

from __future__ import annotations

from collections.abc import Callable

from twillgpu.costs.record import PricedEdge, Problem
from twillgpu.schedule.record import Schedule

Groups = dict[str, int]


def measured(problem: Problem, schedule: Schedule, names: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    """Return (name, value) for each objective in ``names``."""
    groups = {op.name: op.group for op in schedule.ops}
    return tuple((name, MEASURES[name](problem, schedule, groups)) for name in names)


def _mixed(problem: Problem, schedule: Schedule, groups: Groups) -> int:
    apart = problem.groups.max > 1 and problem.rules.variable_latency != "free"
    designated = apart and any(op.variable_latency for op in problem.ops)
    strangers = sum(1 for op in problem.ops if designated and groups[op.name] == 0 and not op.variable_latency)
    needs = {
        group: max((op.warps for op in problem.ops if groups[op.name] == group), default=0)
        for group in range(len(schedule.groups))
    }
    return strangers + sum(1 for op in problem.ops if needs[groups[op.name]] > op.warps)


def _crossings(problem: Problem, groups: Groups) -> dict[tuple[str, int], list[PricedEdge]]:
    """Return the edges that leave an op for another group, by op and receiving group."""
    crossings: dict[tuple[str, int], list[PricedEdge]] = {}
    for edge in problem.edges:
        if groups[edge.tail] != groups[edge.head]:
            crossings.setdefault((edge.tail, groups[edge.head]), []).append(edge)
    return crossings


def _handoff(problem: Problem, _: Schedule, groups: Groups) -> int:
    return sum(max(edge.handoff_cycles for edge in edges) for edges in _crossings(problem, groups).values())


def _barriers(problem: Problem, _: Schedule, groups: Groups) -> int:
    return len(_crossings(problem, groups))


def length_cycles(problem: Problem, schedule: Schedule) -> int:
    """Return L: the last op's start plus latency, at least one cycle after the last start."""
    starts = {op.name: op.start_cycle for op in schedule.ops}
    return max(starts[op.name] + max(1, op.latency_cycles) for op in problem.ops)


def stage_count(problem: Problem, schedule: Schedule) -> int:
    """Return S = ceil(L / I)."""
    return -(-length_cycles(problem, schedule) // schedule.ii_cycles)


MEASURES: dict[str, Callable[[Problem, Schedule, Groups], int]] = {
    "mixed": _mixed,
    "handoff": _handoff,
    "barriers": _barriers,
    "warps": lambda _, schedule, __: sum(group.warps for group in schedule.groups),
    "groups": lambda _, schedule, __: len(schedule.groups),
    "stages": lambda problem, schedule, _: stage_count(problem, schedule),
    "registers": lambda _, schedule, __: sum(
        group.registers_per_thread * group.warps * 32 for group in schedule.groups
    ),
    "length": lambda problem, schedule, _: length_cycles(problem, schedule),
}
"""``mixed``: ops in a group not of their kind; ``handoff``: cycles of hand-off per iteration; ``barriers``: (op,
receiving group) pairs; ``registers``: registers of the whole block; ``length``: L in cycles."""
