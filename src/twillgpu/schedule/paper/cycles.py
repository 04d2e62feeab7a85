"""From a schedule in normalised units to one in cycles: its order is kept, its times are the real ones.

Normalised costs are neither all rounded up nor all rounded down, so a schedule in units is in general none in cycles.
Its stages, its groups and the order in which ops start are laid out in cycles, one op after the other, in a
period long enough for all of them; the polish of the default method then makes the period as short as that order
allows. Other layouts stretch the schedule as a whole and move ops only where they collide, which keeps overlap on
units of several shares. The best one is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from twillgpu.costs.record import PricedEdge, PricedOp, Problem
from twillgpu.graph.record import Use
from twillgpu.schedule.finish import finish
from twillgpu.schedule.paper.record import JointAnswer
from twillgpu.schedule.polish import Draft, wait_window
from twillgpu.schedule.record import Schedule

STRETCHES = (1.0, 1.1, 1.25, 1.5, 2.0)
"""Cycles of a unit in the stretched layouts, as multiples of the average."""


def in_cycles(
    problem: Problem, interval: int, answer: JointAnswer, *, cycles_per_unit: float, lower: int, stages: int
) -> Schedule | None:
    """Return the schedule of smallest interval in cycles that keeps the order of a schedule in units.

    ``None`` where registers or memories do not suffice in cycles, or no layout is sound. At most ``stages`` stages.
    """
    first = min(answer.starts.values())
    starts = {name: start - first for name, start in answer.starts.items()}
    groups = answer.groups
    units = [stretch * cycles_per_unit for stretch in STRETCHES]
    layouts = [_stretched(problem, starts, groups, interval, unit) for unit in units]
    layouts.append(_one_after_the_other(problem, starts, interval))
    found = []
    for period, laid in layouts:
        draft = Draft(ii_cycles=period, starts=laid, groups=groups)
        schedule = finish(problem, draft, lower=lower, stages=stages)
        if schedule is not None and _sound(problem, schedule):
            found.append(schedule)
    return min(found, key=lambda schedule: schedule.ii_cycles) if found else None


def _stretched(
    problem: Problem, starts: dict[str, int], groups: dict[str, int], interval: int, unit: float
) -> tuple[int, dict[str, int]]:
    """Return a period and starts in it: the schedule in units, ``unit`` cycles each, with each op moved to where what
    began before it leaves it room.
    """
    at: dict[str, int] = {}
    rank = _ranks(problem)
    for op in sorted(problem.ops, key=lambda op: (starts[op.name] % interval, rank[op.name])):
        at[op.name] = int(starts[op.name] % interval * unit)
        while (later := _earliest(problem, op, at, groups, _same_turn(problem, starts, interval))) > at[op.name]:
            at[op.name] = later
    turns = {name: start // interval for name, start in starts.items()}
    period = max(ceil(interval * unit), _for_edges(problem, at, turns, groups))
    if not _fits(problem, groups, period, at):
        period = max(period, _for_units(problem, at))
    return period, {name: turns[name] * period + at[name] for name in at}


def _same_turn(problem: Problem, starts: dict[str, int], interval: int) -> list[PricedEdge]:
    """Return the edges whose ends lie in the same period."""
    return [
        edge
        for edge in problem.edges
        if starts[edge.head] // interval + edge.distance == starts[edge.tail] // interval and edge.tail != edge.head
    ]


def _earliest(
    problem: Problem, op: PricedOp, at: dict[str, int], groups: dict[str, int], edges: list[PricedEdge]
) -> int:
    """Return where an op may start at the earliest, not before its place so far, beside those that are placed."""
    start = at[op.name]
    placed = [other for other in problem.ops if other.name in at and other.name != op.name]
    ready = [at[edge.tail] + _delay(edge, groups) for edge in edges if edge.head == op.name and edge.tail in at]
    waits = any(
        edge.blocking or groups[edge.tail] != groups[op.name] for edge in problem.edges if edge.head == op.name
    )
    issued = [
        at[other.name] + wait_window(problem, other)
        for other in placed
        if waits
        and groups[other.name] == groups[op.name]
        and 0 <= start - at[other.name] < wait_window(problem, other)
    ]
    free = [
        at[other.name] + held.offset + held.cycles - use.offset
        for use, held, other in _meetings(problem, op, placed)
        if at[other.name] + held.offset < start + use.offset + use.cycles
        and start + use.offset < at[other.name] + held.offset + held.cycles
    ]
    return max([start, *ready, *issued, *free])


def _meetings(problem: Problem, op: PricedOp, others: list[PricedOp]) -> Iterator[tuple[Use, Use, PricedOp]]:
    """Yield the uses of ``op`` and of others that a unit cannot serve together."""
    capacity = {unit.name: unit.capacity for unit in problem.units}
    for use in op.uses:
        for other in others:
            for held in other.uses:
                if held.unit == use.unit and held.amount + use.amount > capacity[use.unit]:
                    yield use, held, other


def _for_edges(problem: Problem, at: dict[str, int], turns: dict[str, int], groups: dict[str, int]) -> int:
    """Return the shortest period at which what an edge into a later period carries is ready there."""
    found = [1]
    for edge in problem.edges:
        between = turns[edge.head] + edge.distance - turns[edge.tail]
        if between > 0:
            found.append(-(-(at[edge.tail] + _delay(edge, groups) - at[edge.head]) // between))
    return max(found)


def _for_units(problem: Problem, at: dict[str, int]) -> int:
    """Return the shortest period at which no use of a unit reaches one of the next period that it collides with."""
    ends = [
        at[other.name] + held.offset + held.cycles - at[op.name] - use.offset
        for op in problem.ops
        for use, held, other in _meetings(problem, op, list(problem.ops))
    ]
    return max([1, *ends])


def _delay(edge: PricedEdge, groups: dict[str, int]) -> int:
    return edge.latency_cycles + (edge.handoff_cycles if groups[edge.tail] != groups[edge.head] else 0)


def _one_after_the_other(problem: Problem, starts: dict[str, int], interval: int) -> tuple[int, dict[str, int]]:
    """Return a period and starts in it: every op begins when all that began before it in the period is over."""
    at: dict[str, int] = {}
    cycle = 0
    rank = _ranks(problem)
    for op in sorted(problem.ops, key=lambda op: (starts[op.name] % interval, rank[op.name])):
        at[op.name] = cycle
        cycle += _longest(problem, op.name)
    return max(1, cycle), {name: starts[name] // interval * cycle + at[name] for name in at}


def _longest(problem: Problem, name: str) -> int:
    """Return how long an op keeps anything else waiting: its uses, its issue, its edges with their hand-off."""
    op = next(op for op in problem.ops if op.name == name)
    edges = [edge.latency_cycles + edge.handoff_cycles for edge in problem.edges if edge.tail == name]
    return max([1, op.issue_cycles, op.latency_cycles, *(use.offset + use.cycles for use in op.uses), *edges])


def _ranks(problem: Problem) -> dict[str, int]:
    """Return a topological rank of every op along edges within an iteration."""
    rank = dict.fromkeys((op.name for op in problem.ops), 0)
    within = [edge for edge in problem.edges if edge.distance == 0]
    for _ in problem.ops:
        for edge in within:
            rank[edge.head] = max(rank[edge.head], rank[edge.tail] + 1)
    return rank


def _sound(problem: Problem, schedule: Schedule) -> bool:
    """Return whether edges, units and waits hold: where a layout breaks one of them, what follows from it may, too.

    Registers and places are sound in every schedule that ``finish`` returns.
    """
    starts = {op.name: op.start_cycle for op in schedule.ops}
    groups = {op.name: op.group for op in schedule.ops}

    def holds(edge: PricedEdge) -> bool:
        return starts[edge.head] + edge.distance * schedule.ii_cycles >= starts[edge.tail] + _delay(edge, groups)

    return all(holds(edge) for edge in problem.edges) and _fits(problem, groups, schedule.ii_cycles, starts)


def _fits(problem: Problem, groups: dict[str, int], period: int, starts: dict[str, int]) -> bool:
    """Return whether no unit is held too often and no wait falls into the issue of its group."""
    return all(_most(problem, unit.name, period, starts) <= unit.capacity for unit in problem.units) and not any(
        _waits_at_issue(problem, groups, period, starts)
    )


def _most(problem: Problem, unit: str, period: int, starts: dict[str, int]) -> int:
    """Return the largest amount of a unit that is held at once."""
    changes: dict[int, int] = {0: 0}
    for op in problem.ops:
        for use in (use for use in op.uses if use.unit == unit):
            turns, rest = divmod(use.cycles, period)
            first = (starts[op.name] + use.offset) % period
            changes[0] += use.amount * (turns + int(first + rest > period))
            for cycle, amount in ((first, use.amount), ((first + rest) % period, -use.amount)):
                if rest:
                    changes[cycle] = changes.get(cycle, 0) + amount
    level = most = 0
    for cycle in sorted(changes):
        level += changes[cycle]
        most = max(most, level)
    return most


def _waits_at_issue(problem: Problem, groups: dict[str, int], period: int, starts: dict[str, int]) -> Iterator[bool]:
    """Yield, for each waiting op and each other op of its group, whether the wait falls in the other's window."""
    crossing = {edge.head for edge in problem.edges if groups[edge.tail] != groups[edge.head]}
    waiting = crossing | {edge.head for edge in problem.edges if edge.blocking}
    for name in sorted(waiting):
        for other in problem.ops:
            if other.name != name and groups[other.name] == groups[name]:
                yield (starts[name] - starts[other.name]) % period < wait_window(problem, other)
