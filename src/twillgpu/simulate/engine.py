"""The run: groups that issue in order, engines that work on their own, barriers that arrivals complete.

One agenda over time. A group is on it with the instruction that it comes to; an arrival is on it with the cycle from
which on it can be seen. The phases of barriers are those of the emulator.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from twillgpu.costs.record import Problem
from twillgpu.emulate import mbarrier, steps
from twillgpu.emulate.unroll import Unroller
from twillgpu.errors import TwillError
from twillgpu.graph.record import Use
from twillgpu.lower.record import WarpProgram
from twillgpu.machine.record import Machine
from twillgpu.simulate.latency import sample
from twillgpu.simulate.plan import Planned, operands, plan, tails
from twillgpu.simulate.prices import FREE, Prices
from twillgpu.simulate.record import Event, EventKind, SimulationOptions
from twillgpu.simulate.stream import START, Flight, Source, Stream
from twillgpu.simulate.units import Units

QUEUES = {"wgmma": "tensor", "tcgen05": "tensor", "tma": "tma", "tma_store": "tma"}
"""Engines that begin their ops in the order of issue, whichever group issued them."""
FORGET = 64
"""Events between two clean-ups of the reservations."""


class Item(NamedTuple):
    """Something on the agenda: group ``group`` comes to its next instruction, or (``-1``) an arrival that announces
    bytes, or a delivery of bytes, by event ``event`` is seen at barrier copy ``barrier``.
    """

    time: int
    order: int
    group: int
    barrier: int = -1
    announced: int = 0
    delivered: int = 0
    event: int = -1


class Note(NamedTuple):
    """What is recorded of an instruction: the stream is at it from ``start`` to ``end``, its work from ``work`` to
    ``done``.
    """

    name: str
    kind: EventKind
    start: Source
    end: Source
    stall: str = ""
    stalled: int = 0
    work: Source | None = None
    done: int = 0


class Run:
    """One block from start to end; ``events`` grows as ``advance`` is called."""

    def __init__(
        self,
        program: WarpProgram,
        problem: Problem,
        machine: Machine,
        *,
        options: SimulationOptions,
        trips: Sequence[int],
    ) -> None:
        self.options = options
        self.events: list[Event] = []
        self._prices = Prices(program, problem, machine, staging=options.staging)
        unroller = Unroller(program)
        self._hop = round(machine.handoff.barrier_cycles)
        self._units = Units(problem.units)
        self._tails = tails(problem)
        self._barriers = unroller.barriers
        self._states = [mbarrier.fresh(copy.arrivals) for copy in self._barriers]
        self._seen = [START for _ in self._barriers]
        self._blocked: dict[int, list[Stream]] = defaultdict(list)
        self._queues: dict[str, Source] = {}
        self._agenda: list[Item] = []
        self._order = 0
        self._streams = [
            Stream(index, group.name, plan(unroller, index, trips, self._prices))
            for index, group in enumerate(program.groups)
        ]
        for stream in self._streams:
            self._proceed(stream, START)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Return what was taken as free because it has no price."""
        return tuple(sorted(set(self._prices.unpriced)))

    def advance(self) -> bool:
        """Take one item off the agenda; return whether there was one.

        Raises:
            TwillError: groups wait for arrivals that nobody makes.
        """
        if not self._agenda:
            self._check_done()
            return False
        item = heapq.heappop(self._agenda)
        if item.group >= 0:
            self._step(self._streams[item.group], item.time)
        else:
            self._signal(item)
        return True

    def _check_done(self) -> None:
        waiting = [f"{one.name} at {one.now.step.label.text}" for one in self._streams if one.now is not None]
        if waiting:
            what = f"the program cannot go on: {', '.join(waiting)}"
            raise TwillError("the simulation", what, "twillgpu emulate says why")

    def _visit(self, stream: Stream, time: int) -> None:
        self._order += 1
        heapq.heappush(self._agenda, Item(time, self._order, stream.index))

    def _post(self, time: int, barrier: int, *, announced: int = 0, delivered: int = 0, event: int = -1) -> None:
        self._order += 1
        heapq.heappush(self._agenda, Item(time, self._order, -1, barrier, announced, delivered, event))

    def _proceed(self, stream: Stream, at: Source) -> None:
        if stream.proceed(at):
            self._visit(stream, at.time)

    def _step(self, stream: Stream, time: int) -> None:
        now = stream.now
        assert now is not None  # noqa: S101  # a group is on the agenda only with an instruction
        match now.step:
            case steps.Wait():
                self._wait(stream, now, now.step, time)
            case steps.Arrive():
                self._arrive(stream, now, now.step)
            case steps.Commit():
                self._commit(stream, now, now.step)
            case steps.Drain(engine=engine, pending=pending, reads_only=reads_only):
                until = stream.drained(engine, pending, reads_only=reads_only)
                self._until(stream, now, until, "drain", f"drain {engine}")
            case steps.Fence():
                self._until(stream, now, stream.memory._replace(why="fence"), "fence", "writes")
            case steps.Work():
                self._work(stream, now, now.step, time)

    # Barriers

    def _wait(self, stream: Stream, now: Planned, step: steps.Wait, time: int) -> None:
        if not mbarrier.passes(self._states[step.barrier], step.phase):
            self._blocked[step.barrier].append(stream)
            return
        ready = Source(stream.at.time + self.options.wait_cycles, stream.at.event, stream.at.why)
        seen, name = self._seen[step.barrier], self._barriers[step.barrier].name
        late = time > stream.at.time and seen.time > ready.time
        end = seen if late else ready
        note = Note(name, "wait", stream.at, end, f"barrier {name}" if late else "", end.time - ready.time)
        self._proceed(stream, Source(end.time, self._record(stream, now, note), "order"))

    def _arrive(self, stream: Stream, now: Planned, step: steps.Arrive) -> None:
        """An arrival can be seen a hop after it was made, and after all that its group did to memory before."""
        start, name = stream.at, self._barriers[step.barrier].name
        end = start._replace(time=start.time + self.options.arrive_cycles)
        work = stream.memory if stream.memory.time > start.time else start._replace(event=-1, why="issue")
        seen = work.time + self._hop
        event = self._record(stream, now, Note(name, "arrive", start, end, work=work, done=seen))
        self._post(seen, step.barrier, announced=step.bytes, event=event)
        self._proceed(stream, Source(end.time, event, "order"))

    def _commit(self, stream: Stream, now: Planned, step: steps.Commit) -> None:
        flights, at = stream.flights[step.engine], stream.at
        last = flights[-1] if flights else Flight(at.time, at.time, -1)
        done = max(at.time, last.done)
        event = self._record(stream, now, Note(self._barriers[step.barrier].name, "commit", at, at, done=done))
        self._post(done, step.barrier, event=last.event if last.done >= at.time and flights else event)
        self._proceed(stream, at)

    def _signal(self, item: Item) -> None:
        barrier = item.barrier
        arrivals, state = self._barriers[barrier].arrivals, self._states[barrier]
        if item.delivered:
            after = mbarrier.delivered(state, arrivals, item.delivered)
        else:
            after = mbarrier.arrived(state, arrivals, item.announced)
        self._states[barrier] = after
        if after.complete == state.complete:
            return
        self._seen[barrier] = Source(item.time, item.event, "barrier")
        for stream in self._blocked.pop(barrier, ()):
            self._visit(stream, item.time)

    def _until(self, stream: Stream, now: Planned, until: Source, kind: EventKind, stall: str) -> None:
        """Hold a group up until a moment, or pass on where it is over."""
        at = stream.at
        if until.time <= at.time:
            self._proceed(stream, at)
            return
        event = self._record(stream, now, Note(stall, kind, at, until, stall, until.time - at.time))
        self._proceed(stream, Source(until.time, event, "order"))

    # Work

    def _work(self, stream: Stream, now: Planned, step: steps.Work, time: int) -> None:
        if now.cost is FREE:
            self._proceed(stream, stream.at)
            return
        operand = self._operand(stream, now)
        if operand.time > time:
            stream.bound, stream.stall = operand, f"result of {self.events[operand.event].op}"
            self._visit(stream, operand.time)
            return
        begin = stream.bound or stream.at
        if step.engine in QUEUES:
            self._queued(stream, now, step, begin)
        else:
            self._issued(stream, now, step, begin)

    def _operand(self, stream: Stream, now: Planned) -> Source:
        """Return when all register results that an instruction needs are there; outside the loop, all there are."""
        if not now.in_loop:
            return stream.last
        known = (stream.results.get(key, START) for key in operands(now, self._tails))
        return max(known, key=lambda source: source.time, default=START)

    def _issued(self, stream: Stream, now: Planned, step: steps.Work, begin: Source) -> None:
        """Work of the warps themselves: it starts when its units are free, and the stream stands still until then."""
        cost = now.cost
        place = self._units.find(cost.uses, begin.time)
        if place.unit:
            begin, stream.stall = Source(place.start, place.event, "unit"), f"unit {place.unit}"
        done = begin.time + self._latency(now, step)
        end = Source(begin.time + cost.issue, len(self.events), "order")
        stalled = begin.time - stream.at.time
        event = self._record(stream, now, Note(now.name, now.kind, begin, end, stream.stall, stalled, done=done))
        self._units.hold(cost.uses, begin.time, event)
        if step.engine == "simt":
            stream.keep(now, Source(done, event, "operand"), touches=bool(step.reads or step.writes))
        else:
            stream.give(step.engine, Flight(max(end.time, begin.time + last_use(cost.uses)), done, event))
        blocking = now.kind == "get" and not cost.result
        self._proceed(stream, Source(done, event, "order") if blocking else end)

    def _queued(self, stream: Stream, now: Planned, step: steps.Work, begin: Source) -> None:
        """Work of an engine with a queue: the stream goes on when it has issued, the engine starts when it can."""
        cost, queue = now.cost, QUEUES[step.engine]
        before = self._queues.get(queue, START)
        work = before if before.time > begin.time else Source(begin.time, -1, "issue")
        place = self._units.find(cost.uses, work.time)
        if place.unit:
            work = Source(place.start, place.event, "unit")
        done = work.time + self._latency(now, step)
        end = Source(begin.time + cost.issue, len(self.events), "order")
        stalled = begin.time - stream.at.time
        event = self._record(stream, now, Note(now.name, "op", begin, end, stream.stall, stalled, work, done))
        self._units.hold(cost.uses, work.time, event)
        self._queues[queue] = Source(work.time, event, "queue")
        stream.give(step.engine, Flight(work.time + last_use(cost.uses), done, event))
        if step.signal is not None:
            barrier, count = step.signal
            self._post(done, barrier, delivered=count, event=event)
        self._proceed(stream, end)

    def _latency(self, now: Planned, step: steps.Work) -> int:
        cost = now.cost
        if not cost.variable or step.engine == "simt":
            return cost.latency
        drawn = sample(self.options.latency, cost.latency, self.options.seed, now.name, now.nth)
        return max(drawn, last_use(cost.uses))

    def _record(self, stream: Stream, now: Planned, note: Note) -> int:
        number, cost = len(self.events), now.cost
        held = note.kind in ("wait", "drain", "fence")
        cause = note.end if held else note.start
        work = note.work or Source(note.start.time, -1, "issue")
        event = Event(
            number=number,
            group=stream.name,
            op=note.name,
            kind=note.kind,
            engine=getattr(now.step, "engine", "simt"),
            tile=now.tile,
            iteration=now.iteration,
            unit=cost.unit,
            start_cycle=note.start.time,
            end_cycle=note.end.time,
            stall=note.stall if note.stalled else "",
            stall_cycles=note.stalled,
            work_start_cycle=work.time,
            work_end_cycle=max(note.done, work.time),
            uses=cost.uses,
            cause=cause.event,
            why=cause.why,
            work_cause=work.event,
            work_why=work.why,
        )
        self.events.append(event)
        if number % FORGET == 0:
            self._units.forget(stream.at.time)
        return number


def last_use(uses: Sequence[Use]) -> int:
    """Return when the last unit is free again, in cycles from the start of the work."""
    return max((use.offset + use.cycles for use in uses), default=0)
