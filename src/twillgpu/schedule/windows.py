"""Earliest and latest starts from longest paths, and the anchor op."""

from __future__ import annotations

from dataclasses import dataclass

from twillgpu.costs.record import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """First and last start of every op at one interval, and the op that is pinned to slot 0."""

    of: dict[str, tuple[int, int]]
    anchor: str


def windows(problem: Problem, interval: int, stages: int) -> Windows | None:
    """Return the windows of all ops for at most ``stages`` stages, or ``None`` where some window is empty.

    The horizon is one period longer than the stages, since the anchor, not the first op, is at slot 0.
    """
    early = _longest_paths(problem, interval, forward=True)
    late = _longest_paths(problem, interval, forward=False)
    if early is None or late is None:
        return None
    length = stages * interval
    if any(early[op.name] + late[op.name] > length for op in problem.ops):
        return None
    horizon = length + interval - 1
    of = {op.name: (early[op.name], horizon - late[op.name]) for op in problem.ops}
    return Windows(of=of, anchor=_anchor(problem))


def _anchor(problem: Problem) -> str:
    """Return the op with the longest use of a unit of capacity 1; the first in program order among equals."""
    single = {unit.name for unit in problem.units if unit.capacity == 1}

    def longest(index: int) -> tuple[int, int]:
        uses = [use.cycles for use in problem.ops[index].uses if use.unit in single and use.amount]
        return (max(uses, default=0), -index)

    return problem.ops[max(range(len(problem.ops)), key=longest)].name


def heights(problem: Problem, interval: int) -> dict[str, int] | None:
    """Return the longest path from every op to the end of the iteration, ``None`` on a circuit of positive length."""
    return _longest_paths(problem, interval, forward=False)


def _longest_paths(problem: Problem, interval: int, *, forward: bool) -> dict[str, int] | None:
    """Return the longest path to (or, backward, from) every op, ``None`` on a circuit of positive length."""
    length = {op.name: 0 if forward else max(1, op.latency_cycles) for op in problem.ops}
    steps = [
        (edge.tail, edge.head, edge.latency_cycles - edge.distance * interval)
        if forward
        else (edge.head, edge.tail, edge.latency_cycles - edge.distance * interval)
        for edge in problem.edges
    ]
    for _ in range(len(problem.ops) + 1):
        changed = False
        for source, target, weight in steps:
            if length[source] + weight > length[target]:
                length[target] = length[source] + weight
                changed = True
        if not changed:
            return length
    return None
