"""Warp programs on numbers: the steps of each group with what they read and write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from twillgpu.emulate.call import Context, Value
from twillgpu.emulate.frame import Frame
from twillgpu.emulate.machine import Machine, Outcome
from twillgpu.emulate.memory import MemDesc
from twillgpu.emulate.ops import evaluate
from twillgpu.emulate.schedulers import Scheduler
from twillgpu.emulate.steps import Action, Block, Step, Touch, Work
from twillgpu.emulate.storage import Slot, Storage
from twillgpu.emulate.unroll import Moment, Unroller, moments, number
from twillgpu.frontend.kernel import KernelOp
from twillgpu.lower.record import Execute, Get, Instruction, Put


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """One tile of a block: its trip count, the kernel's arguments, and the program around it."""

    trips: int
    arguments: Mapping[str, Value]
    context: Context


@dataclass(frozen=True, slots=True, kw_only=True)
class NumericOutcome:
    """How a run on numbers ended, and the values that a group used without having them."""

    outcome: Outcome
    missing: tuple[str, ...]


def run_tiles(unroller: Unroller, tiles: Sequence[Tile], scheduler: Scheduler) -> NumericOutcome:
    """Run one block on several tiles; global memory of each tile's context is changed in place.

    Raises ``InputError`` and ``UnsupportedError`` as the reference does.
    """
    block = NumericBlock(unroller, tiles)
    outcome = Machine(block.block(), scheduler).run()
    missing = {f"group {group} uses {name}, which it does not have" for group, name in block.missing()}
    return NumericOutcome(outcome=outcome, missing=tuple(sorted(missing)))


class NumericBlock:
    """One block on numbers: its rings, and the registers of its groups."""

    def __init__(self, unroller: Unroller, tiles: Sequence[Tile]) -> None:
        self.unroller = unroller
        self.tiles = tiles
        self.storage = Storage(unroller.program)
        kernel = unroller.program.kernel
        self._ops = {op.name: op for op in (*kernel.before, *kernel.loop.body, *kernel.after)}
        self._frames: list[tuple[str, Frame]] = []

    def block(self) -> Block:
        """Return what the machine runs."""
        scripts = tuple(self._script(group) for group in range(len(self.unroller.groups)))
        return Block(groups=self.unroller.groups, barriers=self.unroller.barriers, scripts=scripts)

    def missing(self) -> Iterator[tuple[str, str]]:
        """Yield group and value for each value that a group used without having it."""
        return ((group, name) for group, frame in self._frames for name in frame.missing)

    def _script(self, group: int) -> Iterator[Step]:
        kernel = self.unroller.program.kernel
        for moment in moments([tile.trips for tile in self.tiles]):
            tile = self.tiles[moment.tile]
            frame = Frame(kernel, tile.arguments, tile.context, tile.trips)
            self._frames.append((self.unroller.groups[group], frame))
            for instruction, at, step in self.unroller.instructions(group, moment):
                yield self._with_action(instruction, at, step, frame)

    def _with_action(self, instruction: Instruction, moment: Moment, step: Step, frame: Frame) -> Step:
        if not isinstance(step, Work) or not isinstance(instruction, Execute | Put | Get):
            return step
        here = None if instruction.iteration is None else number(instruction.iteration, moment)
        if isinstance(instruction, Execute):
            members = [self._ops[name] for name in instruction.members]
            execution = Execution(self.storage, frame, members, here, step)
            return step._replace(action=Action(execution.read, execution.write))
        handover = Handover(self.storage, frame, instruction.value, here, step)
        action = handover.put if isinstance(instruction, Put) else handover.get
        return step._replace(action=Action(lambda: None, action))


class Handover:
    """A register value on its way through a ring."""

    def __init__(self, storage: Storage, frame: Frame, value: str, iteration: int | None, step: Work) -> None:
        self._storage, self._frame, self._value, self._iteration = storage, frame, value, iteration
        self._slot = _slot(storage, (*step.reads, *step.writes)[0])

    def put(self) -> None:
        """Store the value."""
        tile = self._storage.copy(self._slot)
        tile.store(self._frame.value(self._value, self._iteration))
        self._storage.fill(self._slot, tile)

    def get(self) -> None:
        """Load the value."""
        self._frame.define(self._value, self._iteration, self._storage.copy(self._slot).load())


class Execution:
    """Kernel ops that are run together: operands in memory are read first, results are written last."""

    def __init__(
        self, storage: Storage, frame: Frame, members: Sequence[KernelOp], iteration: int | None, step: Work
    ) -> None:
        self._storage, self._frame, self._members, self._iteration = storage, frame, members, iteration
        self._reads = {touch.ring: _slot(storage, touch) for touch in step.reads}
        self._writes = {touch.ring: _slot(storage, touch) for touch in step.writes}
        self._tiles: dict[str, MemDesc] = {}
        self._local: dict[str, Value] = {}

    def read(self) -> None:
        """Fetch what memory holds; what will only be written is poison from now on."""
        for ring, slot in {**self._writes, **self._reads}.items():
            if ring not in self._reads:
                self._storage.poison(slot)
            self._tiles[ring] = self._storage.copy(slot)

    def write(self) -> None:
        """Run the ops, and deliver what they give."""
        named = {name: tile for ring, tile in self._tiles.items() for name in self._storage.rings[ring].values}
        for op in self._members:
            self._run(op, named)
        for ring, slot in self._writes.items():
            self._store_registers(ring)
            self._storage.fill(slot, self._tiles[ring])
        for name, value in self._local.items():
            self._frame.define(name, self._iteration, value)

    def _run(self, op: KernelOp, named: dict[str, MemDesc]) -> None:
        results = [result.name for result in op.results]
        tile = next((named[name] for name in results if name in named and self._in_memory(name)), None)
        operands = [self._operand(name, named) for name in op.operands]
        if tile is not None:
            stored = [value for value in operands if value is not None]
            if stored:
                tile.store(stored[0])
            return
        if any(self._in_memory(name) for name in results):
            return
        found = evaluate(op, operands, self._frame.context)
        self._local.update(zip(results, found, strict=True))

    def _operand(self, name: str, named: dict[str, MemDesc]) -> Value:
        kind = self._frame.type_of(name)
        if kind.space == "token":
            return None
        if kind.space in ("smem", "tmem"):
            return self._frame.view(name, self._iteration, named)
        if name in self._local:
            return self._local[name]
        if name in named:
            return named[name].load()
        return self._frame.value(name, self._iteration)

    def _store_registers(self, ring: str) -> None:
        """Store a loaded tile whose ring is named by the register value that it becomes."""
        for name in self._storage.rings[ring].values:
            if name in self._local and not self._in_memory(name):
                self._tiles[ring].store(self._local[name])

    def _in_memory(self, name: str) -> bool:
        return self._frame.type_of(name).space in ("smem", "tmem")


def _slot(storage: Storage, touch: Touch) -> Slot:
    return storage.slot(touch.ring, touch.instance)
