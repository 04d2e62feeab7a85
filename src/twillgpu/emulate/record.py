"""What an emulation says: races, a deadlock, hazards, differences from the reference, and what is proved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["sound", "unsafe", "limit"]
"""``limit``: nothing wrong was found, and a limit ended the exploration before it was complete."""

RaceKind = Literal["order", "fence", "drain", "stale", "poison"]
"""``order``: two conflicting accesses without order; ``fence``: ordered, but not published to the engine that
accesses next; ``drain``: a register that an engine has not yet delivered; ``stale``: ordered, but what is read is
not what was to be read; ``poison``: what is read was never written."""

HazardKind = Literal[
    "phase lag", "early pass", "early arrival", "arrivals", "exit", "coverage", "missing value", "wrong slot"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessPoint:
    """One side of a race: what it does to which bytes, where it comes from."""

    what: str
    group: str
    iteration: int | None
    tile: int
    source: str

    def __str__(self) -> str:
        place = [] if self.iteration is None else [f"iteration {self.iteration}"]
        place += [f"tile {self.tile}"] if self.tile else []
        place += [f"group {self.group}"]
        return f"{self.what} ({', '.join(place)}{'; ' + self.source if self.source else ''})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Race:
    """Two conflicting accesses; ``first`` is ``None`` for poison. ``missing``: the order that is not there.

    ``count``: so many pairs of the same instructions, of which this is the first.
    """

    kind: RaceKind
    first: AccessPoint | None
    second: AccessPoint
    place: str
    missing: str
    count: int = 1

    def __str__(self) -> str:
        head = f"{self.kind} race in {self.place}: {self.second}"
        return f"{head}; {self.missing}" if self.first is None else f"{head} against {self.first}; {self.missing}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """A group that can never go on: what it waits for, who could still arrive there, and what is wrong with it."""

    group: str
    waits: str
    needs: tuple[str, ...]
    why: str

    def __str__(self) -> str:
        return f"group {self.group} waits: {self.waits}; {self.why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlock:
    """All blocked groups, and the cycle of waits among them (empty where one waits for nobody)."""

    blocked: tuple[Blocked, ...]
    cycle: tuple[str, ...]

    def __str__(self) -> str:
        head = "deadlock: " + (" -> ".join((*self.cycle, self.cycle[0])) if self.cycle else "no arrival is left")
        return "\n".join((head, *(f"  {group}" for group in self.blocked)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Hazard:
    """What some interleaving makes go wrong at a barrier, or that the program does not do what it should.

    ``count``: so many places of the same instructions, of which this is the first.
    """

    kind: HazardKind
    message: str
    count: int = 1

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """An output that is not that of the reference: how many elements, the largest error, and the first place."""

    output: str
    trips: tuple[int, ...]
    scheduler: str
    elements: int
    largest: float
    first: tuple[int, ...]

    def __str__(self) -> str:
        trips = ", ".join(map(str, self.trips))
        return (
            f"{self.output} differs from the reference in {self.elements} elements (largest error "
            f"{self.largest:.3g}, first at {list(self.first)}); trips {trips}, scheduler {self.scheduler}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one symbolic run finds for one block: the trip count of each of its tiles, and everything wrong."""

    trips: tuple[int, ...]
    races: tuple[Race, ...] = ()
    deadlock: Deadlock | None = None
    hazards: tuple[Hazard, ...] = ()
    steps: int = 0

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong in any interleaving."""
        return not self.races and self.deadlock is None and not self.hazards


@dataclass(frozen=True, slots=True, kw_only=True)
class EmulationReport:
    """All runs of a program together.

    Attributes:
        status: the verdict.
        races, deadlock, hazards: the first finding of each kind, over all trip counts.
        differences: outputs that are not those of the reference.
        runs: numeric runs made.
        checked: trips of each tile, for every block that was checked symbolically.
        seeds: seeds of the random schedulers.
        explored: states seen by exhaustive exploration, 0 without it.
        proved: what holds, in sentences, each with its conditions.
        notes: what was left out, and why.
        seconds: wall seconds.
    """

    status: Verdict
    races: tuple[Race, ...]
    deadlock: Deadlock | None
    hazards: tuple[Hazard, ...]
    differences: tuple[Difference, ...]
    runs: int
    checked: tuple[tuple[int, ...], ...]
    seeds: tuple[int, ...]
    explored: int
    proved: tuple[str, ...]
    notes: tuple[str, ...]
    seconds: float
