"""The rules on time: each op starts once, in order, within the stages claimed, and units are not overbooked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from twillgpu.costs.record import PricedEdge, Problem
from twillgpu.errors import nearest
from twillgpu.schedule.record import Schedule
from twillgpu.verify.expand import Held, Peak, Span, peak
from twillgpu.verify.overwriting import overwritten
from twillgpu.verify.record import Violation
from twillgpu.verify.sheet import Sheet, sheet


def uniqueness(problem: Problem, schedule: Schedule) -> Iterable[Violation]:
    """Check that every op of the problem has exactly one start, and that no other op has one."""
    given = Counter(op.name for op in schedule.ops)
    names = [op.name for op in problem.ops]
    for name in names:
        if given[name] != 1:
            yield Violation(
                rule="uniqueness", subjects=(name,), message=f"{name} has {given[name]} starts, 1 is needed"
            )
    for name in sorted(set(given) - set(names)):
        message = f"the schedule starts {name!r}, which is no op of {problem.name}; {nearest(name, names)}"
        yield Violation(rule="uniqueness", subjects=(name,), message=message)


def consistency(_problem: Problem, schedule: Schedule) -> Iterable[Violation]:
    """Check that the interval is at least one cycle and that no op of iteration 0 starts before cycle 0.

    That iteration i is iteration 0 moved by i intervals holds by the form of a schedule.
    """
    if schedule.ii_cycles < 1:
        message = f"the initiation interval is {schedule.ii_cycles} cycles, at least 1 is needed"
        yield Violation(rule="consistency", subjects=(), message=message)
    for op in schedule.ops:
        if op.start_cycle < 0:
            message = f"{op.name} starts at cycle {op.start_cycle}, before cycle 0"
            yield Violation(rule="consistency", subjects=(op.name,), message=message)


def completion(problem: Problem, schedule: Schedule, *, max_stages: int | None = None) -> Iterable[Violation]:
    """Check that every op starts and ends within the number of stages claimed.

    A schedule does not carry that number: it is ``stages(problem, schedule)`` by definition, so that only a
    claim from outside (``max_stages``) can be broken. Without one there is nothing to check.
    """
    if max_stages is None:
        return
    lines = sheet(problem, schedule)
    limit = max_stages * lines.interval
    for op in lines.ops.values():
        start, end = lines.start[op.name], lines.start[op.name] + op.latency_cycles
        if start >= limit or end > limit:
            message = (
                f"{lines.say(op.name, 0)} and ends at {end}; the stages claimed end at "
                f"{max_stages} x {lines.interval} = {limit}"
            )
            yield Violation(rule="completion", subjects=(op.name,), message=message)


def stages(problem: Problem, schedule: Schedule) -> int:
    """Return the number of stages: intervals until every op of iteration 0 has started and ended."""
    lines = sheet(problem, schedule)
    return max((_stages_of(lines, name) for name in lines.ops), default=1)


def dependence(problem: Problem, schedule: Schedule) -> Iterable[Violation]:
    """Check every edge on the first iteration that has both ends, and that no member of an alias class is
    overwritten while it is still read. A later iteration sees the same distances.
    """
    lines = sheet(problem, schedule)
    for edge in lines.edges:
        yield from _late(lines, edge)
    yield from overwritten(lines)


def capacity(problem: Problem, schedule: Schedule) -> Iterable[Violation]:
    """Check at every cycle of the steady state that the uses of each unit, by all iterations, fit it."""
    lines = sheet(problem, schedule)
    known = {unit.name for unit in problem.units}
    for unit in problem.units:
        most = peak(_uses(lines, unit.name), lines.interval)
        if most is not None and most.amount > unit.capacity:
            yield _overbooked(unit.name, unit.capacity, most, lines)
    for op in lines.ops.values():
        for use in op.uses:
            if use.unit not in known:
                message = f"{op.name} uses the unit {use.unit!r}, which the machine lacks"
                yield Violation(rule="capacity", subjects=(use.unit, op.name), message=message)


def _stages_of(lines: Sheet, name: str) -> int:
    start, interval = lines.start[name], lines.interval
    return max(start // interval + 1, -(-(start + lines.ops[name].latency_cycles) // interval))


def _late(lines: Sheet, edge: PricedEdge) -> Iterator[Violation]:
    start = lines.at(edge.head, edge.distance)
    ready = lines.at(edge.tail, 0) + edge.latency_cycles
    if start < ready:
        message = (
            f"{lines.say(edge.head, edge.distance)}, but {lines.say(edge.tail, 0)} and its {edge.kind} edge takes "
            f"{edge.latency_cycles} cycles, until {ready}"
        )
        yield Violation(rule="dependence", subjects=(edge.tail, edge.head), message=message)


def _uses(lines: Sheet, unit: str) -> Iterator[Span]:
    for op in lines.ops.values():
        for use in op.uses:
            if use.unit == unit:
                start = lines.start[op.name] + use.offset
                yield Span(subject=op.name, start=start, end=start + use.cycles, amount=use.amount)


def _overbooked(unit: str, limit: int, most: Peak, lines: Sheet) -> Violation:
    def words(held: Held) -> str:
        source = lines.ops[held.span.subject].source
        place = f" ({source})" if source else ""
        return (
            f"{held.span.amount} by {held.span.subject} of iteration {held.iteration}{place} in cycles "
            f"{held.start} to {held.end}"
        )

    slot = most.cycle % lines.interval
    holders = "; ".join(words(held) for held in most.held)
    message = (
        f"{unit} is held {most.amount} times at cycle {most.cycle} (slot {slot}), its capacity is {limit}: {holders}"
    )
    return Violation(
        rule="capacity", subjects=(unit, *dict.fromkeys(h.span.subject for h in most.held)), message=message
    )
