"""Everything that can be said about a warp program: one report."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from twillgpu.emulate.explore import DEFAULT_STATES, Explorer
from twillgpu.emulate.numeric_check import run_sample, sample
from twillgpu.emulate.periodic import DEFAULT_STEPS, Induction, prove
from twillgpu.emulate.record import Deadlock, Difference, EmulationReport, Finding, Hazard, Race, Verdict
from twillgpu.emulate.schedulers import Chance, Scheduler, schedulers
from twillgpu.emulate.symbolic_check import check_trips
from twillgpu.emulate.unroll import Unroller
from twillgpu.errors import TwillError
from twillgpu.lower.record import WarpProgram

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class EmulationOptions:
    """What is run.

    Attributes:
        trips: trip counts, each for a block with one tile; ``None``: 0, 1, about the number of stages, and more.
        tiles: tiles of a further block of a persistent program, with different trip counts.
        seeds: random schedulers for each block on numbers.
        numbers: whether to run on numbers at all.
        explore: whether to explore every interleaving of one block.
        states: limit of that exploration.
        steps: limit of the search for a recurring state.
    """

    trips: tuple[int, ...] | None = None
    tiles: int = 4
    seeds: int = 2
    numbers: bool = True
    explore: bool = False
    states: int = DEFAULT_STATES
    steps: int = DEFAULT_STEPS


@dataclass(slots=True)
class _Findings:
    """What is collected over all runs."""

    races: dict[str, Race] = field(default_factory=dict)
    hazards: dict[str, Hazard] = field(default_factory=dict)
    deadlock: Deadlock | None = None
    differences: list[Difference] = field(default_factory=list)
    checked: list[tuple[int, ...]] = field(default_factory=list)
    proved: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    runs: int = 0
    explored: int = 0
    limit: bool = False

    @property
    def sound(self) -> bool:
        return not (self.races or self.hazards or self.deadlock or self.differences)

    def add(self, races: Sequence[Race], hazards: Sequence[Hazard], deadlock: Deadlock | None) -> None:
        for race in races:
            self.races.setdefault(f"{race.kind} {race.first and race.first.what} {race.second.what}", race)
        for hazard in hazards:
            self.hazards.setdefault(hazard.message, hazard)
        self.deadlock = self.deadlock or deadlock


def emulate(
    program: WarpProgram, options: EmulationOptions | None = None, progress: Progress | None = None
) -> EmulationReport:
    """Check a warp program: races, deadlocks and hazards of every interleaving, and its numbers.

    Args:
        program: the program.
        options: what is run.
        progress: called with one line of text for every step.

    Returns:
        The report; nothing that is wrong with the program raises.

    Raises:
        UnsupportedError: an op has no meaning on numbers.
    """
    started = time.perf_counter()
    wanted, unroller, found = options or EmulationOptions(), Unroller(program), _Findings()
    tell = progress or (lambda _: None)
    blocks = _blocks(program, wanted)
    tell(f"without numbers: {len(blocks)} blocks")
    for trips in blocks:
        finding = check_trips(unroller, trips)
        found.checked.append(trips)
        found.add(finding.races, finding.hazards, finding.deadlock)
    if found.sound:
        tell("every trip count")
        _induct(unroller, wanted, found)
    if wanted.explore:
        tell("every interleaving")
        _explore(unroller, wanted, found)
    if wanted.numbers and found.sound:
        _numbers(unroller, blocks, wanted, found, tell)
    elif wanted.numbers:
        found.notes.append("not run on numbers: the program is not sound without them")
    return _report(found, wanted, time.perf_counter() - started)


def default_trips(program: WarpProgram) -> tuple[int, ...]:
    """Return 0, 1, stages - 1, stages, stages + 1, and a few more than any ring is deep."""
    stages = max(group.stages for group in program.groups)
    deepest = max([ring.depth for ring in program.rings], default=1)
    return tuple(sorted({0, 1, stages - 1, stages, stages + 1, stages + 2 * deepest}))


def _blocks(program: WarpProgram, options: EmulationOptions) -> tuple[tuple[int, ...], ...]:
    counts = default_trips(program) if options.trips is None else options.trips
    blocks: list[tuple[int, ...]] = [(count,) for count in counts]
    if program.persistent and options.tiles > 1 and counts:
        # Long tiles and short ones take turns.
        order = [count for pair in zip(reversed(counts), counts, strict=True) for count in pair][: len(counts)]
        blocks.append(tuple(order[place % len(order)] for place in range(options.tiles)))
    return tuple(blocks)


def _induct(unroller: Unroller, options: EmulationOptions, found: _Findings) -> None:
    blocks = "; ".join(", ".join(map(str, trips)) for trips in found.checked)
    found.proved.append(
        f"for trips {blocks}: no interleaving has a race, a deadlock or a hazard (one run, no hazard, so that all "
        "interleavings have the same order)"
    )
    shown = prove(unroller, options.steps)
    if shown.failure is not None:
        _fail(shown.failure, found)
    elif shown.holds:
        every = "every sequence of tiles" if unroller.program.persistent else "every trip count"
        found.proved.append(f"for {every}: the same ({shown.reason})")
    else:
        _partly(unroller, shown, found)


def _partly(unroller: Unroller, shown: Induction, found: _Findings) -> None:
    if shown.first_tile:
        found.proved.append(
            f"for every trip count of a first tile: the same (the loop recurs by {shown.trips} trips)"
        )
    scope = "sequences of tiles" if unroller.program.persistent and shown.first_tile else "trip counts"
    found.notes.append(f"other {scope} are not proved: {shown.reason}")


def _fail(failure: Finding, found: _Findings) -> None:
    found.checked.append(failure.trips)
    found.add(failure.races, failure.hazards, failure.deadlock)


def _explore(unroller: Unroller, options: EmulationOptions, found: _Findings) -> None:
    """Explore one block a little past the steady state, for deadlocks and faults of barriers."""
    trips = (max(group.stages for group in unroller.program.groups) + 1,)
    explorer = Explorer(unroller.barriers, unroller.scripts(trips), reduced=True)
    seen = explorer.explore(options.states)
    found.explored = seen.states
    for fault in seen.faults:
        found.hazards.setdefault(fault, Hazard(kind="phase lag" if "lags" in fault else "early pass", message=fault))
    if seen.deadlock and found.deadlock is None:
        found.deadlock = Deadlock(blocked=(), cycle=seen.deadlock)
    if seen.complete and seen.sound:
        found.proved.append(
            f"for {trips[0]} trips: exploration of all {seen.states} states (persistent sets) finds no deadlock, "
            f"and no "
            "wait or arrival that meets another phase than its own"
        )
    elif not seen.complete:
        found.limit = True
        found.notes.append(f"exploration of {trips[0]} trips ended at the limit of {options.states} states")


def _numbers(
    unroller: Unroller, blocks: Sequence[tuple[int, ...]], options: EmulationOptions, found: _Findings, tell: Progress
) -> None:
    for place, trips in enumerate(blocks):
        try:
            work = sample(unroller.program.kernel, trips)
        except TwillError as error:
            found.notes.append(f"trips {', '.join(map(str, trips))} not run on numbers: {error.what}")
            continue
        for scheduler in _chosen(unroller, options, extremes=place == len(blocks) - 1):
            tell(f"on numbers: trips {', '.join(map(str, trips))}, {scheduler.name}")
            outcome = run_sample(unroller, work, scheduler)
            found.runs += 1
            found.add(outcome.races, outcome.hazards, outcome.deadlock)
            found.differences += outcome.differences
    if found.runs and found.sound:
        found.proved.append(f"{found.runs} runs on random numbers give exactly what the reference gives")


def _chosen(unroller: Unroller, options: EmulationOptions, *, extremes: bool) -> list[Scheduler]:
    """Return random schedulers, and for the largest block the extremes besides."""
    if extremes:
        return schedulers(len(unroller.groups), range(options.seeds))
    return [Chance(seed) for seed in range(options.seeds)]


def _report(found: _Findings, options: EmulationOptions, seconds: float) -> EmulationReport:
    status: Verdict = "unsafe" if not found.sound else "limit" if found.limit else "sound"
    return EmulationReport(
        status=status,
        races=tuple(found.races.values()),
        deadlock=found.deadlock,
        hazards=tuple(found.hazards.values()),
        differences=tuple(found.differences),
        runs=found.runs,
        checked=tuple(found.checked),
        seeds=tuple(range(options.seeds)),
        explored=found.explored,
        proved=tuple(found.proved) if found.sound else (),
        notes=tuple(found.notes),
        seconds=seconds,
    )
