"""Variables of a group's pipelined loop: where each is made and read, and what must exist before the loop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from twillgpu.emit.frame import Frame
from twillgpu.emit.versions import Definition, Origin, age, index, origin
from twillgpu.frontend.kernel import KernelOp
from twillgpu.lower.record import Drain, Execute, Get, GroupProgram, Instruction, Put

STEP = 1000
"""Positions of the members of one instruction are this far from those of the next."""

_ELSEWHERE = frozenset({"smem", "tmem", "token", "descriptor", "none"})
_ROUNDS = 64
"""Steps after which the tensor core ops in flight at the end of a step must have settled."""


@dataclass(slots=True, kw_only=True)
class InFlight:
    """A wgmma result that was issued and not waited for.

    Attributes:
        value: the value.
        variable: the variable of its chain that holds it.
        absorbed: whether a later wgmma adds to it in place: then that one's value and variable hold both.
        tile: whether a wait for an absorbed one has given the variable the type of a tile again.
    """

    value: str
    variable: int = 0
    absorbed: bool = False
    tile: bool = False


@dataclass(slots=True, kw_only=True)
class LoopVariables:
    """What the loop of one group makes, reads and carries.

    Attributes:
        frame, group: what is looked at.
        defined: where the loop makes each value, the last place where it makes it in several.
        all_made: every place where it makes it: index tiles are computed anew in each of their readers.
        places: position in the body of each instruction, by what it does.
        last: last variable of the chain of each value made in the loop.
        behind: the most steps that lie between where a value is made and a reader of it.
        entering: (value, variable) that a step reads before it makes it.
        flight: wgmma results in flight at the start of a step of the steady state, oldest first.
    """

    frame: Frame
    group: GroupProgram
    defined: dict[str, Definition] = field(default_factory=dict)
    all_made: dict[str, list[Definition]] = field(default_factory=dict)
    places: dict[object, int] = field(default_factory=dict)
    last: dict[str, int] = field(default_factory=dict)
    behind: dict[str, int] = field(default_factory=dict)
    entering: set[tuple[str, int]] = field(default_factory=set)
    flight: list[InFlight] = field(default_factory=list)

    def __post_init__(self) -> None:
        for number, instruction in enumerate(self.group.loop):
            self.places.setdefault(identity(instruction), number * STEP)
            for at, value in self._made(instruction, number * STEP):
                made = Definition(position=at, stage=stage_of(instruction))
                self.defined[value] = made
                self.all_made.setdefault(value, []).append(made)
        for number, instruction in enumerate(self.group.loop):
            for at, value in self.reads(instruction, number * STEP):
                self._note(value, at, stage_of(instruction))
        self._settle_flight()

    def reads(self, instruction: Instruction, position: int) -> Iterator[tuple[int, str]]:
        """Yield (position, value) of the register values and scalars that an instruction reads."""
        if isinstance(instruction, Put):
            yield from ((position, leaf) for leaf in self.leaves(instruction.value))
        if not isinstance(instruction, Execute):
            return
        for at, member in enumerate(instruction.members):
            op = self.frame.op_named(member)
            if not self.frame.inline(op):
                yield from ((position + at, leaf) for operand in op.operands for leaf in self.leaves(operand))

    def leaves(self, value: str) -> Iterator[str]:
        """Yield the values that have variables and that the expression of ``value`` is made of."""
        if self.frame.types[value].space in _ELSEWHERE:
            return
        maker = self.frame.makers.get(value)
        if maker is not None and self.frame.inline(maker):
            for operand in maker.operands:
                yield from self.leaves(operand)
        else:
            yield value

    def source(self, value: str) -> Origin:
        """Return the value of the body, or from before the loop, that a name stands for."""
        return origin(value, self.frame.program.kernel.loop)

    def initial(self, value: str, variable: int) -> str | None:
        """Return the value that a variable of a chain starts with, ``None`` where any will do."""
        steps = variable + 1
        for carried in self.frame.program.kernel.loop.carried:
            found = self.source(carried.argument.name)
            if found.value == value and found.distance >= steps:
                return found.initial[found.distance - steps]
        return None

    def made(self, instruction: Instruction) -> tuple[str, ...]:
        """Return the values that an instruction makes."""
        return tuple(value for _, value in self._made(instruction, 0))

    def _made(self, instruction: Instruction, position: int) -> Iterator[tuple[int, str]]:
        if isinstance(instruction, Get):
            yield position, instruction.value
        if isinstance(instruction, Execute):
            for at, member in enumerate(instruction.members):
                op = self.frame.op_named(member)
                for result in () if self.frame.inline(op) else op.results:
                    if result.type.space not in _ELSEWHERE:
                        yield position + at, result.name

    def _note(self, value: str, position: int, stage: int) -> None:
        found = self.source(value)
        definition = self.defined.get(found.value)
        if definition is None or self.beside(found.value, position):
            return
        steps = age(stage, found.distance, definition)
        if steps > 0 and self.recomputed(found.value):
            return
        self.behind[found.value] = max(self.behind.get(found.value, 0), steps)
        self._read(found.value, index(steps, position, definition), position)

    def beside(self, value: str, position: int) -> bool:
        """Return whether the instruction that reads a value has made it itself."""
        made = self.all_made.get(value, [])
        return any(one.position // STEP == position // STEP and one.position < position for one in made)

    def recomputed(self, value: str) -> bool:
        """Return whether a value is a scalar that only depends on the number of the iteration: a reader in a later
        step computes it anew, which is cheaper than a register that lives on.
        """
        if self.frame.types[value].shape or value in self._arguments():
            return False
        maker = self.frame.makers.get(value)
        inside = {op.name for op in self.frame.program.kernel.loop.body}
        if maker is None or maker.name not in inside:
            return True
        return maker.opcode.startswith("arith.") and all(self.recomputed(operand) for operand in maker.operands)

    def _arguments(self) -> set[str]:
        return {one.argument.name for one in self.frame.program.kernel.loop.carried}

    def _read(self, value: str, at: int, position: int) -> None:
        """Note that variable ``at`` of a chain is read; what it held when the step began had to be there."""
        self.last[value] = max(self.last.get(value, 0), at)
        after = position > self.defined[value].position
        self.entering.update((value, before) for before in range(at if after else at + 1))

    def _settle_flight(self) -> None:
        for _ in range(_ROUNDS):
            before = [replace(one) for one in self.flight]
            for number, instruction in enumerate(self.group.loop):
                for one in advance(self.flight, instruction, self.frame):
                    self._read(one.value, one.variable, number * STEP)
            if before == self.flight:
                break
        for one in self.flight:
            self.entering.add((one.value, one.variable))
            self.last[one.value] = max(self.last.get(one.value, 0), one.variable)


def advance(flight: list[InFlight], instruction: Instruction, frame: Frame) -> list[InFlight]:
    """Follow the wgmma results in flight through one instruction; return those that it waits for, oldest first."""
    if isinstance(instruction, Execute) and instruction.engine == "wgmma":
        value, added_to = accumulator(instruction, frame), _added_to(instruction, frame)
        for one in flight:
            if one.value == value == added_to.value:
                one.absorbed = True
            elif one.value == added_to.value and not added_to.distance:
                one.value, one.variable, one.absorbed = value, 0, True
            elif one.value == value:
                one.variable += 1
        flight.append(InFlight(value=value))
    if not isinstance(instruction, Drain) or instruction.engine != "wgmma":
        return []
    done = flight[: max(0, len(flight) - instruction.pending)]
    del flight[: len(done)]
    for one in done:
        for other in flight:
            other.tile |= one.absorbed and other.value == one.value and not other.absorbed
    return done


def _added_to(instruction: Execute, frame: Frame) -> Origin:
    """Return what a wgmma adds to: its own result of the iteration before, another's of its own iteration, ..."""
    op = frame.op_named(instruction.members[-1])
    return origin(op.operands[2], frame.program.kernel.loop)


def accumulator(instruction: Execute, frame: Frame) -> str:
    """Return the value that a wgmma makes."""
    return frame.op_named(instruction.members[-1]).results[0].name


def stage_of(instruction: Instruction) -> int:
    """Return the local stage of an instruction of the loop (0 for one that belongs to no iteration)."""
    iteration = instruction.iteration if isinstance(instruction, Execute | Put | Get) else None
    return 0 if iteration is None else -iteration.offset


def identity(instruction: Instruction) -> object:
    """Return what is the same in the copies of an instruction in prologue, loop and epilogue."""
    if isinstance(instruction, Execute):
        return ("execute", instruction.op, instruction.members)
    if isinstance(instruction, Put | Get):
        return (type(instruction).__name__, instruction.value, instruction.access.ring)
    return None


def members_of(instruction: Execute, frame: Frame) -> tuple[KernelOp, ...]:
    """Return the kernel ops that an instruction runs."""
    return tuple(frame.op_named(member) for member in instruction.members)
