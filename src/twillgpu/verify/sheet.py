"""A problem and a schedule side by side, looked up by op name, with the wording of places in messages."""

from __future__ import annotations

from dataclasses import dataclass

from twillgpu.costs.record import PricedEdge, PricedOp, Problem
from twillgpu.schedule.record import Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """What the rules look up.

    Attributes:
        problem, schedule: as given.
        interval: initiation interval in cycles.
        ops: the ops that have a start, by name, in the problem's order.
        start: start cycle in iteration 0 of these ops (the first one given, where there are several).
        group: index of the group of these ops, in range or not.
        edges: the edges between these ops.
    """

    problem: Problem
    schedule: Schedule
    interval: int
    ops: dict[str, PricedOp]
    start: dict[str, int]
    group: dict[str, int]
    edges: tuple[PricedEdge, ...]

    def at(self, name: str, iteration: int) -> int:
        """Return the cycle at which op ``name`` of ``iteration`` starts."""
        return self.start[name] + iteration * self.interval

    def crosses(self, edge: PricedEdge) -> bool:
        """Return whether the two ends of ``edge`` are in different groups."""
        return self.group[edge.tail] != self.group[edge.head]

    def readers(self, name: str) -> tuple[PricedEdge, ...]:
        """Return the data edges that leave op ``name``: one per consumer of its value."""
        return tuple(edge for edge in self.edges if edge.tail == name and edge.kind == "data")

    def say(self, name: str, iteration: int) -> str:
        """Return the words for an op of one iteration: its name, iteration, source line and start."""
        source = self.ops[name].source
        place = f" ({source})" if source else ""
        return f"{name} of iteration {iteration}{place} starts at cycle {self.at(name, iteration)}"


def sheet(problem: Problem, schedule: Schedule) -> Sheet:
    """Return the sheet of ``schedule``; ops without a start, and their edges, are left to ``uniqueness``."""
    start: dict[str, int] = {}
    group: dict[str, int] = {}
    for placed in schedule.ops:
        start.setdefault(placed.name, placed.start_cycle)
        group.setdefault(placed.name, placed.group)
    ops = {op.name: op for op in problem.ops if op.name in start}
    return Sheet(
        problem=problem,
        schedule=schedule,
        interval=schedule.ii_cycles,
        ops=ops,
        start=start,
        group=group,
        edges=tuple(edge for edge in problem.edges if edge.tail in ops and edge.head in ops),
    )


def source_of(op: PricedOp) -> str:
    """Return an op's name with its source line where it has one."""
    return f"{op.name} ({op.source})" if op.source else op.name
