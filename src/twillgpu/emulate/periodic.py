"""From bounded to unbounded: where the state of a run recurs, what holds up to there holds for every trip count."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from math import lcm

from twillgpu.emulate.coverage import check_coverage
from twillgpu.emulate.digest import Clock, Scale, digest, scale_of
from twillgpu.emulate.record import Finding
from twillgpu.emulate.steps import Step
from twillgpu.emulate.symbolic import SymbolicRun
from twillgpu.emulate.unroll import Moment, Sections, Unroller
from twillgpu.emulate.values import check_values
from twillgpu.lower.record import (
    Access,
    Arrive,
    Commit,
    Execute,
    ExpectBytes,
    Get,
    GroupProgram,
    Instruction,
    Put,
    Scope,
    Wait,
    WarpProgram,
)

DEFAULT_STEPS = 300_000

OVERHEAD = 50
"""Steps that looking at a state costs."""

PERIODS = 6
"""Periods of the loop within which its state must recur; two are enough where groups do not drift apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Induction:
    """What was shown for trip counts without bound.

    Attributes:
        holds: whether it was shown: of a persistent program, for every sequence of tiles.
        first_tile: whether it was shown for every trip count of the block's first tile.
        reason: what recurs, or why nothing was shown.
        trips: the largest trip count that was run.
        period: iterations after which everything recurs.
        states: states between tiles that were met.
        failure: the first finding, where something is wrong.
    """

    holds: bool
    reason: str
    first_tile: bool = False
    trips: int = 0
    period: int = 0
    states: int = 0
    failure: Finding | None = None


DRIFT = 2
"""Periods, besides the length of the longest pipeline, that a group may be behind where a recurrence counts."""


class _UnsoundError(Exception):
    """A run was not sound."""

    def __init__(self, finding: Finding) -> None:
        super().__init__()
        self.finding = finding


class _BudgetError(Exception):
    """The budget is spent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Boundary:
    """A state between tiles: the run, where it is, and the tiles that led there."""

    run: SymbolicRun
    clock: Clock
    trips: tuple[int, ...]


def prove(program: WarpProgram | Unroller, steps: int = DEFAULT_STEPS) -> Induction:
    """Show that a program is sound for every trip count, and if it is persistent for every sequence of tiles.

    Args:
        program: the program, or an ``Unroller`` of it.
        steps: at most so many steps of groups are run.

    Returns:
        What was shown; ``holds`` is false where a run is not sound, where nothing recurs within ``steps``, or where
        the program does not have the form that the induction needs.
    """
    unroller = program if isinstance(program, Unroller) else Unroller(program)
    odd = next(_irregular(unroller.program), None)
    if odd is not None:
        return Induction(holds=False, reason=odd)
    return _Prover(unroller, steps).prove()


class _Prover:
    def __init__(self, unroller: Unroller, steps: int) -> None:
        self.unroller = unroller
        self.program = unroller.program
        self.period = _period(unroller.program, "iteration")
        self.tile_period = _period(unroller.program, "tile")
        self.least = max(_least(group) for group in unroller.program.groups)
        self.drift = self.least + DRIFT * self.period
        self.scale: Scale = scale_of(unroller.program, _oldest(unroller.program) + self.drift)
        self.steps_left = steps
        self.largest = 0
        self.first_tile = False
        self.looked_at: set[int] = set()

    def prove(self) -> Induction:
        """Run tiles of every length from every state between tiles, until no new state appears."""
        start = _Boundary(run=SymbolicRun(self.unroller.groups, self.unroller.barriers), clock=Clock(0, 0), trips=())
        seen: dict[Hashable, None] = {self._key(start): None}
        pending = [start]
        try:
            while pending:
                for after in self._tile(pending.pop(0)):
                    key = self._key(after)
                    if self.program.persistent and key not in seen:
                        seen[key] = None
                        pending.append(after)
                self.first_tile = True
        except _UnsoundError as failed:
            trips = ", ".join(map(str, failed.finding.trips))
            return Induction(holds=False, reason=f"not sound for trips {trips}", failure=failed.finding)
        except _BudgetError:
            return Induction(
                holds=False,
                first_tile=self.first_tile,
                reason="no recurrence within the limit of steps",
                trips=self.largest,
                states=len(seen),
            )
        return Induction(
            holds=True,
            first_tile=True,
            reason=self._reason(len(seen)),
            trips=self.largest,
            period=self.period,
            states=len(seen),
        )

    def _reason(self, states: int) -> str:
        loop = f"the state of the loop recurs every {self.period} iterations, at {self.largest} trips at the latest"
        if not self.program.persistent:
            return loop
        return f"{loop}; between tiles there are {states} states in all, each run with every trip count up to there"

    def _key(self, boundary: _Boundary) -> Hashable:
        clock = boundary.clock
        residues = clock.iterations % self.period, clock.tiles % self.tile_period
        return residues, digest(boundary.run, self.scale, clock)

    def _tile(self, start: _Boundary) -> Iterator[_Boundary]:
        """Yield the state after one more tile, for every trip count up to the recurrence of the loop."""
        for trips in range(self.least):
            run, sections = start.run.copy(), self._sections(start, trips)
            run.extend([[*head, *(step for one in rounds for step in one), *tail] for head, rounds, tail in sections])
            yield self._ended(run, start, trips)
        run = start.run.copy()
        run.extend([section.head for section in self._sections(start, self.least)])
        seen: dict[Hashable, None] = {}
        lengths = [len(group.loop) for group in self.program.groups]
        first = min(group.stages for group in self.program.groups) - 1
        for t in range(first, self.least + PERIODS * self.period):
            run.extend(self._round(start, t))
            self._spend(run)
            trips = t + 1
            if trips < self.least:
                continue
            twin = run.copy()
            twin.extend([section.tail for section in self._sections(start, trips)])
            yield self._ended(twin, start, trips)
            inside = all(
                len(script) - at <= length * min(self.drift, max(0, t + 1 - (group.stages - 1)))
                for script, at, length, group in zip(
                    run.scripts, run.positions, lengths, self.program.groups, strict=True
                )
            )
            clock = Clock(start.clock.iterations + trips, start.clock.tiles)
            key = clock.iterations % self.period, digest(run, self.scale, clock), inside
            if inside and key in seen:
                self.largest = max(self.largest, trips)
                return
            seen[key] = None
        raise _BudgetError

    def _sections(self, start: _Boundary, trips: int) -> list[Sections]:
        moment = Moment(start.clock.tiles, start.clock.iterations, trips)
        return [self.unroller.sections(group, moment) for group in range(len(self.program.groups))]

    def _round(self, start: _Boundary, t: int) -> list[list[Step]]:
        moment = Moment(start.clock.tiles, start.clock.iterations, t + 1, t)
        return [
            self.unroller.round(index, moment) if t >= group.stages - 1 else []
            for index, group in enumerate(self.program.groups)
        ]

    def _ended(self, run: SymbolicRun, start: _Boundary, trips: int) -> _Boundary:
        """Run a tile to its end; check that the block could end here too."""
        ended = self._spend(run)
        clock = Clock(start.clock.iterations + trips, start.clock.tiles + 1)
        run.order.forget()
        last = run.copy()
        if ended:
            last.order.finish()
        if trips not in self.looked_at:
            self.looked_at.add(trips)
            check_coverage(self.program, trips, last.findings)
            check_values(self.program, trips, last.findings)
        finding = Finding(
            trips=(*start.trips, trips),
            races=last.findings.races,
            deadlock=None if ended else run.deadlock(),
            hazards=last.findings.hazards,
        )
        if not finding.sound:
            raise _UnsoundError(finding)
        return _Boundary(run=run, clock=clock, trips=finding.trips)

    def _spend(self, run: SymbolicRun) -> bool:
        before = run.steps
        ended = run.run()
        self.steps_left -= run.steps - before + OVERHEAD
        if self.steps_left < 0:
            raise _BudgetError
        return ended


def _period(program: WarpProgram, scope: Scope) -> int:
    """Return after how many uses copies of all rings and barriers come round together."""
    depths = [ring.depth for ring in program.rings if ring.scope == scope]
    return lcm(*depths, *(barrier.copies for barrier in program.barriers if barrier.scope == scope))


def _least(group: GroupProgram) -> int:
    """Return the trip count from which on a group executes all that it ever executes."""
    instructions = (*group.before, *group.prologue, *group.loop, *group.epilogue, *group.after)
    return max([group.stages, *(one.at_least for one in instructions)])


def _oldest(program: WarpProgram) -> int:
    """Return how many uses before the step of the loop, or the tile, the oldest instance is that is accessed."""
    found = [0]
    for group in program.groups:
        for one in (*group.before, *group.prologue, *group.loop, *group.epilogue, *group.after):
            for access in _accesses(one):
                at = access.instance.iteration
                found.append(access.instance.lag - (at.offset if at is not None else 0))
    return max(found)


def _accesses(one: Instruction) -> tuple[Access, ...]:
    if isinstance(one, Execute):
        return (*one.reads, *one.writes)
    return (one.access,) if isinstance(one, Put | Get) else ()


def _irregular(program: WarpProgram) -> Iterator[str]:
    """Yield why parts of a program do not just shift when a tile has one iteration more."""
    for group in program.groups:
        for part, allowed in (
            ((*group.before, *group.prologue), ("first",)),
            (group.loop, ("loop",)),
            ((*group.epilogue, *group.after), ("last",)),
        ):
            for one in part:
                if any(anchor not in allowed for anchor in _anchors(one)):
                    yield f"group {group.name} counts {type(one).__name__} from another end of the loop than its part"


def _anchors(instruction: Instruction) -> Iterator[str]:
    """Yield the ends of the loop from which an instruction counts iterations."""
    found = [access.instance.iteration for access in _accesses(instruction)]
    if isinstance(instruction, Execute | Put | Get):
        found.append(instruction.iteration)
    if isinstance(instruction, Execute) and instruction.completes is not None:
        found.append(instruction.completes.instance.iteration)
    if isinstance(instruction, Wait | Arrive | ExpectBytes | Commit):
        found.append(instruction.use.instance.iteration)
    return (at.anchor for at in found if at is not None)
