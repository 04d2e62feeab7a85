"""Units of the SM over time: which op holds how much of each, and when the next one fits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from twillgpu.graph.record import Use
from twillgpu.machine.record import Unit


class Hold(NamedTuple):
    """``amount`` of a unit held by event ``event`` during ``[start, end)``."""

    start: int
    end: int
    amount: int
    event: int


class Place(NamedTuple):
    """Where a reservation table fits: its start; the unit and the event that it had to wait for, if any."""

    start: int
    unit: str
    event: int


class Units:
    """Reservations of all units. What lies before the present is forgotten (``forget``)."""

    def __init__(self, units: Sequence[Unit]) -> None:
        self._capacity = {unit.name: unit.capacity for unit in units}
        self._holds: dict[str, list[Hold]] = {unit.name: [] for unit in units}

    def find(self, uses: Sequence[Use], earliest: int) -> Place:
        """Return the first start from ``earliest`` on at which no unit is held beyond its capacity."""
        place = Place(earliest, "", -1)
        while True:
            conflict = self._conflict(uses, place.start)
            if conflict is None:
                return place
            place = conflict

    def hold(self, uses: Sequence[Use], start: int, event: int) -> None:
        """Reserve the units for an event that starts at ``start``."""
        for use in uses:
            begin = start + use.offset
            self._holds[use.unit].append(Hold(begin, begin + use.cycles, use.amount, event))

    def forget(self, now: int) -> None:
        """Drop what is over by ``now``."""
        for unit, holds in self._holds.items():
            self._holds[unit] = [hold for hold in holds if hold.end > now]

    def _conflict(self, uses: Sequence[Use], start: int) -> Place | None:
        """Return the next start worth trying, ``None`` where ``start`` fits.

        Too much is held at some moment of a use: it has to move until the first of the holds there ends.
        """
        for use in uses:
            room = self._capacity[use.unit] - use.amount
            begin, end = start + use.offset, start + use.offset + use.cycles
            live = [hold for hold in self._holds[use.unit] if hold.start < end and hold.end > begin]
            if sum(hold.amount for hold in live) <= room:
                continue
            for moment in sorted({max(begin, hold.start) for hold in live}):
                there = [hold for hold in live if hold.start <= moment < hold.end]
                if sum(hold.amount for hold in there) > room:
                    first = min(there, key=lambda hold: (hold.end, hold.event))
                    return Place(first.end - use.offset, use.unit, first.event)
        return None
