"""Work that an engine has been given and not yet completed, and arrivals that wait for such work."""

from __future__ import annotations

from dataclasses import dataclass

from twillgpu.emulate.order import Promise
from twillgpu.emulate.shadow import Event
from twillgpu.emulate.steps import IN_ORDER, Commit, Work


@dataclass(slots=True, eq=False)
class Flight:
    """An op of an engine under way."""

    group: int
    step: Work
    event: Event
    has_read: bool = False


@dataclass(slots=True, eq=False)
class Pending:
    """An arrival that an engine makes when everything before it in its queue is complete."""

    step: Commit
    promise: Promise


class Engines:
    """All work under way: one queue for each engine and group where order is kept, a set where it is not."""

    def __init__(self) -> None:
        self._queues: dict[tuple[int, str], list[Flight | Pending]] = {}
        self._free: list[Flight] = []

    def give(self, flight: Flight) -> None:
        """Begin an op."""
        if flight.step.engine in IN_ORDER:
            self._queues.setdefault((flight.group, flight.step.engine), []).append(flight)
        else:
            self._free.append(flight)

    def promise(self, group: int, pending: Pending) -> None:
        """Begin to wait for all ops of a group on an engine."""
        self._queues.setdefault((group, pending.step.engine), []).append(pending)

    def ready(self) -> list[Flight]:
        """Return the ops that can go on: all unordered ones, and the oldest of each queue."""
        return [*self._free, *(queue[0] for queue in self._queues.values() if queue and isinstance(queue[0], Flight))]

    def remove(self, flight: Flight) -> None:
        """End an op."""
        if flight.step.engine in IN_ORDER:
            self._queues[flight.group, flight.step.engine].remove(flight)
        else:
            self._free.remove(flight)

    def due(self) -> list[Pending]:
        """Take and return the arrivals for which nothing is under way any more."""
        found: list[Pending] = []
        for queue in self._queues.values():
            while queue and isinstance(queue[0], Pending):
                found.append(queue.pop(0))  # type: ignore[arg-type]
        return found

    def drained(self, group: int, engine: str, pending: int, reads_only: bool) -> bool:
        """Return whether at most ``pending`` ops of a group on an engine are incomplete, or have not read."""
        flights = [one for one in self._queues.get((group, engine), ()) if isinstance(one, Flight)]
        older = flights[: max(0, len(flights) - pending)]
        return all(reads_only and flight.has_read for flight in older)
