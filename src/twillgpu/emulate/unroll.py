"""A warp program as the steps that each group takes, for given trip counts: no numbers yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from twillgpu.emulate.registers import RegisterUse
from twillgpu.emulate.steps import Arrive, BarrierCopy, Commit, Drain, Fence, Label, Step, Touch, Wait, Work
from twillgpu.graph.body import tile_bytes
from twillgpu.lower import record as lower

VERBS = {lower.Wait: "wait", lower.Arrive: "arrive", lower.ExpectBytes: "expect", lower.Commit: "commit"}

LOADS = frozenset({"tt.descriptor_load", "tt.descriptor_gather"})


class Moment(NamedTuple):
    """Where a group is: tile, iterations of the tiles before, trips of this one, and step of the loop."""

    tile: int
    base: int
    trips: int
    t: int = 0


START = Moment(0, 0, 0)
"""The start of a block."""

Maker: TypeAlias = Callable[[Moment], Step]


class Sections(NamedTuple):
    """The steps of a group for one tile: before the loop, each round of the loop, after it."""

    head: list[Step]
    rounds: list[list[Step]]
    tail: list[Step]


class Template(NamedTuple):
    """An instruction, how its step is made, and the trip count from which on it is executed."""

    instruction: lower.Instruction
    make: Maker
    at_least: int


class Unroller:
    """Makes steps of a warp program. Instances, places and labels are resolved here and nowhere else."""

    def __init__(self, program: lower.WarpProgram) -> None:
        self.program = program
        self.groups = tuple(group.name for group in program.groups)
        self.barriers = barrier_copies(program)
        self._rings = {ring.name: ring for ring in program.rings}
        self._scopes = {barrier.name: barrier for barrier in program.barriers}
        self._first = {copy.name: index for index, copy in reversed(list(enumerate(self.barriers)))}
        self._touches: dict[tuple[str, int, bool], Touch] = {}
        self._sources = sources(program)
        kernel = program.kernel
        self._ops = {op.name: op for op in (*kernel.before, *kernel.loop.body, *kernel.after)}
        self._templates = [self._group(group) for group in program.groups]

    def sections(self, group: int, moment: Moment) -> Sections:
        """Return the steps of a group for one tile."""
        before, loop, after = self._templates[group]
        stages = self.program.groups[group].stages
        return Sections(
            self.steps(before, moment),
            [self.steps(loop, moment._replace(t=t)) for t in range(stages - 1, moment.trips)],
            self.steps(after, moment),
        )

    def round(self, group: int, moment: Moment) -> list[Step]:
        """Return the steps of a group for one step of its loop."""
        return self.steps(self._templates[group][1], moment)

    def script(self, group: int, trips: Sequence[int], first: Moment = START) -> list[Step]:
        """Return the steps of a group for several tiles; ``first`` says what the block has done before."""
        steps: list[Step] = []
        for moment in moments(trips, first):
            head, rounds, tail = self.sections(group, moment)
            steps += head
            for one in rounds:
                steps += one
            steps += tail
        return steps

    def scripts(self, trips: Sequence[int], first: Moment = START) -> list[list[Step]]:
        """Return the steps of every group."""
        return [self.script(group, trips, first) for group in range(len(self.groups))]

    def instructions(self, group: int, moment: Moment) -> Iterator[tuple[lower.Instruction, Moment, Step]]:
        """Yield what a group executes for one tile, each instruction with its moment and its step."""
        before, loop, after = self._templates[group]
        rounds = range(self.program.groups[group].stages - 1, moment.trips)
        parts = [(before, moment), *((loop, moment._replace(t=t)) for t in rounds), (after, moment)]
        for templates, place in parts:
            for template in templates:
                if moment.trips >= template.at_least:
                    yield template.instruction, place, template.make(place)

    @staticmethod
    def steps(templates: Sequence[Template], moment: Moment) -> list[Step]:
        """Return the steps that are executed at this moment."""
        return [template.make(moment) for template in templates if moment.trips >= template.at_least]

    def _group(self, group: lower.GroupProgram) -> tuple[list[Template], list[Template], list[Template]]:
        registers = RegisterUse(self.program.kernel, group)

        def compiled(instructions: Sequence[lower.Instruction]) -> list[Template]:
            return [Template(one, self._maker(one, group.name, registers), one.at_least) for one in instructions]

        return (
            compiled([*group.before, *group.prologue]),
            compiled(group.loop),
            compiled([*group.epilogue, *group.after]),
        )

    def _maker(self, instruction: lower.Instruction, group: str, registers: RegisterUse) -> Maker:
        match instruction:
            case lower.Execute():
                return self._execute(instruction, group, registers)
            case lower.Put() | lower.Get():
                return self._handover(instruction, group, registers)
            case lower.Wait() | lower.Arrive() | lower.ExpectBytes() | lower.Commit():
                return self._synchronisation(instruction, group)
            case lower.Drain():
                engine, pending, only = instruction.engine, instruction.pending, instruction.reads_only
                plain = labeller(group, f"drain {engine}", "", None)
                return lambda moment: Drain(plain(moment), engine, pending, only)
            case lower.Fence():
                kind, plain = instruction.kind, labeller(group, f"fence {instruction.kind}", "", None)
                return lambda moment: Fence(plain(moment), kind)

    def _synchronisation(
        self, step: lower.Wait | lower.Arrive | lower.ExpectBytes | lower.Commit, group: str
    ) -> Maker:
        use, verb = step.use, VERBS[type(step)]
        label = labeller(group, f"{verb} {use.barrier}", "", use.instance.iteration)
        place = self._barrier(use)
        if isinstance(step, lower.Wait):
            return lambda moment: Wait(label(moment), *place(moment))
        if isinstance(step, lower.Commit):
            engine = step.engine
            return lambda moment: Commit(label(moment), *place(moment), engine)
        count = step.bytes if isinstance(step, lower.ExpectBytes) else 0
        return lambda moment: Arrive(label(moment), *place(moment), count)

    def _execute(self, execute: lower.Execute, group: str, registers: RegisterUse) -> Maker:
        text = execute.op or (execute.members[0] if execute.members else "nothing")
        label = labeller(group, text, self._source(execute.members), execute.iteration)
        written = {access.ring for access in execute.writes}
        loose = written if execute.engine == "tcgen05" else set()
        reads = [self._toucher(access, access.ring in loose) for access in execute.reads]
        writes = [self._toucher(access, False) for access in execute.writes]
        uses, gives = registers.uses(execute), registers.gives(execute)
        signal = self._signal(execute)
        engine, at = execute.engine, execute.iteration

        def make(moment: Moment) -> Step:
            here = None if at is None else number(at, moment)
            return Work(
                label(moment),
                engine,
                tuple([touch(moment) for touch in reads]),
                tuple([touch(moment) for touch in writes]),
                signal(moment) if signal is not None else None,
                registers.cells(uses, here, moment.base, moment.trips) if uses else (),
                registers.cells(gives, here, moment.base, moment.trips) if gives else (),
            )

        return make

    def _handover(self, step: lower.Put | lower.Get, group: str, registers: RegisterUse) -> Maker:
        verb = "put" if isinstance(step, lower.Put) else "get"
        label = labeller(group, f"{verb} {step.value}", self._sources.get(step.value, ""), step.iteration)
        touch, at = self._toucher(step.access, False), step.iteration
        names = registers.pending((step.value,))
        if isinstance(step, lower.Get):
            return lambda moment: Work(label(moment), "simt", (touch(moment),))
        return lambda moment: Work(
            label(moment),
            "simt",
            (),
            (touch(moment),),
            None,
            registers.cells(names, None if at is None else number(at, moment), moment.base, moment.trips),
        )

    def _source(self, members: Sequence[str]) -> str:
        return next((self._sources[name] for name in members if self._sources.get(name)), "")

    def _toucher(self, access: lower.Access, lenient: bool) -> Callable[[Moment], Touch]:
        ring, find = self._rings[access.ring], counter(access.instance)
        touches = self._touches

        def touch(moment: Moment) -> Touch:
            instance = find(moment)
            key = (ring.name, instance, lenient)
            found = touches.get(key)
            if found is None:
                start = ring.offset_bytes + instance % ring.depth * ring.bytes
                found = touches[key] = Touch(ring.memory, start, start + ring.bytes, ring.name, instance, lenient)
            return found

        return touch

    def _signal(self, execute: lower.Execute) -> Callable[[Moment], tuple[int, int]] | None:
        if execute.completes is None:
            return None
        place = self._barrier(execute.completes)
        count = self._bytes(execute)
        return lambda moment: (place(moment)[0], count)

    def _bytes(self, execute: lower.Execute) -> int:
        """Return the bytes that a copy moves: those of the tile, which may be fewer than a ring sets aside."""
        loads = [self._ops[name] for name in execute.members if name in self._ops]
        tiles = [op.results[0].type for op in loads if op.opcode in LOADS and op.results]
        return sum(map(tile_bytes, tiles or [self._rings[access.ring].tile for access in execute.writes]))

    def _barrier(self, use: lower.BarrierUse) -> Callable[[Moment], tuple[int, int]]:
        """Return what gives the index of a barrier copy and its phase."""
        first, copies, find = self._first[use.barrier], self._scopes[use.barrier].copies, counter(use.instance)

        def place(moment: Moment) -> tuple[int, int]:
            instance = find(moment)
            return first + instance % copies, instance // copies

        return place


def barrier_copies(program: lower.WarpProgram) -> tuple[BarrierCopy, ...]:
    """Return every mbarrier of a program, copies of one barrier in order."""
    return tuple(
        BarrierCopy(
            name=barrier.name, copy=copy, copies=barrier.copies, arrivals=barrier.arrivals, serves=barrier.serves
        )
        for barrier in program.barriers
        for copy in range(barrier.copies)
    )


def moments(trips: Sequence[int], first: Moment = START) -> Iterator[Moment]:
    """Yield the moment at which each tile begins."""
    base = first.base
    for tile, count in enumerate(trips):
        yield Moment(first.tile + tile, base, count)
        base += count


def number(iteration: lower.Iteration, moment: Moment) -> int:
    """Return the iteration of the tile that is meant."""
    if iteration.anchor == "loop":
        return moment.t + iteration.offset
    return iteration.offset + (moment.trips if iteration.anchor == "last" else 0)


def counter(instance: lower.Instance) -> Callable[[Moment], int]:
    """Return what gives the number of an instance."""
    at, lag = instance.iteration, instance.lag
    if instance.scope == "tile" or at is None:
        return lambda moment: moment.tile - lag
    offset = at.offset - lag
    if at.anchor == "loop":
        return lambda moment: moment.base + moment.t + offset
    if at.anchor == "last":
        return lambda moment: moment.base + moment.trips + offset
    return lambda moment: moment.base + offset


def labeller(group: str, text: str, source: str, at: lower.Iteration | None) -> Callable[[Moment], Label]:
    """Return what labels the steps of one instruction."""
    if at is None:
        return lambda moment: Label(group, text, source, moment.tile, None)
    return lambda moment: Label(group, text, source, moment.tile, number(at, moment))


def sources(program: lower.WarpProgram) -> dict[str, str]:
    """Return the source line of every op and of every value of the kernel."""
    kernel = program.kernel
    ops = [*kernel.before, *kernel.loop.body, *kernel.after]
    found = {result.name: op.source for op in ops for result in op.results}
    return found | {op.name: op.source for op in ops}
