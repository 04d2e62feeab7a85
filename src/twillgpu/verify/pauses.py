"""The part of ``legality`` that asks a group for a moment of the period without a product in flight."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from twillgpu.costs.record import LegalPair, Problem
from twillgpu.schedule.record import Schedule
from twillgpu.verify.expand import Held, Span, steady_cycle, unroll
from twillgpu.verify.record import Violation
from twillgpu.verify.sheet import Sheet, sheet


def pauses(problem: Problem, schedule: Schedule) -> Iterable[Violation]:
    """Check, for every rule of relation ``pause`` and every group, that the period has a cycle c with no product in
    flight: issued before c and, with its first reader starting at c or later, not drained before c.
    """
    lines = sheet(problem, schedule)
    pairs = [pair for pair in problem.legality if pair.relation == "pause"]
    known = [pair for pair in pairs if pair.first in lines.ops and pair.second in lines.ops]
    for rule in dict.fromkeys(pair.rule for pair in known):
        mine = [pair for pair in known if pair.rule == rule]
        for group in sorted({lines.group[pair.first] for pair in mine}):
            spans = tuple(_flights(lines, [pair for pair in mine if lines.group[pair.first] == group]))
            if not _pauses(spans, lines.interval):
                yield _restless(lines, rule, group, spans)


def _flights(lines: Sheet, pairs: list[LegalPair]) -> Iterator[Span]:
    """Yield, for each product, the cycles c at which iteration 0 of it is in flight."""
    for name in dict.fromkeys(pair.first for pair in pairs):
        read = min(lines.at(pair.second, pair.distance) for pair in pairs if pair.first == name)
        if read > lines.start[name]:
            yield Span(subject=name, start=lines.start[name] + 1, end=read + 1, amount=1)


def _pauses(spans: tuple[Span, ...], interval: int) -> bool:
    """Return whether some cycle of a steady period is in none of the spans of all iterations."""
    reached = first = steady_cycle(spans, interval)
    held: tuple[Held, ...] = unroll(spans, interval)
    for item in sorted(held, key=lambda one: one.start):
        if item.start > reached:
            return True
        reached = max(reached, item.end)
    return reached < first + interval


def _restless(lines: Sheet, rule: str, group: int, spans: tuple[Span, ...]) -> Violation:
    flights = ", ".join(f"{span.subject} from cycle {span.start - 1} to {span.end - 1}" for span in spans)
    message = (
        f"{rule}: at every moment of the {lines.interval} cycles a product that software waits for is in flight in "
        f"group {group}: {flights}"
    )
    return Violation(rule="legality", subjects=tuple(span.subject for span in spans), message=message)
