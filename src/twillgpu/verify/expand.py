"""Expansion of a schedule over its iterations, and what is held during one period of the steady state."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from twillgpu.errors import InputError

LONGEST = 10_000
"""Longest span, in iterations, that is expanded: one longer than that is a mistake in the graph or schedule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Cycles ``[start, end)`` during which iteration 0 holds ``amount`` of something; iteration i holds it
    i intervals later. ``subject`` is the op, class or resident that holds it.
    """

    subject: str
    start: int
    end: int
    amount: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The span of one iteration, in absolute cycles."""

    span: Span
    iteration: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """The largest amount held during a period, the first cycle that reaches it, and what is held then."""

    amount: int
    cycle: int
    held: tuple[Held, ...]


def steady_cycle(spans: Iterable[Span], interval: int) -> int:
    """Return the first multiple of ``interval`` at which every span of iteration 0 is over.

    From there on every period is alike: whatever is held comes from iterations that really exist.
    """
    last = max((max(span.start, span.end) for span in spans), default=0)
    return -(-max(last, 0) // interval) * interval


def unroll(spans: tuple[Span, ...], interval: int) -> tuple[Held, ...]:
    """Return the spans of all iterations that hold something in the period that begins at ``steady_cycle``.

    Raises ``InputError`` for a span of more than ``LONGEST`` iterations.
    """
    first = steady_cycle(spans, interval)
    return tuple(held for span in spans for held in _instances(span, interval, first))


def peak(spans: Iterable[Span], interval: int) -> Peak | None:
    """Return the peak of one steady period, or ``None`` where nothing is ever held.

    Raises ``InputError`` for a span of more than ``LONGEST`` iterations.
    """
    spans = tuple(span for span in spans if span.end > span.start)
    if not spans:
        return None
    first = steady_cycle(spans, interval)
    held = unroll(spans, interval)
    amount, cycle = _highest(held, first, first + interval)
    return Peak(amount=amount, cycle=cycle, held=tuple(item for item in held if item.start <= cycle < item.end))


def _instances(span: Span, interval: int, first: int) -> Iterator[Held]:
    if span.end - span.start > LONGEST * interval:
        raise InputError(
            span.subject,
            f"it lasts from cycle {span.start} to {span.end}, more than {LONGEST} intervals of {interval} cycles",
            "correct the start cycles of the schedule or the distances of the graph",
        )
    iteration = max(0, (first - span.end) // interval)
    while span.start + iteration * interval < first + interval:
        start, end = span.start + iteration * interval, span.end + iteration * interval
        if end > max(start, first):
            yield Held(span=span, iteration=iteration, start=start, end=end)
        iteration += 1


def _highest(held: tuple[Held, ...], first: int, last: int) -> tuple[int, int]:
    """Add up the period ``[first, last)`` from change to change; return the largest sum and its first cycle."""
    changes: dict[int, int] = defaultdict(int)
    changes[first] = 0
    for item in held:
        changes[max(item.start, first)] += item.span.amount
        changes[min(item.end, last)] -= item.span.amount
    best, best_cycle, level = 0, first, 0
    for cycle in sorted(changes):
        level += changes[cycle]
        if level > best:
            best, best_cycle = level, cycle
    return best, best_cycle
