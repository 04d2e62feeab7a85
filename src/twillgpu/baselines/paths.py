"""Longest paths at one interval: earliest and latest starts, heights and depths of modulo scheduling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from twillgpu.costs.record import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A dependence at one interval: the head starts at least ``cycles`` after the tail (may be negative)."""

    tail: str
    head: str
    cycles: int


def crossing(problem: Problem, groups: Mapping[str, int]) -> Problem:
    """Return ``problem`` with the hand-offs that a partition costs in the latencies of its edges."""
    edges = tuple(
        replace(edge, latency_cycles=edge.latency_cycles + edge.handoff_cycles)
        if groups[edge.tail] != groups[edge.head]
        else edge
        for edge in problem.edges
    )
    return replace(problem, edges=edges)


def steps(problem: Problem, interval: int) -> tuple[Step, ...]:
    """Return the dependences between different ops at ``interval``, without slack for whole turns."""
    return tuple(
        Step(tail=edge.tail, head=edge.head, cycles=edge.latency_cycles - edge.distance * interval)
        for edge in problem.edges
        if edge.tail != edge.head
    )


def longest(problem: Problem, known: tuple[Step, ...], *, backward: bool = False) -> dict[str, int] | None:
    """Return the longest path to every op (``backward``: from it, its latency included), ``None`` on a circuit."""
    length = {op.name: max(1, op.latency_cycles) if backward else 0 for op in problem.ops}
    for _ in range(len(length) + 1):
        changed = False
        for step in known:
            here, there = (step.head, step.tail) if backward else (step.tail, step.head)
            if length[here] + step.cycles > length[there]:
                length[there], changed = length[here] + step.cycles, True
        if not changed:
            return length
    return None
