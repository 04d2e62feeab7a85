"""The run: groups that issue in order, engines that work on their own, barriers that arrivals complete.

One event queue over time. A group is in it with the instruction that it comes to; an arrival is in it with the
cycle from which on it can be seen.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from twillgpu.costs.record import Problem
from twillgpu.emulate import mbarrier, steps
from twillgpu.emulate.unroll import Unroller, moments, number
from twillgpu.errors import TwillError
from twillgpu.graph.record import Use
from twillgpu.lower import record as lower
from twillgpu.machine.record import Machine
from twillgpu.simulate.latency import sample
from twillgpu.simulate.prices import FREE, Cost, Prices
from twillgpu.simulate.record import Event, EventKind, SimulationOptions, Why
from twillgpu.simulate.units import Units

QUEUES = {"wgmma": "tensor", "tcgen05": "tensor", "tma": "tma", "tma_store": "tma"}
"""Engines that begin their ops in the order of issue, whichever group issued them."""
FORGET = 64
"""Events between two clean-ups of the reservations."""


class Source(NamedTuple):
    """A time and the event that set it."""

    time: int
    event: int
    why: Why


START = Source(0, -1, "start")


class Planned(NamedTuple):
    """An instruction that a group comes to: its place in the program, and what it costs."""

    instruction: lower.Instruction
    step: steps.Step
    tile: int
    iteration: int | None
    count: int
    cost: Cost


@dataclass(slots=True)
class Flight:
    """An op of an engine: when it has read its operands, and when it is complete."""

    read: int
    done: int
    event: int


@dataclass(slots=True)
class Stream:
    """A group under way.

    Attributes:
        plan: what it has still to do.
        now: the instruction that it comes to.
        at: since when it could be there, and which event set that.
        results: when register results are there, by graph op and iteration.
        last: the latest register result, for instructions outside the loop.
        memory: when all its own accesses to memories so far are over.
        flights: ops that it has given to each engine.
        stalled: why and since when the instruction at hand has been held up.
    """

    name: str
    plan: Iterator[Planned]
    at: Source = START
    now: Planned | None = None
    results: dict[tuple[str, int], Source] = field(default_factory=dict)
    last: Source = START
    memory: Source = START
    flights: dict[str, list[Flight]] = field(default_factory=lambda: defaultdict(list))
    bound: Source | None = None
    stall: str = ""


class Run:
    """One block from start to end. ``events`` grows as ``advance`` is called."""

    def __init__(
        self,
        program: lower.WarpProgram,
        problem: Problem,
        machine: Machine,
        options: SimulationOptions,
        trips: Sequence[int],
    ) -> None:
        self.options = options
        self.events: list[Event] = []
        self._prices = Prices(program, problem, machine, staging=options.staging)
        self._unroller = Unroller(program)
        self._hop = round(machine.handoff.barrier_cycles)
        self._units = Units(problem.units)
        self._tails = _tails(problem)
        self._barriers = self._unroller.barriers
        self._states = [mbarrier.fresh(copy.arrivals) for copy in self._barriers]
        self._seen: list[Source] = [START for _ in self._barriers]
        self._blocked: dict[int, list[int]] = defaultdict(list)
        self._queues: dict[str, Source] = {}
        self._agenda: list[tuple[int, int, int, int, int, int]] = []
        self._order = 0
        self._streams = [
            Stream(group.name, _plan(self._unroller, index, trips, self._prices, group.warps))
            for index, group in enumerate(program.groups)
        ]
        for index in range(len(self._streams)):
            self._next(index, START)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Return what was taken as free because it has no price."""
        return tuple(sorted(set(self._prices.unpriced)))

    def advance(self) -> bool:
        """Take one event off the queue; return whether there was one.

        Raises:
            TwillError: groups wait for arrivals that nobody makes.
        """
        if not self._agenda:
            self._check_done()
            return False
        time, _, group, barrier, count, event = heapq.heappop(self._agenda)
        if group >= 0:
            self._step(group, time)
        else:
            self._signal(time, barrier, count, event)
        return True

    def _check_done(self) -> None:
        waiting = [stream for stream in self._streams if stream.now is not None]
        if not waiting:
            return
        where = ", ".join(f"{one.name} at {one.now.step.label.text}" for one in waiting if one.now is not None)
        raise TwillError("the simulation", f"the program cannot go on: {where}", "twillgpu emulate says why")

    def _push(self, time: int, *, group: int = -1, barrier: int = -1, count: int = 0, event: int = -1) -> None:
        self._order += 1
        heapq.heappush(self._agenda, (time, self._order, group, barrier, count, event))

    def _next(self, group: int, at: Source) -> None:
        """Let a group come to its next instruction."""
        stream = self._streams[group]
        stream.at, stream.bound, stream.stall = at, None, ""
        stream.now = next(stream.plan, None)
        if stream.now is not None:
            self._push(at.time, group=group)

    def _step(self, group: int, time: int) -> None:
        stream = self._streams[group]
        now = stream.now
        assert now is not None  # noqa: S101  # a group is on the agenda only with an instruction
        match now.step:
            case steps.Wait():
                self._wait(group, stream, now, time)
            case steps.Arrive():
                self._arrive(group, stream, now, time)
            case steps.Commit():
                self._commit(group, stream, now, time)
            case steps.Drain():
                self._drain(group, stream, now)
            case steps.Fence():
                self._until(group, stream, now, stream.memory, "fence", "writes")
            case steps.Work():
                self._work(group, stream, now, time)

    # Barriers

    def _wait(self, group: int, stream: Stream, now: Planned, time: int) -> None:
        step = now.step
        assert isinstance(step, steps.Wait)  # noqa: S101  # chosen by it
        if not mbarrier.passes(self._states[step.barrier], step.phase):
            self._blocked[step.barrier].append(group)
            return
        ready = stream.at.time + self.options.wait_cycles
        seen = self._seen[step.barrier]
        late = time > stream.at.time and seen.time > ready
        end = Source(seen.time, seen.event, "barrier") if late else Source(ready, stream.at.event, stream.at.why)
        name = str(self._barriers[step.barrier].name)
        self._note(group, now, name, "wait", stream.at, end, f"barrier {name}" if late else "")

    def _arrive(self, group: int, stream: Stream, now: Planned, time: int) -> None:
        step = now.step
        assert isinstance(step, steps.Arrive)  # noqa: S101  # chosen by it
        end = Source(time + self.options.arrive_cycles, stream.at.event, stream.at.why)
        name = self._barriers[step.barrier].name
        index = self._note(group, now, name, "arrive", stream.at, end, "", after=stream.memory)
        seen = max(time, stream.memory.time) + self._hop
        self._push(seen, barrier=step.barrier, count=step.bytes, event=index)

    def _commit(self, group: int, stream: Stream, now: Planned, time: int) -> None:
        step = now.step
        assert isinstance(step, steps.Commit)  # noqa: S101  # chosen by it
        flights = stream.flights[step.engine]
        last = flights[-1] if flights else Flight(time, time, -1)
        name = self._barriers[step.barrier].name
        self._note(group, now, name, "commit", stream.at, stream.at, "")
        self._push(max(time, last.done), barrier=step.barrier, event=last.event)

    def _signal(self, time: int, barrier: int, count: int, event: int) -> None:
        """An arrival (``count`` bytes announced), or ``-count - 1`` bytes delivered, become visible."""
        arrivals, state = self._barriers[barrier].arrivals, self._states[barrier]
        if count < 0:
            after = mbarrier.delivered(state, arrivals, -count - 1)
        else:
            after = mbarrier.arrived(state, arrivals, count)
        self._states[barrier] = after
        if after.complete == state.complete:
            return
        self._seen[barrier] = Source(time, event, "barrier")
        for group in self._blocked.pop(barrier, ()):
            self._push(time, group=group)

    # Waits for engines and for memory

    def _drain(self, group: int, stream: Stream, now: Planned) -> None:
        step = now.step
        assert isinstance(step, steps.Drain)  # noqa: S101  # chosen by it
        flights = stream.flights[step.engine]
        older = flights[: max(0, len(flights) - step.pending)]
        if not older:
            self._next(group, stream.at)
            return
        last = max(older, key=lambda one: one.read if step.reads_only else one.done)
        end = last.read if step.reads_only else last.done
        self._until(group, stream, now, Source(end, last.event, "drain"), "drain", f"drain {step.engine}")

    def _until(
        self, group: int, stream: Stream, now: Planned, until: Source, kind: EventKind, stall: str
    ) -> None:
        """Hold a group up until a moment, or pass on where it is over."""
        if until.time <= stream.at.time:
            self._next(group, stream.at)
            return
        self._note(group, now, stall, kind, stream.at, until._replace(why=kind_why(kind)), stall)

    # Work

    def _work(self, group: int, stream: Stream, now: Planned, time: int) -> None:
        step = now.step
        assert isinstance(step, steps.Work)  # noqa: S101  # chosen by it
        if now.cost is FREE:
            self._next(group, stream.at)
            return
        operand = self._operands(stream, now)
        if operand.time > time:
            stream.bound, stream.stall = operand, f"result of {self._named(operand.event)}"
            self._push(operand.time, group=group)
            return
        begin = stream.bound or stream.at
        if step.engine in QUEUES:
            self._queued(group, stream, now, step, begin)
        else:
            self._stream_work(group, stream, now, step, begin)

    def _operands(self, stream: Stream, now: Planned) -> Source:
        if now.iteration is None:
            return stream.last._replace(why="operand")
        latest = START
        for tail, distance in self._tails.get(now.cost.result, ()) if _reads(now) else ():
            found = stream.results.get((tail, now.count - distance))
            if found is not None and found.time > latest.time:
                latest = found
        if isinstance(now.instruction, lower.Put):
            found = stream.results.get((now.cost.result, now.count))
            if found is not None and found.time > latest.time:
                latest = found
        return latest

    def _stream_work(self, group: int, stream: Stream, now: Planned, step: steps.Work, begin: Source) -> None:
        """Work of the warps themselves: it starts when the units are free, and the stream waits for that."""
        cost = now.cost
        place = self._units.find(cost.uses, begin.time)
        if place.unit:
            begin, stream.stall = Source(place.start, place.event, "unit"), f"unit {place.unit}"
        latency = self._latency(now, step)
        index = self._note(
            group, now, _name(now), _kind(now), begin, Source(begin.time + cost.issue, -1, "order"), stream.stall,
            work=Source(begin.time, begin.event, begin.why), done=begin.time + latency, advance=False,
        )  # fmt: skip
        self._units.hold(cost.uses, begin.time, index)
        done = Source(begin.time + latency, index, "operand")
        if step.engine == "simt":
            self._keep(stream, now, step, done)
        else:
            self._fly(stream, step, Flight(begin.time + max(cost.issue, _end(cost.uses)), done.time, index))
        self._next(group, Source(begin.time + cost.issue, index, "order"))

    def _queued(self, group: int, stream: Stream, now: Planned, step: steps.Work, begin: Source) -> None:
        """Work of an engine with a queue: the stream goes on when it has issued, the engine starts when it can."""
        cost, queue = now.cost, QUEUES[step.engine]
        issue = Source(begin.time, -1, "issue")
        before = self._queues.get(queue, START)
        earliest = before._replace(why="queue") if before.time > issue.time else issue
        place = self._units.find(cost.uses, earliest.time)
        work = Source(place.start, place.event, "unit") if place.unit else earliest
        latency = self._latency(now, step)
        index = self._note(
            group, now, _name(now), "op", begin, Source(begin.time + cost.issue, -1, "order"), stream.stall,
            work=work, done=work.time + latency, advance=False,
        )  # fmt: skip
        self._units.hold(cost.uses, work.time, index)
        self._queues[queue] = Source(work.time, index, "queue")
        self._fly(stream, step, Flight(work.time + max(1, _end(cost.uses)), work.time + latency, index))
        if step.signal is not None:
            self._push(work.time + latency, barrier=step.signal[0], count=-step.signal[1] - 1, event=index)
        self._next(group, Source(begin.time + cost.issue, index, "order"))

    def _latency(self, now: Planned, step: steps.Work) -> int:
        if not now.cost.variable or step.engine == "simt":
            return now.cost.latency
        drawn = sample(self.options.latency, now.cost.latency, self.options.seed, _name(now), now.count)
        return max(drawn, _end(now.cost.uses))

    @staticmethod
    def _keep(stream: Stream, now: Planned, step: steps.Work, done: Source) -> None:
        """Remember when the result of software is there, and when its accesses to memory are over."""
        if now.cost.result and now.iteration is not None and not isinstance(now.instruction, lower.Put):
            stream.results[now.cost.result, now.count] = done
        if done.time > stream.last.time:
            stream.last = done
        if (step.reads or step.writes) and done.time > stream.memory.time:
            stream.memory = done

    @staticmethod
    def _fly(stream: Stream, step: steps.Work, flight: Flight) -> None:
        flights = stream.flights[step.engine]
        if flights and step.engine in steps.IN_ORDER:
            flight.done = max(flight.done, flights[-1].done)
        flights.append(flight)
        del flights[:-FORGET]

    def _named(self, event: int) -> str:
        return self.events[event].op if event >= 0 else "nothing"

    def _note(
        self, group: int, now: Planned, name: str, kind: EventKind, start: Source, end: Source, stall: str, *,
        after: Source = START, work: Source | None = None, done: int = 0, advance: bool = True,
    ) -> int:  # fmt: skip
        """Record an event; ``advance``: and let its group go on at its end."""
        stream, index = self._streams[group], len(self.events)
        held = kind in ("wait", "drain", "fence")
        waited = end.time - start.time - (self.options.wait_cycles if kind == "wait" else 0)
        cause = end if held else start
        if work is None:
            work = after if after.time > start.time else start._replace(why="issue", event=-1)
        self.events.append(
            Event(
                index=index,
                group=stream.name,
                op=name,
                kind=kind,
                engine=getattr(now.step, "engine", "simt"),
                tile=now.tile,
                iteration=now.iteration,
                unit=now.cost.unit,
                start_cycle=start.time,
                end_cycle=end.time,
                stall=stall,
                stall_cycles=max(0, waited) if held and stall else start.time - stream.at.time if not held else 0,
                work_start_cycle=work.time,
                work_end_cycle=max(done, work.time, end.time if held or kind == "arrive" else 0),
                uses=now.cost.uses,
                cause=cause.event,
                why=cause.why,
                work_cause=work.event,
                work_why=work.why,
            )
        )
        if index % FORGET == 0:
            self._units.forget(start.time if not held else stream.at.time)
        if advance:
            self._next(group, Source(end.time, index, "order"))
        return index


def kind_why(kind: EventKind) -> Why:
    """Return why an event of a kind that holds its group up ends when it does."""
    return "drain" if kind == "drain" else "fence"


def _plan(
    unroller: Unroller, group: int, trips: Sequence[int], prices: Prices, warps: int
) -> Iterator[Planned]:
    """Yield what a group does, tile by tile."""
    costs: dict[int, Cost] = {}
    for first in moments(trips):
        for instruction, moment, step in unroller.instructions(group, first):
            cost = costs.get(id(instruction))
            if cost is None:
                cost = costs[id(instruction)] = _cost(instruction, prices, warps)
            at = getattr(instruction, "iteration", None)
            here = None if at is None else number(at, moment)
            label = step.label.iteration if here is None else here
            yield Planned(instruction, step, first.tile, label, first.base + (here or 0), cost)


def _cost(instruction: lower.Instruction, prices: Prices, warps: int) -> Cost:
    if isinstance(instruction, lower.Execute):
        return prices.execute(instruction, warps)
    if isinstance(instruction, lower.Put | lower.Get):
        return prices.handover(instruction, warps)
    return FREE


def _tails(problem: Problem) -> dict[str, list[tuple[str, int]]]:
    """Return what each op reads: the ops it depends on by data, and how many iterations ago."""
    tails: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for edge in problem.edges:
        if edge.kind == "data":
            tails[edge.head].append((edge.tail, edge.distance))
    return tails


def _reads(now: Planned) -> bool:
    """Whether an instruction is its graph op itself, and no hand-over of its value."""
    return isinstance(now.instruction, lower.Execute) or (
        isinstance(now.instruction, lower.Put) and now.instruction.access.ring == now.cost.result
    )


def _name(now: Planned) -> str:
    if isinstance(now.instruction, lower.Execute):
        return now.instruction.op or now.instruction.members[0]
    assert isinstance(now.instruction, lower.Put | lower.Get)  # noqa: S101  # only these are work
    return now.instruction.value


def _kind(now: Planned) -> EventKind:
    if isinstance(now.instruction, lower.Put):
        return "put"
    return "get" if isinstance(now.instruction, lower.Get) else "op"


def _end(uses: tuple[Use, ...]) -> int:
    return max((use.offset + use.cycles for use in uses), default=0)
