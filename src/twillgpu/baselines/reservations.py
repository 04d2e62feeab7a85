"""A modulo reservation table: what is held in each slot of the period, and which starts are free (Rau and Glaeser,
"Some scheduling techniques and an easily schedulable horizontal architecture", MICRO-14, 1981).

Beside units, the table knows the waits of a warp group: no op of a group may issue when another one waits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from twillgpu.costs.record import PricedOp, Problem
from twillgpu.graph.record import Use
from twillgpu.schedule.polish import wait_window

Levels = np.ndarray[tuple[int], np.dtype[np.int64]]


class Reservations:
    """The ops placed so far at one interval.

    Attributes:
        interval: initiation interval in cycles.
        starts: start of every op that is placed.
    """

    def __init__(self, problem: Problem, groups: Mapping[str, int], interval: int) -> None:
        self.problem = problem
        self.groups = groups
        self.interval = interval
        self.starts: dict[str, int] = {}
        self._ops = {op.name: op for op in problem.ops}
        self._capacity = {unit.name: unit.capacity for unit in problem.units}
        self._held = {unit.name: np.zeros(interval, dtype=np.int64) for unit in problem.units}
        self._waiting = {
            edge.head
            for edge in problem.edges
            if edge.blocking or (edge.tail != edge.head and groups[edge.tail] != groups[edge.head])
        }

    def place(self, name: str, start: int) -> None:
        """Place an op; conflicts are the caller's."""
        self.starts[name] = start
        self._hold(name, start, 1)

    def remove(self, name: str) -> None:
        """Take an op out again."""
        self._hold(name, self.starts.pop(name), -1)

    def free(self, name: str, start: int) -> bool:
        """Return whether an op that starts then meets no other one."""
        return not self._overbooked(name, start) and not any(self._in_each_other_s_way(name, start))

    def conflicts(self, name: str, start: int) -> set[str]:
        """Return the placed ops that an op that starts then would meet."""
        found = set(self._in_each_other_s_way(name, start))
        for unit, slots in self._overbooked(name, start).items():
            for other in self.starts:
                uses = [use for use in self._ops[other].uses if use.unit == unit]
                if any(self._added(use, self.starts[other])[slots].any() for use in uses):
                    found.add(other)
        return found

    def candidates(self, name: str, first: int, last: int) -> list[int]:
        """Return the starts in ``first..last`` at which something ends that may be in the way, ascending, and
        ``first`` itself: the earliest free start is among them.
        """
        ends = {0}
        for other, start in self.starts.items():
            op = self._ops[other]
            ends |= {start + 1 - first, start + wait_window(self.problem, op) - first}
            for use in op.uses:
                mine = [use_.offset for use_ in self._ops[name].uses if use_.unit == use.unit]
                ends |= {start + use.offset + use.cycles - offset - first for offset in mine}
        return sorted(first + end for end in {end % self.interval for end in ends} if first + end <= last)

    def backward(self, name: str, first: int, last: int) -> list[int]:
        """Return the same for the latest free start: ``last``, and the starts at which an op ends just in time."""
        own = self._ops[name]
        gaps = {0}
        for other, start in self.starts.items():
            gaps |= {last - start + 1, last - start + wait_window(self.problem, own)}
            for use in self._ops[other].uses:
                mine = [use_.offset + use_.cycles for use_ in own.uses if use_.unit == use.unit]
                gaps |= {last - start - use.offset + end for end in mine}
        return sorted(
            (last - gap for gap in {gap % self.interval for gap in gaps} if last - gap >= first), reverse=True
        )

    def _hold(self, name: str, start: int, sign: int) -> None:
        for use in self._ops[name].uses:
            self._held[use.unit] += sign * self._added(use, start)

    def _added(self, use: Use, start: int) -> Levels:
        turns, rest = divmod(use.cycles, self.interval)
        levels = np.full(self.interval, turns * use.amount, dtype=np.int64)
        first = (start + use.offset) % self.interval
        levels[first : first + rest] += use.amount
        if first + rest > self.interval:
            levels[: first + rest - self.interval] += use.amount
        return levels

    def _overbooked(self, name: str, start: int) -> dict[str, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
        """Return, for each unit that would be held too often, in which slots."""
        found = {}
        op = self._ops[name]
        for unit in dict.fromkeys(use.unit for use in op.uses):
            levels = self._held[unit].copy()
            for use in op.uses:
                if use.unit == unit:
                    levels += self._added(use, start)
            slots = levels > self._capacity[unit]
            if slots.any():
                found[unit] = slots
        return found

    def _in_each_other_s_way(self, name: str, start: int) -> Iterator[str]:
        """Yield the ops of the group that would issue when this one waits, or the other way round."""
        for other, there in self.starts.items():
            if self.groups[other] != self.groups[name] or other == name:
                continue
            issues = name in self._waiting and self._issues(self._ops[other], start - there)
            if issues or (other in self._waiting and self._issues(self._ops[name], there - start)):
                yield other

    def _issues(self, op: PricedOp, later: int) -> bool:
        return later % self.interval < wait_window(self.problem, op)
