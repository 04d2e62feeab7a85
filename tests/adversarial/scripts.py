"""A warp program as flat steps of every group, for given trip counts: what ``docs/programs.md`` says, word by word.

It shares no code with ``twillgpu.emulate``. What is wrong without any interleaving (a register that a group does not
have, an effect that does not happen) is found here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from versions import EFFECTS, ONCE, VERSIONS, Meaning, Version
from versions import Sequence as Ordered

from twillgpu.frontend.kernel import KernelOp, TileType
from twillgpu.lower.record import (
    Access,
    Arrive,
    BarrierUse,
    Commit,
    Drain,
    Execute,
    ExpectBytes,
    Fence,
    Get,
    Instance,
    Instruction,
    Iteration,
    Put,
    Ring,
    Wait,
    WarpProgram,
)

SIMT, ASYNC, WAIT, ARRIVE, EXPECT, COMMIT, DRAIN, FENCE = range(8)
ENGINES = ("tma", "wgmma", "tcgen05", "cp_async", "tma_store")
"""Queues of a group, in the order of their numbers."""

Tag: TypeAlias = tuple[str, int | None, int]
"""Version and tile."""
Atoms: TypeAlias = tuple[int, ...]
Read: TypeAlias = tuple[Atoms, Tag | None]
Write: TypeAlias = tuple[Atoms, Tag]
Step: TypeAlias = tuple[int, ...] | tuple[object, ...]


@dataclass(slots=True)
class Script:
    """Steps of all groups for one block."""

    steps: list[list[tuple[object, ...]]]
    texts: list[list[str]]
    atoms: int
    tensor: frozenset[int]
    """Atoms in TMEM."""
    arrivals: list[int]
    static: list[str] = field(default_factory=list)
    """What is wrong in every interleaving."""


class Layout:
    """Bytes of both memories cut where any copy of any ring begins or ends."""

    def __init__(self, program: WarpProgram) -> None:
        self.rings = {ring.name: ring for ring in program.rings}
        self.count = 0
        tensor: list[int] = []
        self._atoms: dict[str, list[Atoms]] = {}
        for memory in ("smem", "tmem"):
            rings = [ring for ring in program.rings if ring.memory == memory]
            cuts = sorted({edge for ring in rings for span in self._spans(ring) for edge in span})
            places = {cut: self.count + number for number, cut in enumerate(cuts)}
            for ring in rings:
                self._atoms[ring.name] = [tuple(range(places[a], places[b])) for a, b in self._spans(ring)]
            if memory == "tmem":
                tensor += range(self.count, self.count + len(cuts))
            self.count += len(cuts)
        self.tensor = frozenset(tensor)

    @staticmethod
    def _spans(ring: Ring) -> Iterator[tuple[int, int]]:
        for copy in range(ring.depth):
            start = ring.offset_bytes + copy * ring.bytes
            yield start, start + ring.bytes

    def copy(self, ring: str, instance: int) -> Atoms:
        """Return the atoms of an instance."""
        copies = self._atoms[ring]
        return copies[instance % len(copies)]


@dataclass(slots=True)
class Moment:
    """Where a group is in its work."""

    tile: int
    base: int
    trips: int
    step: int = 0

    def iteration(self, one: Iteration) -> int:
        """Return the number of an iteration of the tile."""
        return {"first": 0, "loop": self.step, "last": self.trips}[one.anchor] + one.offset

    def instance(self, one: Instance) -> int:
        """Return the number of an instance."""
        if one.scope == "tile" or one.iteration is None:
            return self.tile - one.lag
        return self.base + self.iteration(one.iteration) - one.lag


class Compiler:
    """Makes the script of a block."""

    def __init__(self, program: WarpProgram, trips: Sequence[int]) -> None:
        self.program, self.trips = program, trips
        self.meaning: Meaning = VERSIONS.meaning(program.kernel)
        self.layout = Layout(program)
        self.barriers: dict[str, tuple[int, int]] = {}
        arrivals: list[int] = []
        for barrier in program.barriers:
            self.barriers[barrier.name] = (len(arrivals), barrier.copies)
            arrivals += [barrier.arrivals] * barrier.copies
        self.script = Script([], [], self.layout.count, self.layout.tensor, arrivals)
        self.effects: Counter[tuple[int, str, int | None]] = Counter()

    def compile(self) -> Script:
        """Return the script."""
        for group in self.program.groups:
            writer = _Group(self, len(self.script.steps))
            base = 0
            for tile, trips in enumerate(self.trips):
                moment = Moment(tile, base, trips)
                writer.tile(moment, (*group.before, *group.prologue))
                for step in range(group.stages - 1, trips):
                    moment.step = step
                    writer.run(group.loop, moment)
                writer.run((*group.epilogue, *group.after), moment)
                base += trips
            self.script.steps.append(writer.steps)
            self.script.texts.append(writer.texts)
        self._effects()
        return self.script

    def _effects(self) -> None:
        kernel = self.program.kernel
        for tile, trips in enumerate(self.trips):
            outside = [(op, None) for op in (*kernel.before, *kernel.after)]
            inside = [(op, at) for at in range(trips) for op in kernel.loop.body]
            for op, at in (*outside, *inside):
                found = self.effects[tile, op.name, at]
                if op.opcode in EFFECTS | ONCE and found == 0:
                    self.script.static.append(f"{op.name} of iteration {at} does not happen")
                if op.opcode in ONCE and found > 1:
                    self.script.static.append(f"{op.name} of iteration {at} happens {found} times")


class _Group:
    """Writes the steps of one group, and keeps what is in its registers."""

    def __init__(self, compiler: Compiler, number: int) -> None:
        self.compiler, self.number = compiler, number
        self.meaning, self.layout = compiler.meaning, compiler.layout
        self.static = compiler.script.static
        self.steps: list[tuple[object, ...]] = []
        self.texts: list[str] = []
        self.have: set[Version] = set()
        self.late: dict[Version, int] = {}
        """Results of wgmma that nothing has waited for, with the number of the op."""
        self.issued = 0
        self.ordered: Ordered

    def tile(self, moment: Moment, instructions: Sequence[Instruction]) -> None:
        """Begin a tile: registers of the one before are gone."""
        self.have, self.late = set(), {}
        self.ordered = VERSIONS.sequence(self.compiler.program.kernel, moment.trips)
        self.run(instructions, moment)

    def run(self, instructions: Sequence[Instruction], moment: Moment) -> None:
        """Write the steps of instructions."""
        for one in instructions:
            if moment.trips >= one.at_least:
                for step in self._steps(one, moment):
                    self.steps.append(step)
                    self.texts.append(type(one).__name__)

    def _steps(  # noqa: C901  # one case for each instruction
        self, one: Instruction, moment: Moment
    ) -> Iterator[tuple[object, ...]]:
        match one:
            case Execute():
                yield from self._execute(one, moment)
            case Put():
                yield from self._put(one, moment)
            case Get():
                yield from self._get(one, moment)
            case Wait():
                yield (WAIT, *self._barrier(one.use, moment))
            case Arrive():
                yield (ARRIVE, self._barrier(one.use, moment)[0])
            case ExpectBytes():
                yield (EXPECT, self._barrier(one.use, moment)[0], one.bytes)
            case Commit():
                yield (COMMIT, ENGINES.index(one.engine), self._barrier(one.use, moment)[0])
            case Drain():
                if one.engine == "wgmma":
                    limit = self.issued - one.pending
                    self.late = {value: number for value, number in self.late.items() if number > limit}
                yield (DRAIN, ENGINES.index(one.engine), one.pending, one.reads_only)
            case Fence():
                yield (FENCE, one.kind == "tmem_store")

    def _barrier(self, use: BarrierUse, moment: Moment) -> tuple[int, int]:
        first, copies = self.compiler.barriers[use.barrier]
        number = moment.instance(use.instance)
        return first + number % copies, number // copies

    def _atoms(self, access: Access, moment: Moment) -> Atoms:
        return self.layout.copy(access.ring, moment.instance(access.instance))

    def _need(self, name: str, at: int | None, moment: Moment, what: str, *, accumulator: bool = False) -> None:
        value = self.meaning.resolve(name, at, moment.trips)
        if value is None:
            return
        if value not in self.have:
            self.static.append(f"{what} of iteration {at} needs {value}, which its group does not have")
        elif value in self.late and not accumulator:
            self.static.append(f"{what} of iteration {at} uses {value} while wgmma may still write it")

    def _put(self, one: Put, moment: Moment) -> Iterator[tuple[object, ...]]:
        at = None if one.iteration is None else moment.iteration(one.iteration)
        self._need(one.value, at, moment, f"put {one.value}")
        yield (SIMT, (), ((self._atoms(one.access, moment), self._value(one.value, at, moment)),))

    def _get(self, one: Get, moment: Moment) -> Iterator[tuple[object, ...]]:
        at = None if one.iteration is None else moment.iteration(one.iteration)
        yield (SIMT, ((self._atoms(one.access, moment), self._value(one.value, at, moment)),), ())
        value = self.meaning.resolve(one.value, at, moment.trips)
        if value is not None:
            self.have.add(value)

    def _value(self, name: str, at: int | None, moment: Moment) -> Tag:
        value = self.meaning.resolve(name, at, moment.trips)
        found = value or (name, None)
        return (f"value {found[0]}", found[1], moment.tile)

    def _execute(self, one: Execute, moment: Moment) -> Iterator[tuple[object, ...]]:
        at = None if one.iteration is None else moment.iteration(one.iteration)
        rings = self.layout.rings
        reads = {value: access for access in one.reads for value in rings[access.ring].values}
        writes = {value: access for access in one.writes for value in rings[access.ring].values}
        touched: list[Read] = []
        written: list[Write] = []
        done: set[str] = set()
        asynchronous = one.engine == "wgmma"
        self.issued += asynchronous
        for name in one.members:
            op = self.meaning.ops[name]
            self.compiler.effects[moment.tile, name, at] += 1
            touched += self._staged(op, at, moment, reads)
            touched += self._buffers(op, at, moment, reads | writes, done)
            for root in self.meaning.writes(op):
                done.add(root)
                if root in writes:
                    written.append((self._atoms(writes[root], moment), (name, at, moment.tile)))
                else:
                    self.static.append(f"{name} writes {root}, which its instruction does not name")
            for result in op.results:
                if result.type.space in ("registers", "scalar", "global"):
                    value = (result.name, at)
                    self.have.add(value)
                    if asynchronous:
                        self.late[value] = self.issued
        if one.engine == "simt":
            yield (SIMT, tuple(touched), tuple(written))
        else:
            signal = None
            if one.completes is not None:
                signal = (self._barrier(one.completes, moment)[0], self._bytes(one))
            yield (ASYNC, ENGINES.index(one.engine), tuple(touched), tuple(written), signal)

    def _staged(self, op: KernelOp, at: int | None, moment: Moment, reads: dict[str, Access]) -> Iterator[Read]:
        """Check the registers that an op needs; yield those that it reads from a buffer."""
        for place, name in enumerate(self.meaning.registers(op)):
            if name in reads:
                yield self._atoms(reads[name], moment), self._value(name, at, moment)
            else:
                accumulator = op.opcode == "ttng.warp_group_dot" and name == op.operands[2]
                self._need(name, at, moment, f"{op.name} (operand {place})", accumulator=accumulator)

    def _buffers(
        self, op: KernelOp, at: int | None, moment: Moment, named: dict[str, Access], done: set[str]
    ) -> Iterator[Read]:
        for root, version in self.ordered.expected.get((op.name, at), {}).items():
            if root in done:
                continue
            if root not in named:
                self.static.append(f"{op.name} reads {root}, which its instruction does not name")
                continue
            tag = None if version is None else (*version, moment.tile)
            yield self._atoms(named[root], moment), tag

    def _bytes(self, one: Execute) -> int:
        ops = [self.meaning.ops[name] for name in one.members]
        loads = [op.results[0].type for op in ops if op.opcode in ("tt.descriptor_load", "tt.descriptor_gather")]
        return sum(map(_size, loads))


def _size(kind: TileType) -> int:
    elements = 1
    for size in kind.shape:
        elements *= size
    bits = int("".join(letter for letter in kind.dtype.split("E")[0] if letter.isdigit()) or "32")
    return elements * bits // 8
