"""What a run's steady state consists of: cycles per iteration, stalls, the critical chain, utilisation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from twillgpu.machine.record import Unit
from twillgpu.simulate.critical import HELD, chain
from twillgpu.simulate.record import Event, Share, SteadyState

Shape: TypeAlias = tuple[tuple[str, str, int, int], ...]
"""The events of an iteration with their times, counted from its mark."""

PERIODS = 12
"""Longest period, in iterations, that is looked for."""


class Iterations:
    """The events of the loop by iteration of the first tile, as they come."""

    def __init__(self) -> None:
        self.newest: dict[str, int] = {}
        self._events: dict[int, list[Event]] = defaultdict(list)
        self._shapes: dict[int, Shape] = {}
        self._taken = 0

    def take(self, events: Sequence[Event]) -> None:
        """Sort in the events that are new since the last call."""
        for event in events[self._taken :]:
            if event.iteration is not None and event.tile == 0:
                self._events[event.iteration].append(event)
                self.newest[event.group] = max(event.iteration, self.newest.get(event.group, 0))
        self._taken = len(events)

    def mark(self, iteration: int) -> int:
        """Return a moment that belongs to an iteration: when the last of its instructions starts."""
        return self.last(iteration).start_cycle

    def last(self, iteration: int) -> Event:
        """Return the instruction of an iteration that starts last, those left out that only wait."""
        acting = [event for event in self._events[iteration] if event.kind not in HELD]
        return max(acting or self._events[iteration], key=lambda event: (event.start_cycle, event.number))

    def period(self, last: int, settle: int) -> int:
        """Return after how many iterations all times repeat, 0 if they do not.

        Judged by the iterations before ``last``, which must be over: ``settle`` of them have to repeat, so that
        everything that is under way at one time does.
        """
        for period in range(1, PERIODS + 1):
            compared = range(last - max(settle, period), last)
            if compared[0] - period < 0:
                break
            steps = {self.mark(at) - self.mark(at - period) for at in compared}
            if len(steps) == 1 and all(self._shape(at) == self._shape(at - period) for at in compared):
                return period
        return 0

    def _shape(self, iteration: int) -> Shape:
        if iteration not in self._shapes:
            base, events = self.mark(iteration), self._events[iteration]
            self._shapes[iteration] = tuple(
                (one.group, one.op, one.start_cycle - base, one.work_start_cycle - base) for one in events
            )
        return self._shapes[iteration]


def steady(
    events: Sequence[Event], units: Sequence[Unit], ii_cycles: int, window: tuple[int, int], period: int
) -> SteadyState:
    """Return what the iterations ``window`` consist of: from the first up to, and without, the second.

    Args:
        events: of a run.
        units: of the problem.
        ii_cycles: the schedule's interval.
        window: iterations of the first tile.
        period: after how many iterations all times repeat, 0 where they do not.
    """
    iterations = Iterations()
    iterations.take(events)
    first, last = window
    count = last - first
    begin, end = iterations.mark(first), iterations.mark(last)
    inside = [event for event in events if begin <= event.start_cycle < end]
    return SteadyState(
        ii_cycles=ii_cycles,
        cycles=(end - begin) / count,
        period=period,
        first=first,
        last=last,
        issue=_shares(((event.group, _busy_name(event), _busy(event)) for event in inside), count),
        stalls=_shares(((event.group, event.stall, event.stall_cycles) for event in inside), count),
        critical=_shares(chain(events, iterations.last(last), begin), count),
        utilisation=_utilisation(events, units, begin, end),
    )


def _busy_name(event: Event) -> str:
    """What keeps the stream busy: ops, barrier instructions, hand-overs."""
    names = {
        "wait": "barrier instructions",
        "arrive": "barrier instructions",
        "put": "hand-overs",
        "get": "hand-overs",
    }
    return names.get(event.kind, "ops")


def _busy(event: Event) -> int:
    if event.kind in HELD:
        return event.end_cycle - event.start_cycle - event.stall_cycles
    return event.end_cycle - event.start_cycle


def _shares(found: Iterable[tuple[str, str, int]], count: int) -> tuple[Share, ...]:
    sums: dict[tuple[str, str], int] = defaultdict(int)
    for group, reason, cycles in found:
        sums[group, reason] += cycles
    ordered = sorted(sums.items(), key=lambda item: (-item[1], item[0]))
    return tuple(
        Share(group=group, reason=reason, cycles=cycles / count) for (group, reason), cycles in ordered if cycles
    )


def _utilisation(
    events: Sequence[Event], units: Sequence[Unit], begin: int, end: int
) -> tuple[tuple[str, float], ...]:
    """Share of each unit's capacity that is held between two moments."""
    held = {unit.name: 0 for unit in units}
    for event in events:
        for use in event.uses:
            start = event.work_start_cycle + use.offset
            overlap = min(end, start + use.cycles) - max(begin, start)
            held[use.unit] += max(0, overlap) * use.amount
    shares = ((unit.name, held[unit.name] / (unit.capacity * (end - begin))) for unit in units)
    return tuple(sorted(shares, key=lambda one: (-one[1], one[0])))
