"""The rules on warp groups: who sits where, what crosses between them, and who waits while who issues."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from twillgpu.costs.record import LegalPair, PricedEdge, PricedOp, Problem
from twillgpu.schedule.record import Schedule
from twillgpu.verify.expand import Held, Span, unroll
from twillgpu.verify.pauses import pauses
from twillgpu.verify.record import Violation
from twillgpu.verify.sheet import Sheet, sheet, source_of


def warp_uniqueness(problem: Problem, schedule: Schedule) -> Iterable[Violation]:
    """Check that every op is in one group that exists and is wide enough; and that every group holds an op, has
    a legal width, and fits with the others in the block.
    """
    groups = schedule.groups
    for name, group in Counter((op.name, op.group) for op in schedule.ops):
        if not 0 <= group < len(groups):
            message = f"{name} is in group {group}; the groups are numbered 0 to {len(groups) - 1}"
            yield _warps(name, message)
    yield from _wide_enough(sheet(problem, schedule))
    yield from _widths(problem, schedule)


def variable_latency(problem: Problem, schedule: Schedule) -> Iterable[Violation]:
    """Check where variable-latency ops sit if more than one group is allowed, by the problem's option:
    ``designated``: in group 0; ``iff``: they and no other op in group 0, if there are any; ``free``: anywhere.
    """
    option = problem.rules.variable_latency
    lines = sheet(problem, schedule)
    variable = {op.name for op in problem.ops if op.variable_latency}
    if option == "free" or not variable or problem.groups.max == 1:
        return
    for name, group in lines.group.items():
        if name in variable and group != 0:
            message = f"{name} has a variable latency and sits in group {group}, not in group 0"
            yield Violation(rule="variable_latency", subjects=(name,), message=message)
        if option == "iff" and name in lines.ops and name not in variable and group == 0:
            message = f"{name} has a fixed latency and sits in group 0, which is for variable-latency ops only"
            yield Violation(rule="variable_latency", subjects=(name,), message=message)


def cross_warp_spill(problem: Problem, schedule: Schedule) -> Iterable[Violation]:
    """Check, for every edge between two groups, that it allows for the hand-off, and that no register value
    takes it where the problem forbids that.
    """
    lines = sheet(problem, schedule)
    for edge in filter(lines.crosses, lines.edges):
        yield from _forbidden(lines, edge)
        yield from _too_early(lines, edge)


def concurrency(problem: Problem, schedule: Schedule) -> Iterable[Violation]:
    """Check that nothing else of its group is issuing at the cycle at which an op executes a blocking wait."""
    lines = sheet(problem, schedule)
    waiting = {edge.head: edge for edge in lines.edges if edge.blocking or lines.crosses(edge)}
    for group in sorted({lines.group[name] for name in waiting}):
        issuing = _issuing(lines, group)
        held = unroll((*issuing, *_starts(lines, waiting, group)), lines.interval)
        busy = tuple(item for item in held if item.span.amount)
        for wait in (item for item in held if not item.span.amount):
            yield from _collisions(lines, waiting[wait.span.subject], wait, busy)


def legality(problem: Problem, schedule: Schedule) -> Iterable[Violation]:
    """Check the problem's named pairs: ``together`` in one group, ``apart`` in two; and that groups pause."""
    lines = sheet(problem, schedule)
    for pair in problem.legality:
        if pair.relation != "pause" and pair.first in lines.ops and pair.second in lines.ops:
            yield from _pair(lines, pair)
    yield from pauses(problem, schedule)


def _warps(subject: str, message: str) -> Violation:
    return Violation(rule="warp_uniqueness", subjects=(subject,), message=message)


def _wide_enough(lines: Sheet) -> Iterator[Violation]:
    groups = lines.schedule.groups
    for op in lines.ops.values():
        index = lines.group[op.name]
        if 0 <= index < len(groups) and groups[index].warps < op.warps:
            message = (
                f"{source_of(op)} needs {op.warps} warps, its group {groups[index].name} has {groups[index].warps}"
            )
            yield _warps(op.name, message)


def _widths(problem: Problem, schedule: Schedule) -> Iterator[Violation]:
    limits, groups = problem.groups, schedule.groups
    taken = {op.group for op in schedule.ops}
    for index, group in enumerate(groups):
        if index not in taken:
            yield _warps(group.name, f"the group {group.name} holds no op")
        if group.warps not in limits.warps:
            widths = ", ".join(str(width) for width in limits.warps)
            yield _warps(group.name, f"the group {group.name} has {group.warps} warps; legal are {widths}")
    if len(groups) > limits.max:
        yield _warps("groups", f"{len(groups)} groups are used, {limits.max} allowed")
    total = sum(group.warps for group in groups)
    if total > limits.max_warps:
        yield _warps("groups", f"the groups have {total} warps in all, a block has at most {limits.max_warps}")


def _forbidden(lines: Sheet, edge: PricedEdge) -> Iterator[Violation]:
    value = lines.ops[edge.tail].value
    if lines.problem.rules.cross_group or edge.kind != "data" or value is None or value.space != "registers":
        return
    places = f"{edge.tail} (group {lines.group[edge.tail]}) to {edge.head} (group {lines.group[edge.head]})"
    message = f"a register value goes from {places}; values in registers may not cross groups here"
    yield Violation(rule="cross_warp_spill", subjects=(edge.tail, edge.head), message=message)


def _too_early(lines: Sheet, edge: PricedEdge) -> Iterator[Violation]:
    start = lines.at(edge.head, edge.distance)
    ready = lines.at(edge.tail, 0) + edge.latency_cycles + edge.handoff_cycles
    if start < ready:
        message = (
            f"{lines.say(edge.head, edge.distance)} in group {lines.group[edge.head]}, but {lines.say(edge.tail, 0)} "
            f"in group {lines.group[edge.tail]}: {edge.latency_cycles} cycles and the hand-off's "
            f"{edge.handoff_cycles} last until {ready}"
        )
        yield Violation(rule="cross_warp_spill", subjects=(edge.tail, edge.head), message=message)


def _issuing(lines: Sheet, group: int) -> Iterator[Span]:
    """Yield, with amount 1, when the ops of ``group`` keep its instruction stream busy."""
    for op in lines.ops.values():
        if lines.group[op.name] == group:
            start = lines.start[op.name]
            yield Span(subject=op.name, start=start, end=start + _window(lines.problem, op), amount=1)


def _window(problem: Problem, op: PricedOp) -> int:
    if problem.rules.concurrency == "issue":
        return op.issue_cycles
    return max((use.offset + use.cycles for use in op.uses), default=0)


def _starts(lines: Sheet, waiting: Iterable[str], group: int) -> Iterator[Span]:
    """Yield, with amount 0, the cycle at which each waiting op of ``group`` starts."""
    for name in waiting:
        if lines.group[name] == group:
            start = lines.start[name]
            yield Span(subject=name, start=start, end=start + 1, amount=0)


def _collisions(lines: Sheet, edge: PricedEdge, wait: Held, busy: tuple[Held, ...]) -> Iterator[Violation]:
    seen = set()
    for other in busy:
        name = other.span.subject
        if name != edge.head and name not in seen and other.start <= wait.start < other.end:
            seen.add(name)
            message = (
                f"{lines.say(edge.head, wait.iteration)} with a wait for {edge.tail}, while "
                f"{lines.say(name, other.iteration)} in the same group and issues until {other.end}"
            )
            yield Violation(rule="concurrency", subjects=(edge.head, name), message=message)


def _pair(lines: Sheet, pair: LegalPair) -> Iterator[Violation]:
    first, second = lines.group[pair.first], lines.group[pair.second]
    if (first == second) == (pair.relation == "together"):
        return
    wanted = "share a group" if pair.relation == "together" else "be in different groups"
    places = f"{pair.first} is in group {first}, {pair.second} in group {second}"
    message = f"{pair.rule}: {places}; they must {wanted}"
    yield Violation(rule="legality", subjects=(pair.first, pair.second), message=message)
