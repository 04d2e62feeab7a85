"""Every interleaving of a small block: the independent check of what one run and happens-before say.

States are explored without any notion of order: where each group is, how each barrier stands, which engine has what
under way. Two conflicting accesses race if some state has both under way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from twillgpu.emulate.mbarrier import Mbarrier, arrived, delivered, fresh, overflows, passes
from twillgpu.emulate.steps import IN_ORDER, Arrive, BarrierCopy, Commit, Drain, Step, Wait, Work

Item = TypeVar("Item")

DEFAULT_STATES = 200_000


class State(NamedTuple):
    """Where each group is, how barriers stand, and what engines have under way, oldest first."""

    positions: tuple[int, ...]
    barriers: tuple[Mbarrier, ...]
    flights: tuple[Flight, ...]


class Flight(NamedTuple):
    """Step ``position`` of a group, given to an engine and not yet complete."""

    group: int
    position: int
    has_read: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Exploration:
    """What all interleavings show.

    Attributes:
        complete: whether every state was seen; otherwise the limit ended it.
        states: states seen.
        deadlock: where groups stand in a state that nothing leaves, if there is one.
        faults: waits that meet another phase than their own, arrivals beyond the count.
        races: pairs of conflicting accesses under way at once.
    """

    complete: bool
    states: int
    deadlock: tuple[str, ...]
    faults: tuple[str, ...]
    races: tuple[str, ...]

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong in the states seen."""
        return not self.deadlock and not self.faults and not self.races


class Explorer:
    """The states of one block.

    With ``reduced`` a step that commutes with everything that can happen without it is taken alone: a persistent set
    of one. Deadlocks and faults stay visible, races do not and are left out.
    """

    def __init__(self, barriers: Sequence[BarrierCopy], scripts: Sequence[Sequence[Step]], *, reduced: bool) -> None:
        self.barriers = barriers
        self.scripts = scripts
        self.reduced = reduced
        self.faults: dict[str, None] = {}
        self.races: dict[str, None] = {}
        self.deadlock: tuple[str, ...] = ()
        self._counting = _byte_barriers(scripts)
        self._waits = [[_next_waits(script, barrier) for barrier in range(len(barriers))] for script in scripts]

    def explore(self, limit: int = DEFAULT_STATES) -> Exploration:
        """Visit every state that can be reached, at most ``limit``."""
        start = State((0,) * len(self.scripts), tuple(fresh(barrier.arrivals) for barrier in self.barriers), ())
        seen, pending = {start}, [start]
        while pending and len(seen) <= limit:
            state = pending.pop()
            for following in self._successors(state):
                if following not in seen:
                    seen.add(following)
                    pending.append(following)
        return Exploration(
            complete=not pending,
            states=len(seen),
            deadlock=self.deadlock,
            faults=tuple(self.faults),
            races=tuple(self.races),
        )

    def _successors(self, state: State) -> list[State]:
        if not self.reduced:
            self._find_races(state)
        self._find_lag(state)
        found: list[State] = []
        for group, position in enumerate(state.positions):
            if position < len(self.scripts[group]) and self._enabled(state, group):
                following = self._step(state, group)
                if self.reduced and self._alone(state, group, None, following):
                    return [following]
                found.append(following)
        for flight in self._heads(state):
            following = self._progress(state, flight)
            if self.reduced and self._alone(state, None, flight, following):
                return [following]
            found.append(following)
        if not found and any(at < len(script) for at, script in zip(state.positions, self.scripts, strict=True)):
            self.deadlock = self.deadlock or self._stuck(state)
        return found

    def _enabled(self, state: State, group: int) -> bool:
        step = self.scripts[group][state.positions[group]]
        if isinstance(step, Wait):
            return passes(state.barriers[step.barrier], step.phase)
        if isinstance(step, Drain):
            older = self._queue(state, group, step.engine)
            older = older[: max(0, len(older) - step.pending)]
            return all(step.reads_only and flight.has_read for flight in older)
        return True

    def _step(self, state: State, group: int) -> State:
        position = state.positions[group]
        step = self.scripts[group][position]
        moved = state._replace(positions=_put(state.positions, group, position + 1))
        if isinstance(step, Wait):
            self._check_wait(state.barriers[step.barrier], step)
        elif isinstance(step, Arrive):
            return self._arrived(moved, step, step.bytes)
        elif isinstance(step, Commit) or (isinstance(step, Work) and step.engine != "simt"):
            return self._settled(moved._replace(flights=(*moved.flights, Flight(group, position, False))))
        return moved

    def _progress(self, state: State, flight: Flight) -> State:
        """Let an op read its operands (where it has any), or complete."""
        step = self.scripts[flight.group][flight.position]
        if isinstance(step, Work) and step.reads and not flight.has_read:
            flights = tuple(one._replace(has_read=True) if one == flight else one for one in state.flights)
            return state._replace(flights=flights)
        moved = state._replace(flights=tuple(one for one in state.flights if one != flight))
        if isinstance(step, Work) and step.signal is not None:
            barrier, count = step.signal
            after = delivered(moved.barriers[barrier], self.barriers[barrier].arrivals, count)
            moved = moved._replace(barriers=_put(moved.barriers, barrier, after))
        return self._settled(moved)

    def _settled(self, state: State) -> State:
        """Make the arrivals of engines for which all work is complete."""
        for flight in state.flights:
            step = self.scripts[flight.group][flight.position]
            if isinstance(step, Commit) and self._queue(state, flight.group, step.engine)[0] == flight:
                rest = state._replace(flights=tuple(one for one in state.flights if one != flight))
                return self._settled(self._arrived(rest, step, 0))
        return state

    def _arrived(self, state: State, step: Arrive | Commit, expected: int) -> State:
        before, copy = state.barriers[step.barrier], self.barriers[step.barrier]
        if overflows(before):
            self.faults[f"{step.label} is one arrival too many at {copy}"] = None
        after = arrived(before, copy.arrivals, expected)
        return state._replace(barriers=_put(state.barriers, step.barrier, after))

    def _heads(self, state: State) -> Iterator[Flight]:
        """Yield the ops that can go on: unordered ones, and the oldest of each queue."""
        for flight in state.flights:
            step = self.scripts[flight.group][flight.position]
            if not isinstance(step, Work):
                continue
            if step.engine not in IN_ORDER or self._queue(state, flight.group, step.engine)[0] == flight:
                yield flight

    def _queue(self, state: State, group: int, engine: str) -> list[Flight]:
        """Return what a group has under way on an engine, promised arrivals included, oldest first."""
        return [
            flight
            for flight in state.flights
            if flight.group == group and _engine(self.scripts[group][flight.position]) == engine
        ]

    def _alone(self, state: State, group: int | None, flight: Flight | None, following: State) -> bool:
        """Return whether a step of a group, or of an op under way, commutes with all that can happen without it.

        What can happen is found by letting everybody else run: by Kahn's argument that is all of it, as long as
        nobody meets the wrong phase.
        """
        step = self.scripts[group][state.positions[group]] if group is not None else None
        touched = [at for at, before in enumerate(state.barriers) if before != following.barriers[at]]
        if isinstance(step, Wait):
            touched.append(step.barrier)
        if not touched:
            return True
        faults = len(self.faults)
        without = self._without(state, group, flight)
        return len(self.faults) == faults and all(
            self._independent(state, following, without, barrier) for barrier in touched
        )

    def _independent(self, state: State, following: State, without: State, barrier: int) -> bool:
        """Return whether nobody else completes a phase of a barrier, or could pass it before this step completes one;
        where bytes are counted, nobody else may touch the barrier at all: what comes too early is one too many.
        """
        before, after = state.barriers[barrier], without.barriers[barrier]
        if before.complete != after.complete or (barrier in self._counting and before != after):
            return False
        completes = following.barriers[barrier].complete != before.complete
        return not completes or self._awaited(state, barrier, before.complete)

    def _without(self, state: State, group: int | None, flight: Flight | None) -> State:
        """Return where everything ends when one group, or one op under way, does not move."""
        moved = True
        while moved:
            moved = False
            for other, script in enumerate(self.scripts):
                while other != group and state.positions[other] < len(script) and self._enabled(state, other):
                    state, moved = self._step(state, other), True
            for one in list(self._heads(state)):
                same = flight is not None and one[:2] == flight[:2]
                if not same and not self._finished(state, one):
                    state, moved = self._progress(state, one), True
            self._find_lag(state)
        return state

    @staticmethod
    def _finished(state: State, flight: Flight) -> bool:
        """Return whether an op is not under way any more."""
        return flight not in state.flights

    def _awaited(self, state: State, barrier: int, phase: int) -> bool:
        """Return whether the next wait of every group at a barrier is for ``phase`` (or there is none): none of them
        can pass before the phase is complete.
        """
        return all(
            self._waits[group][barrier][position] in (None, phase) for group, position in enumerate(state.positions)
        )

    def _check_wait(self, barrier: Mbarrier, step: Wait) -> None:
        if barrier.complete <= step.phase:
            self.faults[f"{step.label} passes before phase {step.phase} of {self.barriers[step.barrier]}"] = None
        elif barrier.complete > step.phase + 1:
            self._late(step)

    def _late(self, step: Wait) -> None:
        self.faults[f"{step.label} lags behind phase {step.phase} of {self.barriers[step.barrier]}"] = None

    def _find_lag(self, state: State) -> None:
        for group, position in enumerate(state.positions):
            step = self.scripts[group][position] if position < len(self.scripts[group]) else None
            if isinstance(step, Wait) and state.barriers[step.barrier].complete > step.phase + 1:
                self._late(step)

    def _find_races(self, state: State) -> None:
        """Compare what groups are about to do, and what engines have under way, pair by pair."""
        active = [
            (group, self.scripts[group][position], False)
            for group, position in enumerate(state.positions)
            if position < len(self.scripts[group])
        ]
        active += [(one.group, self.scripts[one.group][one.position], one.has_read) for one in state.flights]
        works = [(group, step, read) for group, step, read in active if isinstance(step, Work)]
        for place, (group, one, one_read) in enumerate(works):
            for other, two, two_read in works[place + 1 :]:
                ordered = group == other and one.engine == two.engine and one.engine in IN_ORDER | {"simt"}
                if not ordered and _conflict(one, one_read, two, two_read):
                    self.races[" against ".join(sorted((str(one.label), str(two.label))))] = None

    def _stuck(self, state: State) -> tuple[str, ...]:
        steps = [script[at] for at, script in zip(state.positions, self.scripts, strict=True) if at < len(script)]
        return tuple(str(step.label) for step in steps)


def _next_waits(script: Sequence[Step], barrier: int) -> list[int | None]:
    """Return the phase of the next wait at a barrier, from each position of a script on."""
    found: list[int | None] = [None]
    for step in reversed(script):
        found.append(step.phase if isinstance(step, Wait) and step.barrier == barrier else found[-1])
    return found[::-1]


def _byte_barriers(scripts: Sequence[Sequence[Step]]) -> frozenset[int]:
    """Return the barriers that count bytes."""
    steps = [step for script in scripts for step in script]
    expected = {step.barrier for step in steps if isinstance(step, Arrive) and step.bytes}
    return frozenset(expected | {step.signal[0] for step in steps if isinstance(step, Work) and step.signal})


def _conflict(one: Work, one_read: bool, two: Work, two_read: bool) -> bool:
    """Return whether two ops under way touch the same bytes, one of them writing; reads that are over do not "
    "count.
    """
    one_reads, two_reads = () if one_read else one.reads, () if two_read else two.reads
    pairs = [(a, b) for a in one.writes for b in (*two.writes, *two_reads)]
    pairs += [(a, b) for a in one_reads for b in two.writes]
    return any(a.memory == b.memory and a.start < b.end and b.start < a.end for a, b in pairs)


def _engine(step: Step) -> str:
    return step.engine if isinstance(step, Work | Commit) else ""


def _put(items: tuple[Item, ...], place: int, item: Item) -> tuple[Item, ...]:
    return (*items[:place], item, *items[place + 1 :])
