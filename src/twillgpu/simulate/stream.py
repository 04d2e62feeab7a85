"""A warp group under way: where it is, and what it has begun."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from twillgpu.emulate.steps import IN_ORDER
from twillgpu.simulate.plan import Planned
from twillgpu.simulate.record import Why

KEPT = 64
"""Ops of an engine that are remembered: more than any group leaves incomplete."""


class Source(NamedTuple):
    """A time in cycles and the event that set it, ``-1`` for none."""

    time: int
    event: int
    why: Why


START = Source(0, -1, "start")


@dataclass(slots=True)
class Flight:
    """An op of an engine: when it has read its operands, and when it is complete."""

    read: int
    done: int
    event: int


@dataclass(slots=True)
class Stream:
    """The instruction stream of a group.

    Attributes:
        index, name: of the group.
        plan: what it has still to do.
        at: since when it could execute ``now``, and what set that.
        now: the instruction that it comes to, ``None`` at the end.
        bound, stall: what held up ``now`` beyond that, and its name.
        results: when register results are there, by graph op and iteration.
        last: the latest of them.
        memory: when all its own accesses to SMEM and TMEM so far are over.
        flights: ops that it has given to each engine.
    """

    index: int
    name: str
    plan: Iterator[Planned]
    at: Source = START
    now: Planned | None = None
    bound: Source | None = None
    stall: str = ""
    results: dict[tuple[str, int], Source] = field(default_factory=dict)
    last: Source = START
    memory: Source = START
    flights: dict[str, list[Flight]] = field(default_factory=lambda: defaultdict(list))

    def proceed(self, at: Source) -> bool:
        """Come to the next instruction; return whether there is one."""
        self.at, self.bound, self.stall = at, None, ""
        self.now = next(self.plan, None)
        return self.now is not None

    def keep(self, now: Planned, done: Source, *, touches: bool) -> None:
        """Remember when the result of software is there, and when its accesses to memory are over."""
        if now.cost.result and now.in_loop and now.kind != "put":
            self.results[now.cost.result, now.nth] = done
        if done.time > self.last.time:
            self.last = done
        if touches and done.time > self.memory.time:
            self.memory = done

    def give(self, engine: str, flight: Flight) -> None:
        """Remember an op that an engine has begun."""
        flights = self.flights[engine]
        if flights and engine in IN_ORDER:
            flight.done = max(flight.done, flights[-1].done)
        flights.append(flight)
        del flights[:-KEPT]

    def drained(self, engine: str, pending: int, *, reads_only: bool) -> Source:
        """Return when at most ``pending`` ops on an engine are incomplete, or have not read their operands."""
        flights = self.flights[engine]
        times = [(one.read if reads_only else one.done, one.event) for one in flights[: len(flights) - pending]]
        return Source(*max(times), "drain") if times and len(flights) > pending else START
