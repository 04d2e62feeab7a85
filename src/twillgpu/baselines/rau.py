"""Iterative modulo scheduling.

B. R. Rau, "Iterative modulo scheduling: an algorithm for software pipelining loops", MICRO-27, 1994: ops in order of
their height, each at its earliest free slot; where there is none, those in the way are evicted and scheduled again,
until a budget is spent.
"""

from __future__ import annotations

from collections.abc import Mapping

from twillgpu.baselines.paths import Step, longest, steps
from twillgpu.baselines.reservations import Reservations
from twillgpu.costs.record import Problem

BUDGET = 6
"""Placements per op before an interval is given up (Rau's budget ratio)."""


def iterative(problem: Problem, groups: Mapping[str, int], interval: int) -> dict[str, int] | None:
    """Return a start for every op at ``interval``, or ``None`` where the budget ends first.

    ``problem`` has the hand-offs of ``groups`` in its edges.
    """
    known = steps(problem, interval)
    heights = longest(problem, known, backward=True)
    if heights is None:
        return None
    table = Reservations(problem, groups, interval)
    priority = sorted(heights, key=lambda name: -heights[name])
    last: dict[str, int] = {}
    for _ in range(BUDGET * len(priority)):
        name = next((name for name in priority if name not in table.starts), None)
        if name is None:
            return table.starts
        start = _slot(table, known, last, name)
        for other in table.conflicts(name, start):
            table.remove(other)
        if not table.free(name, start):
            return None
        table.place(name, start)
        last[name] = start
        _evict_broken(table, known, name)
    return table.starts if len(table.starts) == len(priority) else None


def _slot(table: Reservations, known: tuple[Step, ...], last: Mapping[str, int], name: str) -> int:
    """Return the earliest free start, or, where there is none, a later one than the last time."""
    ready = [
        table.starts[step.tail] + step.cycles for step in known if step.head == name and step.tail in table.starts
    ]
    earliest = max([0, *ready])
    for start in table.candidates(name, earliest, earliest + table.interval - 1):
        if table.free(name, start):
            return start
    return earliest if name not in last or earliest > last[name] else last[name] + 1


def _evict_broken(table: Reservations, known: tuple[Step, ...], name: str) -> None:
    """Take out the successors that now start too early."""
    for step in known:
        late = step.tail == name and step.head in table.starts
        if late and table.starts[step.head] < table.starts[name] + step.cycles:
            table.remove(step.head)
