"""What must hold in every warp program, whatever made it: names, scopes, anchors, and the phases of its barriers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from twillgpu.graph.body import tile_bytes
from twillgpu.lower.record import (
    Access,
    Anchor,
    Arrive,
    Barrier,
    BarrierUse,
    Commit,
    Execute,
    ExpectBytes,
    Get,
    GroupProgram,
    Instance,
    Instruction,
    Iteration,
    Put,
    Ring,
    Wait,
    WarpProgram,
)

_ANCHORS: dict[str, Anchor] = {
    "before": "first",
    "prologue": "first",
    "loop": "loop",
    "epilogue": "last",
    "after": "last",
}
"""The only anchor that means something in each region."""

_MORE = 3
"""Trip counts beyond the number of stages that are counted through: the rest repeats them."""

Phase = tuple[str, int]
"""A barrier and one of its instances."""


def check_program(program: WarpProgram) -> tuple[str, ...]:
    """Return what is wrong with the structure of a program, in words; empty where nothing is.

    Checked are: that names are unique and known; that instances have the scope of their ring or barrier, and anchors
    the meaning of their region; that TMA loads complete a barrier, and nothing else does; that for trip counts from 0
    to beyond all stages every phase gets exactly the arrivals and bytes that complete it, and every wait is for a
    phase that exists. Races and deadlocks are for ``twillgpu.emulate`` to find.
    """
    return (*_Names(program).problems(), *_phases(program))


def regions(group: GroupProgram) -> tuple[tuple[str, tuple[Instruction, ...]], ...]:
    """Return the regions of a group by name, in order."""
    return (
        ("before", group.before),
        ("prologue", group.prologue),
        ("loop", group.loop),
        ("epilogue", group.epilogue),
        ("after", group.after),
    )


class _Names:
    def __init__(self, program: WarpProgram) -> None:
        self.program = program
        self.rings = {ring.name: ring for ring in program.rings}
        self.barriers = {barrier.name: barrier for barrier in program.barriers}
        kernel = program.kernel
        self.inside = {op.name for op in kernel.loop.body}
        self.outside = {op.name for op in (*kernel.before, *kernel.after)}

    def problems(self) -> Iterator[str]:
        program = self.program
        yield from _twice("groups", (group.name for group in program.groups))
        yield from _twice("rings", (ring.name for ring in program.rings))
        yield from _twice("barriers", (barrier.name for barrier in program.barriers))
        for ring in program.rings:
            if ring.depth < 1 or ring.bytes < 1:
                yield f"ring {ring.name} has {ring.depth} copies of {ring.bytes} bytes"
        for barrier in program.barriers:
            if barrier.copies < 1 or barrier.arrivals < 1:
                yield f"barrier {barrier.name} has {barrier.copies} copies with {barrier.arrivals} arrivals"
        for group in program.groups:
            for region, instructions in regions(group):
                for instruction in instructions:
                    for problem in self._instruction(region, instruction):
                        yield f"group {group.name}, {region}: {problem}"

    def _instruction(self, region: str, one: Instruction) -> Iterator[str]:
        if region == "loop" and one.at_least:
            yield f"{_say(one)} is guarded"
        if isinstance(one, Execute | Put | Get):
            yield from self._iteration(region, one.iteration, _say(one))
        if isinstance(one, Execute):
            yield from self._execute(one)
        for access in _accesses(one):
            yield from self._instance(region, f"ring {access.ring}", self.rings.get(access.ring), access.instance)
        use = _use(one)
        if use is not None:
            known = self.barriers.get(use.barrier)
            yield from self._instance(region, f"barrier {use.barrier}", known, use.instance)
            if isinstance(one, Wait) and known is not None and use.instance.lag > known.copies:
                yield f"{_say(one)} lags {use.instance.lag} phases behind, and there are {known.copies} copies"

    def _execute(self, one: Execute) -> Iterator[str]:
        known = self.outside if one.iteration is None else self.inside
        for member in one.members:
            if member not in known:
                where = "outside the loop" if one.iteration is None else "in the loop"
                yield f"{member} is no op of the kernel {where}"
        if (one.engine == "tma") != (one.completes is not None):
            yield f"{_say(one)}: a TMA load, and nothing else, completes a barrier"

    def _iteration(self, region: str, iteration: Iteration | None, what: str) -> Iterator[str]:
        inside = region in ("prologue", "loop", "epilogue")
        if inside and iteration is None:
            yield f"{what} has no iteration"
        elif iteration is not None and iteration.anchor != _ANCHORS[region]:
            yield f"{what} is anchored at {iteration.anchor}, which means nothing there"

    def _instance(self, region: str, what: str, known: Ring | Barrier | None, instance: Instance) -> Iterator[str]:
        if known is None:
            yield f"there is no {what}"
        elif known.scope != instance.scope or (instance.scope == "iteration") != (instance.iteration is not None):
            yield f"{what} has scope {known.scope}, its instance {instance.scope}"
        elif instance.iteration is not None:
            yield from self._iteration(region, instance.iteration, what)


def _twice(what: str, names: Iterable[str]) -> Iterator[str]:
    for name, number in Counter(names).items():
        if number > 1:
            yield f"{number} {what} are called {name}"


def _say(one: Instruction) -> str:
    use = _use(one)
    if use is not None and not isinstance(one, Execute):
        return f"{type(one).__name__} {use.barrier}"
    if isinstance(one, Execute):
        return one.op or ", ".join(one.members)
    return f"{type(one).__name__} {one.value}" if isinstance(one, Put | Get) else type(one).__name__


def _accesses(one: Instruction) -> tuple[Access, ...]:
    if isinstance(one, Execute):
        return (*one.reads, *one.writes)
    return (one.access,) if isinstance(one, Put | Get) else ()


def _use(one: Instruction) -> BarrierUse | None:
    if isinstance(one, Execute):
        return one.completes
    return one.use if isinstance(one, Wait | Arrive | ExpectBytes | Commit) else None


def _phases(program: WarpProgram) -> Iterator[str]:
    known = {barrier.name: barrier for barrier in program.barriers}
    rings = {ring.name: ring for ring in program.rings}
    stages = max((group.stages for group in program.groups), default=1)
    for trips in range(stages + _MORE):
        seen = _Seen(trips, known, rings)
        for group in program.groups:
            seen.run(group)
        problems = tuple(seen.problems())
        if problems:
            yield from (f"with {trips} iterations: {problem}" for problem in problems)
            return


class _Seen:
    """Arrivals, bytes and waits of one tile, by phase."""

    def __init__(self, trips: int, barriers: dict[str, Barrier], rings: dict[str, Ring]) -> None:
        self.trips = trips
        self.barriers = barriers
        self.rings = rings
        self.arrivals: Counter[Phase] = Counter()
        self.expected: Counter[Phase] = Counter()
        self.delivered: Counter[Phase] = Counter()
        self.waited: dict[Phase, None] = {}

    def run(self, group: GroupProgram) -> None:
        """Count what one group does."""
        for region, instructions in regions(group):
            steps = range(group.stages - 1, self.trips) if region == "loop" else range(1)
            for step in steps:
                for one in instructions:
                    if one.at_least <= self.trips:
                        self._count(one, step)

    def problems(self) -> Iterator[str]:
        """Yield what is wrong with the phases."""
        for barrier in self.barriers.values():
            wanted = range(self.trips) if barrier.scope == "iteration" else range(1)
            phases = {number for name, number in self.arrivals if name == barrier.name} | set(wanted)
            for number in sorted(phases):
                found = self.arrivals[barrier.name, number]
                right = barrier.arrivals if number in wanted else 0
                if found != right:
                    yield f"barrier {barrier.name} has {found} arrivals in instance {number}, {right} are right"
            yield from self._bytes(barrier.name)
        for name, number in self.waited:
            if name in self.barriers and number >= (self.trips if self.barriers[name].scope == "iteration" else 1):
                yield f"a wait for instance {number} of barrier {name}, which never comes"

    def _bytes(self, name: str) -> Iterator[str]:
        for phase in sorted({phase for phase in (*self.expected, *self.delivered) if phase[0] == name}):
            if self.expected[phase] != self.delivered[phase]:
                yield (
                    f"barrier {name} expects {self.expected[phase]} bytes in instance {phase[1]}, "
                    f"{self.delivered[phase]} are loaded"
                )

    def _count(self, one: Instruction, step: int) -> None:
        use = _use(one)
        if use is None:
            return
        phase = (use.barrier, self._number(use.instance, step))
        if isinstance(one, Wait):
            self.waited[phase] = None
        elif isinstance(one, Execute):
            written = [self.rings[access.ring] for access in one.writes if access.ring in self.rings]
            self.delivered[phase] += sum(tile_bytes(ring.tile) for ring in written)
        else:
            self.arrivals[phase] += 1
            self.expected[phase] += one.bytes if isinstance(one, ExpectBytes) else 0

    def _number(self, instance: Instance, step: int) -> int:
        if instance.iteration is None:
            return -instance.lag
        start = {"first": 0, "loop": step, "last": self.trips}[instance.iteration.anchor]
        return start + instance.iteration.offset - instance.lag
