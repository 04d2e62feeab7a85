"""OPTIMAL-MODULO-SCHEDULE(G, I): the shortest modulo schedule without warps, as an integer program.

Binaries are indexed by time, as in Stoutchinin's formulation: ``y[v, t]`` is 1 if op v starts at cycle t or before,
so that ``y[v, t] - y[v, t - 1]`` is 1 exactly at its start. In this form a dependence is a row of two binaries,
``y[v, t] <= y[u, t - d + delta I]``, and the linear relaxation of dependences alone is exact. The ranges of the
starts say that every op ends in time.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Literal

from twillgpu.costs.record import Problem
from twillgpu.graph.record import Use
from twillgpu.schedule.paper.integer import IntegerProgram, Row, Solution, solved
from twillgpu.schedule.paper.record import IntegerSolver
from twillgpu.schedule.resolution import MOST_STAGES, longest_path
from twillgpu.schedule.windows import windows

Linear = tuple[Row, int]
"""A sum of (variable, coefficient) pairs, and a constant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuloSchedule:
    """What OPTIMAL-MODULO-SCHEDULE returns.

    Attributes:
        outcome: ``optimal``: the shortest; ``feasible``: a schedule, perhaps longer than it need be; ``infeasible``:
            none at this interval; ``unknown``: the time was over.
        starts: M(v); empty without one.
        length: LEN(M): the largest start plus latency.
    """

    outcome: Literal["optimal", "feasible", "infeasible", "unknown"]
    starts: dict[str, int]
    length: int = 0


def shortest(
    problem: Problem, interval: int, *, seconds: float, solver: IntegerSolver = "highs", stages: int | None = None
) -> ModuloSchedule:
    """Return the shortest modulo schedule of ``problem`` (dependences and units only) at one interval.

    First the number of stages grows until there is a schedule, then the length within the last stage is halved: with
    the length given, the ranges of all starts are narrow, and programs without an objective are decided much faster
    than one that minimises the length. ``stages`` limits the length. Without it any length is allowed: if there
    is a schedule at all, there is one no longer than the longest path with every step rounded up to the slots of
    its ops.

    Raises:
        InputError: the solver's package is not installed.
    """
    until = time.monotonic() + seconds
    path = longest_path(problem)
    if _overfull(problem, interval):
        return ModuloSchedule(outcome="infeasible", starts={})
    most = stages or min(MOST_STAGES, -(-(path + (len(problem.ops) - 1) * (interval - 1)) // interval))
    fewest = -(-path // interval)
    known = True
    for count in range(fewest, most + 1):
        left = until - time.monotonic()
        if left <= 0:
            return ModuloSchedule(outcome="unknown", starts={})
        found = _within(problem, interval, count * interval, solver, left)
        if found.starts:
            least = max(path, (count - 1) * interval + 1)
            return _shortened(problem, interval, least, found, solver, until if known else 0.0)
        known = known and found.outcome == "infeasible"
    return ModuloSchedule(outcome="infeasible" if known else "unknown", starts={})


def _shortened(
    problem: Problem, interval: int, least: int, found: ModuloSchedule, solver: IntegerSolver, until: float
) -> ModuloSchedule:
    """Return the shortest schedule of at least ``least`` cycles; ``found`` or a shorter one where time is over."""
    low = least
    while low < found.length:
        middle = (low + found.length) // 2
        seconds = until - time.monotonic()
        shorter = _within(problem, interval, middle, solver, seconds) if seconds > 0 else None
        if shorter is None or shorter.outcome == "unknown":
            return replace(found, outcome="feasible")
        if shorter.starts:
            found = shorter
        else:
            low = middle + 1
    return found


def _within(problem: Problem, interval: int, length: int, solver: IntegerSolver, seconds: float) -> ModuloSchedule:
    """Return any schedule of at most ``length`` cycles."""
    stages = -(-length // interval)
    span = windows(problem, interval, stages)
    later = interval - 1 + stages * interval - length
    ranges = {name: (first, last - later) for name, (first, last) in span.of.items()} if span else {}
    if any(first > last for first, last in ranges.values()) or not ranges:
        return ModuloSchedule(outcome="infeasible", starts={})
    model = _Model(problem, interval, ranges)
    solution = solved(model.program, solver, seconds)
    if not solution.values and model.program.upper:
        outcome: Literal["infeasible", "unknown"] = "infeasible" if solution.outcome == "infeasible" else "unknown"
        return ModuloSchedule(outcome=outcome, starts={})
    return model.schedule(solution)


def _overfull(problem: Problem, interval: int) -> bool:
    """Return whether some unit has more to do in an interval than it can: the program would say so, too."""
    held = dict.fromkeys((unit.name for unit in problem.units), 0)
    for op in problem.ops:
        for use in op.uses:
            held[use.unit] += use.cycles * use.amount
    return any(held[unit.name] > unit.capacity * interval for unit in problem.units)


class _Model:
    """The program of one interval and its variables."""

    def __init__(self, problem: Problem, interval: int, ranges: dict[str, tuple[int, int]]) -> None:
        self.problem, self.interval = problem, interval
        self.program = IntegerProgram()
        self.ranges = ranges
        self._begun = {
            (name, cycle): self.program.variable()
            for name, (first, last) in ranges.items()
            for cycle in range(first, last)
        }
        self._uniqueness()
        self._dependence()
        self._capacity()

    def begun(self, name: str, cycle: int) -> Linear:
        """Return y[v, t], a constant outside the op's range."""
        first, last = self.ranges[name]
        if first <= cycle < last:
            return [(self._begun[name, cycle], 1)], 0
        return [], int(cycle >= last)

    def _less(self, left: Linear, right: Linear) -> None:
        """Add left <= right."""
        terms = left[0] + [(variable, -coefficient) for variable, coefficient in right[0]]
        self.program.at_most(terms, right[1] - left[1])

    def _uniqueness(self) -> None:
        for name, (first, last) in self.ranges.items():
            for cycle in range(first + 1, last):
                self._less(self.begun(name, cycle - 1), self.begun(name, cycle))

    def _dependence(self) -> None:
        for edge in self.problem.edges:
            gap = edge.latency_cycles - edge.distance * self.interval
            first, last = self.ranges[edge.head]
            for cycle in range(first, last + 1):
                self._less(self.begun(edge.head, cycle), self.begun(edge.tail, cycle - gap))

    def _capacity(self) -> None:
        for unit in self.problem.units:
            runs = [(op.name, use) for op in self.problem.ops for use in op.uses if use.unit == unit.name]
            for slot in range(self.interval) if runs else ():
                terms: Row = []
                limit = unit.capacity
                for name, use in runs:
                    held, constant = self._held(name, use, slot)
                    terms += held
                    limit -= constant
                self.program.at_most(terms, limit)

    def _held(self, name: str, use: Use, slot: int) -> Linear:
        """Return the amount that a run holds in a slot, over all cycles that lie in it."""
        first, last = self.ranges[name]
        terms: Row = []
        constant = 0
        begin, end = first + use.offset, last + use.offset + use.cycles
        for cycle in range(begin + (slot - begin) % self.interval, end, self.interval):
            now, before = self.begun(name, cycle - use.offset), self.begun(name, cycle - use.offset - use.cycles)
            terms += [(variable, use.amount) for variable, _ in now[0]]
            terms += [(variable, -use.amount) for variable, _ in before[0]]
            constant += use.amount * (now[1] - before[1])
        return terms, constant

    def schedule(self, solution: Solution) -> ModuloSchedule:
        """Return the schedule that the values of the variables stand for."""
        starts = {
            name: last - sum(solution.values[self._begun[name, cycle]] for cycle in range(first, last))
            for name, (first, last) in self.ranges.items()
        }
        length = max(starts[op.name] + max(1, op.latency_cycles) for op in self.problem.ops)
        return ModuloSchedule(outcome="optimal", starts=starts, length=length)
