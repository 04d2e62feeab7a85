"""Iterative modulo scheduling: a heuristic for one group, which finds most schedules without the solver.

After B. R. Rau, "Iterative Modulo Scheduling" (MICRO-27, 1994): ops are placed in order of their height, each as
early as its predecessors allow; where every slot of a period is taken, an op is placed all the same and what stands
in its way is taken out again. What it finds is a schedule; that it finds none means nothing.
"""

from __future__ import annotations

from collections import defaultdict
from heapq import heapify, heappop, heappush

from twillgpu.costs.record import PricedEdge, Problem
from twillgpu.schedule.polish import wait_window
from twillgpu.schedule.windows import heights

BUDGET = 12
"""Placements per op before it gives up."""


def iterative_schedule(problem: Problem, interval: int, stages: int) -> dict[str, int] | None:
    """Return a start for every op within ``stages`` stages of ``interval``, all ops in one group, or ``None``.

    Dependences, units and waits are respected; registers and memories are not looked at.
    """
    height = heights(problem, interval)
    if height is None:
        return None
    latest = {name: stages * interval - tail for name, tail in height.items()}
    table = _Table(problem, interval, latest)
    if not table.possible:
        return None
    order = {op.name: index for index, op in enumerate(problem.ops)}
    waiting = [(-height[name], order[name], name) for name in order]
    heapify(waiting)
    for _ in range(BUDGET * len(order)):
        if not waiting:
            return table.starts if table.in_time() else None
        _, _, name = heappop(waiting)
        for removed in table.put(name):
            heappush(waiting, (-height[removed], order[removed], removed))
    return None


class _Table:
    """Starts of the ops placed so far, with what they hold.

    Attributes:
        starts: start of every placed op.
        possible: whether every op alone fits in the interval.
    """

    def __init__(self, problem: Problem, interval: int, latest: dict[str, int]) -> None:
        self.starts: dict[str, int] = {}
        self._interval = interval
        self._latest = latest
        self._last: dict[str, int] = {}
        self._capacity = {unit.name: unit.capacity for unit in problem.units}
        self._held: dict[tuple[str, int], dict[str, int]] = defaultdict(dict)
        self._uses = {op.name: self._slots(problem, op.name) for op in problem.ops}
        self.possible = all(
            amount <= self._capacity[unit] for needs in self._uses.values() for (unit, _), amount in needs.items()
        )
        self._into: dict[str, list[PricedEdge]] = {op.name: [] for op in problem.ops}
        self._out: dict[str, list[PricedEdge]] = {op.name: [] for op in problem.ops}
        for edge in problem.edges:
            self._into[edge.head].append(edge)
            self._out[edge.tail].append(edge)
        self._windows = {op.name: wait_window(problem, op) for op in problem.ops}
        self._waiters = {edge.head for edge in problem.edges if edge.blocking}

    def _slots(self, problem: Problem, name: str) -> dict[tuple[str, int], int]:
        """Return what an op holds of each unit, by slot after its start, modulo the interval."""
        needs: dict[tuple[str, int], int] = defaultdict(int)
        for use in next(op.uses for op in problem.ops if op.name == name):
            for cycle in range(use.offset, use.offset + use.cycles):
                needs[use.unit, cycle % self._interval] += use.amount
        return {key: amount for key, amount in needs.items() if amount}

    def put(self, name: str) -> set[str]:
        """Place an op; return the ops taken out for it."""
        earliest = max((self._after(edge) for edge in self._into[name] if self._binds(edge)), default=0)
        earliest = max(0, earliest)
        period = range(earliest, min(earliest + self._interval, self._latest[name] + 1))
        start = next((time for time in period if not self._in_the_way(name, time)), None)
        if start is None:
            start = max(earliest, self._last.get(name, -1) + 1)
            start = earliest if start > self._latest[name] else start
        removed = self._in_the_way(name, start) | self._too_early(name, start)
        for other in removed:
            self._take_out(other)
        self._put_in(name, start)
        return removed

    def in_time(self) -> bool:
        """Return whether every op placed starts early enough for what follows it."""
        return all(start <= self._latest[name] for name, start in self.starts.items())

    def _binds(self, edge: PricedEdge) -> bool:
        return edge.tail in self.starts and edge.tail != edge.head

    def _after(self, edge: PricedEdge) -> int:
        return self.starts[edge.tail] + edge.latency_cycles - edge.distance * self._interval

    def _in_the_way(self, name: str, time: int) -> set[str]:
        """Return the placed ops that forbid a start of ``name`` at ``time``: on its units, or by waits."""
        found: set[str] = set()
        for (unit, slot), amount in self._uses[name].items():
            held = self._held[unit, (slot + time) % self._interval]
            if held and sum(held.values()) + amount > self._capacity[unit]:
                found.update(held)
        if self._waiters:
            found.update(other for other in self.starts if self._wait_between(name, time, other))
        return found

    def _wait_between(self, name: str, time: int, other: str) -> bool:
        apart = (time - self.starts[other]) % self._interval
        if name in self._waiters and apart < self._windows[other]:
            return True
        return other in self._waiters and -apart % self._interval < self._windows[name]

    def _too_early(self, name: str, start: int) -> set[str]:
        return {
            edge.head
            for edge in self._out[name]
            if edge.head in self.starts
            and edge.head != name
            and start + edge.latency_cycles - edge.distance * self._interval > self.starts[edge.head]
        }

    def _take_out(self, name: str) -> None:
        start = self.starts.pop(name)
        for unit, slot in self._uses[name]:
            del self._held[unit, (slot + start) % self._interval][name]

    def _put_in(self, name: str, start: int) -> None:
        self.starts[name] = self._last[name] = start
        for (unit, slot), amount in self._uses[name].items():
            self._held[unit, (slot + start) % self._interval][name] = amount
