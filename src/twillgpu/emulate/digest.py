"""The state of a symbolic run, without what can no longer matter, and relative to where the run is.

Two runs with equal digests go on in the same way for ever: ``docs/emulation.md`` says why.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import NamedTuple

from twillgpu.emulate.order import Order
from twillgpu.emulate.shadow import Event, Segment, Shadow, Written
from twillgpu.emulate.symbolic import SymbolicRun
from twillgpu.lower.record import WarpProgram


class Clock(NamedTuple):
    """How many iterations, and how many tiles, a block has begun."""

    iterations: int
    tiles: int


class Scale(NamedTuple):
    """What instances and phases are counted in: for each ring its clock, for each barrier copy its clock and its
    barrier's copies. Clocks are true where they count tiles. No access names an instance older than ``oldest``.
    """

    rings: dict[str, bool]
    barriers: tuple[tuple[bool, int], ...]
    oldest: int


def scale_of(program: WarpProgram, oldest: int) -> Scale:
    """Return the scale of a program of which no access names an instance more than ``oldest`` before its clock."""
    return Scale(
        oldest=oldest,
        rings={ring.name: ring.scope == "tile" for ring in program.rings},
        barriers=tuple(
            (barrier.scope == "tile", barrier.copies) for barrier in program.barriers for _ in range(barrier.copies)
        ),
    )


def digest(run: SymbolicRun, scale: Scale, clock: Clock) -> Hashable:
    """Return the state of ``run`` at ``clock``: equal digests at clocks that agree modulo the period mean equal
    futures, shifted.
    """
    return _Digest(run, scale, clock).all()


class _Digest:
    def __init__(self, run: SymbolicRun, scale: Scale, clock: Clock) -> None:
        self.run, self.order, self.scale, self.clock = run, run.order, scale, clock
        # What every group knows of, everything later comes after: it is as good as gone.
        common = -1
        for known in run.order.known:
            common &= known
        relevant = sorted(bit for bit in _relevant(run.order) if not bit & common)
        self.ranks = {bit: rank for rank, bit in enumerate(relevant)}
        self.mask = sum(self.ranks)

    def all(self) -> Hashable:
        """Return everything that can still matter."""
        order = self.order
        return (
            tuple(len(script) - at for script, at in zip(self.run.scripts, self.run.positions, strict=True)),
            tuple(map(self._set, order.known)),
            tuple(self._barrier(index) for index in range(len(order.histories))),
            tuple(self._memory(shadow) for _, shadow in sorted(order.memories.items())),
            tuple(sorted((key, self._set(queue)) for key, queue in order.queues.items())),
            tuple(sorted((key, tuple(map(self._event, flights))) for key, flights in order.flights.items())),
            tuple(sorted((key, self._set(bits)) for key, bits in order.unpublished.items() if self._set(bits))),
            tuple(self._registers(group) for group in range(len(order.known))),
            tuple(map(self._event, order.unobserved())),
        )

    def _set(self, events: int) -> tuple[int, ...]:
        """Return the ranks of the events of a set that still matter."""
        rest, found = events & self.mask, []
        while rest:
            low = rest & -rest
            found.append(self.ranks[low])
            rest ^= low
        return tuple(found)

    def _event(self, event: Event) -> Hashable:
        bits = self._set(event.executed), self._set(event.settled)
        return (event.group, event.engine, bits, self._set(event.clock)) if bits != ((), ()) else None

    def _barrier(self, index: int) -> Hashable:
        history, state = self.order.histories[index], self.run.bank.states[index]
        per_tile, copies = self.scale.barriers[index]
        now = self.clock.tiles if per_tile else self.clock.iterations
        sets = (history.open, history.arrived, history.last, history.before, *history.totals[-1:])
        waits = sorted(
            (phase - state.complete, self._set(sum(bit for bit, _ in waits)))
            for phase, waits in history.waits.items()
        )
        return state.complete * copies - now, state.missing, state.bytes, tuple(map(self._set, sets)), tuple(waits)

    def _memory(self, shadow: Shadow) -> Hashable:
        return tuple(
            (start, self._written(segment.write), tuple(sorted(filter(None, map(self._read, segment.reads)))))
            for start, segment in zip(shadow.starts, shadow.segments, strict=True)
        )

    def _written(self, write: Written | None) -> Hashable:
        if write is None:
            return None
        now = self.clock.tiles if self.scale.rings[write.touch.ring] else self.clock.iterations
        # What no access names any more is all the same.
        age = min(now - write.touch.instance, self.scale.oldest + 1)
        return self._event(write.event), write.touch.ring, age

    def _read(self, read: Written) -> tuple[int, ...]:
        return self._set(read.event.executed)

    def _registers(self, group: int) -> Hashable:
        return tuple(
            sorted(
                (name, at - self.clock.iterations if at is not None else -1, self._set(event.settled))
                for (name, at), event in self.order.undrained(group)
            )
        )


def _relevant(order: Order) -> set[int]:
    """Return the events that something may still ask for."""
    found: set[int] = set()
    for history in order.histories:
        for arrivals in (history.arrived, history.last, history.before):
            found.update(_bits(arrivals))
        found.update(bit for waits in history.waits.values() for bit, _ in waits)
    for shadow in order.memories.values():
        found.update(bit for segment in shadow.segments for bit in _asked(segment))
    events = [event for flights in order.flights.values() for event in flights]
    events += [event for group in range(len(order.known)) for _, event in order.undrained(group)]
    events += order.unobserved()
    return found.union(*((event.executed, event.settled) for event in events))


def _asked(segment: Segment) -> Iterable[int]:
    if segment.write is not None:
        yield from (segment.write.event.executed, segment.write.event.settled)
    for read in segment.reads:
        yield read.event.executed


def _bits(events: int) -> Iterable[int]:
    while events:
        low = events & -events
        yield low
        events ^= low
