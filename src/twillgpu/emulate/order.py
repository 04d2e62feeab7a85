"""Happens-before, exactly: every event is a bit, and each group carries the set of all events that it knows of.

These sets are what vector clocks encode; as integers they join with one machine operation. ``docs/emulation.md`` has
the rules and what they prove.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from twillgpu.emulate.mbarrier import Mbarrier
from twillgpu.emulate.shadow import Event, Segment, Shadow, Written, awaited_by_reader, awaited_by_writer
from twillgpu.emulate.steps import DRAINED, IN_ORDER, BarrierCopy, Cell, Label, Touch, Work
from twillgpu.emulate.wording import Findings


class History:
    """What is known of one barrier copy.

    ``complete``: phases that are. ``totals``: what a waiter for each of them learns. ``open``: what is known to the
    arrivals of the phase in progress. ``arrived``, ``last``, ``before``: the arrivals of the phase in progress, of
    the last complete one, and of the one before. ``waits``: waits that passed, by phase, until the phase after it is
    complete.
    """

    __slots__ = ("arrived", "before", "complete", "last", "open", "totals", "waits")

    def __init__(self) -> None:
        self.open = self.arrived = self.last = self.before = self.complete = 0
        self.totals: list[int] = []
        self.waits: dict[int, list[tuple[int, Label]]] = {}

    def copy(self) -> History:
        """Return a copy that can be continued apart from this one."""
        twin = History()
        twin.open, twin.arrived, twin.last, twin.before = self.open, self.arrived, self.last, self.before
        twin.complete, twin.totals = self.complete, list(self.totals)
        twin.waits = {phase: list(waits) for phase, waits in self.waits.items()}
        return twin


class Promise(NamedTuple):
    """An arrival that an engine will make: its event, and what is known to it."""

    bit: int
    clock: int


class Order:
    """The happens-before relation of one run, with every check that is made along it."""

    def __init__(self, groups: Sequence[str], barriers: Sequence[BarrierCopy], findings: Findings) -> None:
        self.known = [0] * len(groups)
        self.barriers = barriers
        self.findings = findings
        self.histories = [History() for _ in barriers]
        self.memories: dict[str, Shadow] = {"smem": Shadow(), "tmem": Shadow()}
        self.queues: dict[tuple[int, str], int] = {}
        self.flights: dict[tuple[int, str], list[Event]] = {}
        self.unpublished: dict[tuple[int, str], int] = {}
        self.registers: list[dict[Cell, Event]] = [{} for _ in groups]
        self.undelivered: list[Event] = []
        self._next = 1

    def start_group(self, parent: int) -> None:
        """Begin a further group, which knows what ``parent`` knows."""
        self.known.append(self.known[parent])
        self.registers.append({})

    def start_barrier(self) -> None:
        """Begin a further barrier copy, the last one of ``barriers``."""
        self.histories.append(History())

    def join(self, group: int) -> None:
        """Record that a group waited for the end of all others."""
        for known in self.known:
            self.known[group] |= known

    def phases_known(self, group: int, barrier: int) -> int:
        """Return of how many phases of a barrier copy a group knows that they are complete."""
        totals, known = self.histories[barrier].totals, self.known[group]
        return next((phase for phase in range(len(totals), 0, -1) if not totals[phase - 1] & ~known), 0)

    def work(self, group: int, step: Work) -> Event:
        """Check an op against everything before it, and record it; return its event."""
        executed, settled = self._event(), self._event()
        if step.engine == "simt":
            event = Event(step.label, group, step.engine, executed, settled, self.known[group])
            self._touch(event, step)
            self.known[group] |= executed
            for touch in step.writes:
                self.unpublished[group, touch.memory] = self.unpublished.get((group, touch.memory), 0) | settled
            return event
        queue = self.queues.get((group, step.engine), 0) if step.engine in IN_ORDER else 0
        event = Event(step.label, group, step.engine, executed, settled, self.known[group] | queue)
        self._touch(event, step)
        self._launch(group, step, event)
        return event

    def _launch(self, group: int, step: Work, event: Event) -> None:
        self.undelivered.append(event)
        if step.engine in IN_ORDER:
            self.queues[group, step.engine] = outcome(event)
            if step.engine in DRAINED:
                self.flights.setdefault((group, step.engine), []).append(event)
        for cell in step.gives:
            self.registers[group][cell] = event

    def arrive(self, group: int, barrier: int, state: Mbarrier, label: Label) -> None:
        """Record one arrival of a group; ``state`` is the barrier's after it."""
        bit = self._event()
        clock = self.known[group]
        self.known[group] |= bit
        self._arrived(barrier, bit, clock | bit, state, label)

    def commit(self, group: int, engine: str) -> Promise:
        """Return the arrival that an engine makes when all that the group gave it is complete."""
        bit = self._event()
        clock = self.queues.get((group, engine), 0) | self.known[group] | bit
        self.queues[group, engine] = clock
        return Promise(bit, clock)

    def keep(self, promise: Promise, barrier: int, state: Mbarrier, label: Label) -> None:
        """Record that an engine made its arrival."""
        self._arrived(barrier, promise.bit, promise.clock, state, label)

    def deliver(self, event: Event, barrier: int, state: Mbarrier) -> None:
        """Record the bytes that an op reported when it was complete."""
        self._arrived(barrier, event.settled, outcome(event), state, event.label)

    def wait(self, group: int, barrier: int, phase: int, state: Mbarrier, label: Label) -> None:
        """Record a wait that passed; ``state`` is the barrier's then."""
        history = self.histories[barrier]
        if state.complete != phase + 1:
            self.findings.wrong_pass(label, self.barriers[barrier], phase, state.complete)
        elif phase >= 1 and history.before & ~self.known[group]:
            self.findings.early_pass(label, self.barriers[barrier], phase)
        bit = self._event()
        self.known[group] |= bit
        if phase >= 0 and history.totals:
            self.known[group] |= history.totals[min(phase, len(history.totals) - 1)]
        history.waits.setdefault(phase, []).append((bit, label))

    def drain(self, group: int, engine: str, pending: int, reads_only: bool) -> None:
        """Record that all but the newest ``pending`` ops of a group on an engine are complete, or have read."""
        flights = self.flights.get((group, engine), [])
        done = flights[: max(0, len(flights) - pending)]
        for event in done:
            self.known[group] |= event.executed if reads_only else outcome(event)
        if not reads_only:
            del flights[: len(done)]

    def fence(self, group: int, kind: str) -> None:
        """Record that a group's writes are published."""
        self.known[group] |= self.unpublished.pop((group, "smem" if kind == "async_shared" else "tmem"), 0)

    def finish(self) -> None:
        """Check that nothing is still under way when all groups have ended."""
        for event in self.unobserved():
            self.findings.unfinished(event.label, event.engine)

    def unobserved(self) -> list[Event]:
        """Return the ops of engines of which no group knows that they are over: a store must have read its operands,
        everything else must be complete.
        """
        everything = 0
        for known in self.known:
            everything |= known
        return [
            event
            for event in self.undelivered
            if (event.executed if event.engine == "tma_store" else event.settled) & ~everything
        ]

    def undrained(self, group: int) -> list[tuple[Cell, Event]]:
        """Return the registers of a group that an engine may still be writing."""
        known = self.known[group]
        return [(cell, event) for cell, event in self.registers[group].items() if event.settled & ~known]

    def forget(self) -> None:
        """Drop what can never matter again."""
        self.undelivered = self.unobserved()
        self.registers = [dict(self.undrained(group)) for group in range(len(self.known))]

    def copy(self, findings: Findings) -> Order:
        """Return the same relation, to be continued apart from this one."""
        twin = Order(("",) * len(self.known), self.barriers, findings)
        twin.known = list(self.known)
        twin.histories = [history.copy() for history in self.histories]
        twin.memories = {name: shadow.copy() for name, shadow in self.memories.items()}
        twin.queues, twin.unpublished = dict(self.queues), dict(self.unpublished)
        twin.flights = {key: list(flights) for key, flights in self.flights.items()}
        twin.registers = [dict(registers) for registers in self.registers]
        twin.undelivered = list(self.undelivered)
        twin._next = self._next
        return twin

    def _event(self) -> int:
        self._next <<= 1
        return self._next

    def _arrived(self, barrier: int, bits: int, clock: int, state: Mbarrier, label: Label) -> None:
        history = self.histories[barrier]
        if history.last & ~clock:
            self.findings.early_arrival(label, self.barriers[barrier])
        history.open |= clock
        history.arrived |= bits
        if state.complete > history.complete:
            self._completed(barrier, history, history.complete)

    def _completed(self, barrier: int, history: History, phase: int) -> None:
        for bit, label in history.waits.pop(phase - 1, ()):
            if bit & ~history.open:
                self.findings.lag(label, self.barriers[barrier], phase - 1)
        history.totals.append(history.open | (history.totals[-1] if history.totals else 0))
        history.before, history.last = history.last, history.arrived
        history.open = history.arrived = 0
        history.complete += 1

    def _touch(self, event: Event, step: Work) -> None:
        for cell in step.uses:
            owner = self.registers[event.group].get(cell)
            if owner is not None and owner.settled & ~event.clock:
                self.findings.undrained(event, owner, cell)
        for touch in step.reads:
            for segment in self.memories[touch.memory].covered(touch.start, touch.end):
                self._read(segment, event, touch)
        for touch in step.writes:
            for segment in self.memories[touch.memory].covered(touch.start, touch.end):
                self._write(segment, event, touch)

    def _read(self, segment: Segment, event: Event, touch: Touch) -> None:
        write = segment.write
        if write is None:
            if not touch.lenient:
                self.findings.poison(event, touch)
        elif awaited_by_reader(write.event, event, touch.memory) & ~event.clock:
            self.findings.race(write, Written(event, touch), "write", "read")
        elif not touch.lenient and (write.touch.ring, write.touch.instance) != (touch.ring, touch.instance):
            self.findings.stale(write, Written(event, touch))
        # A read that this one comes after adds nothing: whatever must come after it must come after this one.
        segment.reads = [read for read in segment.reads if read.event.executed & ~event.clock]
        segment.reads.append(Written(event, touch))

    def _write(self, segment: Segment, event: Event, touch: Touch) -> None:
        here = Written(event, touch)
        if segment.write is not None and awaited_by_writer(segment.write.event, event, touch.memory) & ~event.clock:
            self.findings.race(segment.write, here, "write", "write")
        for read in segment.reads:
            if read.event is not event and read.event.executed & ~event.clock:
                self.findings.race(read, here, "read", "write")
        segment.write = here
        segment.reads = []


def outcome(event: Event) -> int:
    """Return what is known to whoever observed that an op of an engine is complete."""
    return event.clock | event.executed | event.settled
