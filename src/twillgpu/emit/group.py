"""The function of one warp group: its instructions as Gluon statements, in the order of the warp program."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from twillgpu.emit.actions import ACTIONS, Action
from twillgpu.emit.arrange import arranged
from twillgpu.emit.control import control
from twillgpu.emit.counting import iteration_text
from twillgpu.emit.entering import needed
from twillgpu.emit.expressions import Writing, bare, pure
from twillgpu.emit.frame import FIRST, Frame
from twillgpu.emit.loop_variables import InFlight, LoopVariables, advance, identity, stage_of
from twillgpu.emit.peeling import apart, peels
from twillgpu.emit.preamble import WORD
from twillgpu.emit.record import Form
from twillgpu.emit.skipping import moved_on, turned_back
from twillgpu.emit.sliced import SliceWriter
from twillgpu.emit.slices import Slicing, slicings
from twillgpu.emit.terms import Term, full, name_of_zero
from twillgpu.emit.values import Values, stage_here
from twillgpu.emit.versions import moves, variable
from twillgpu.errors import UnsupportedError
from twillgpu.frontend.kernel import KernelOp
from twillgpu.lower.record import (
    Arrive,
    Commit,
    Drain,
    Execute,
    ExpectBytes,
    Fence,
    Get,
    GroupProgram,
    Instruction,
    Iteration,
    Put,
    Wait,
)

INDENT = "    "
_QUIET = frozenset({"token", "none", "descriptor"})


@dataclass(slots=True, kw_only=True)
class GroupWriter:
    """Writes the body of one group's function; ``lines`` is what was written, without the function's indentation."""

    frame: Frame
    group: GroupProgram
    form: Form = field(default_factory=Form)
    lines: list[str] = field(default_factory=list)
    depth: int = 0
    variables: LoopVariables = field(init=False)
    flight: list[InFlight] = field(default_factory=list)
    entered: set[str] = field(default_factory=set)
    slices: SliceWriter = field(init=False)
    values: Values = field(init=False)
    said: str = ""
    moved: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.variables = LoopVariables(frame=self.frame, group=self.group)
        kept = {value for value, _ in self.needed()}
        slicing = slicings(self.frame, self.group, self.variables, kept)
        self.slices = SliceWriter(frame=self.frame, slicing=slicing)
        self.group = arranged(self.frame, self.group, slicing)
        self.variables = LoopVariables(frame=self.frame, group=self.group)
        self.values = Values(frame=self.frame, variables=self.variables)

    def write(self) -> list[str]:
        """Return the lines of the function's body."""
        self.region(self.group.before)
        if self.group.loop:
            self.trips()
            self.enter()
            if self.peeled():
                apart(self)
            else:
                if not self.rolled():
                    self.region(self.group.prologue, by_steps=True)
                    for text in turned_back(self.variables):
                        self.line(text)
                self.loop()
                self.region(self.group.epilogue)
        self.region(self.group.after)
        return self.lines or ["pass"]

    def line(self, text: str) -> None:
        """Write one line, behind the slices collected so far."""
        self.flush()
        self.lines.append(INDENT * self.depth + text)

    def place(self, op: KernelOp, iteration: Iteration | None) -> None:
        """Write where the user's kernel says what follows, unless that is where the line above comes from; and its
        iteration where that is not the step's own.
        """
        if not op.source:
            return
        number = iteration_text(iteration) if iteration is not None and self.group.stages > 1 else "t"
        said = f"# {op.source}" + (f", iteration {number}" if number != "t" else "")
        if said != self.said:
            self.line(said)
            self.said = said

    def flush(self) -> None:
        """Write the slices collected so far."""
        self.lines.extend(INDENT * self.depth + text for text in self.slices.flush())

    def trips(self) -> None:
        """Write the trip count, known only at run time."""
        loop = self.frame.program.kernel.loop
        bounds = [self.values.outside(name).text for name in (loop.lower, loop.upper, loop.step)]
        span = bounds[1] if bounds[0] == "0" else f"{bounds[1]} - {bounds[0]}"
        self.line(f"trips = gl.maximum(gl.cdiv({span}, {bounds[2]}), 0)")

    def enter(self) -> None:
        """Write what the variables hold before the first iteration."""
        for value, at in sorted(self.needed()):
            kind = self.frame.types[value]
            initial = self.variables.initial(value, at)
            name = variable(self.frame.names.name(value), at)
            self.entered.add(name)
            if initial is not None:
                self.line(f"{name} = {self.values.writing(None, 0, 0).tile(initial, '')}")
            elif kind.shape:
                self.line(f"{name} = {full('0', kind, value, self.frame.layouts)}")
            else:
                self.line(f"{name} = {name_of_zero(kind.dtype)}")

    def needed(self) -> set[tuple[str, int]]:
        """Return the variables that must exist before the prologue."""
        return needed(self.variables, rolled=self.rolled(), peeled=self.peeled())

    def leave_out(self, instruction: Instruction) -> None:
        """Note that the prologue leaves an instruction out."""
        self.values.leave_out(self.variables.made(instruction))

    def begin(self) -> None:
        """Note that nothing is left out."""
        self.values.left_out.clear()

    def peeled(self) -> bool:
        """Return whether prologue and epilogue are written without conditions."""
        return self.form.apart and not self.rolled() and peels(self.group)

    def loop(self) -> None:
        """Write the steady state."""
        first = 0 if self.rolled() else self.group.stages - 1
        entering = [replace(one) for one in self.variables.flight]
        for name in sorted(self.accumulators(entering) - self.flying()):
            self.line(f"{name} = warpgroup_mma_init({name})")
        for name in sorted(self.flying() - self.accumulators(entering)):
            self.line(f"{name} = warpgroup_mma_wait({len(self.flight)}, deps=[{name}])")
        self.line(f"for t in range({f'{first}, ' if first else ''}trips):")
        self.depth += 1
        self.flight = entering
        begun, self.frame.first = len(self.lines), self.frame.names.name(FIRST) if self.form.anew else "0"
        self.region(self.group.loop)
        if any(self.frame.first in WORD.findall(line) for line in self.lines[begun:]):
            self.lines.insert(begun, f"{INDENT * self.depth}{self.frame.first} = own(t * 0)")
        self.frame.first = "0"
        self.depth -= 1

    def region(self, instructions: Iterable[Instruction], *, by_steps: bool = False) -> None:
        """Write instructions in order, those that need iterations under one condition; ``by_steps``: chains of
        variables move on in the steps that are left out, too.
        """
        self.said = ""
        for least, some in itertools.groupby(instructions, key=lambda one: one.at_least):
            if least > 0:
                self.guarded(least, tuple(some), by_steps=by_steps)
            else:
                for instruction in some:
                    self.instruction(instruction)
                self.flush()

    def guarded(self, least: int, instructions: tuple[Instruction, ...], *, by_steps: bool) -> None:
        """Write instructions under a condition. Gluon gives a wgmma result in flight another type than a tile, and a
        variable must have one type on both ways: so what the block waits for is waited for before it, and what it
        leaves in flight is turned into an accumulator before it.
        """
        before, after = self.flying(), self.flying_after(instructions)
        gone = {self.accumulator(one) for one in self.flight} - after
        for name in sorted(gone):
            self.line(f"{name} = warpgroup_mma_wait(0, deps=[{name}])")
        self.flight = [one for one in self.flight if self.accumulator(one) not in gone]
        started = sorted(name for name in after - before if name in self.entered)
        for name in started:
            self.line(f"{name} = warpgroup_mma_init({name})")
        self.line(f"if trips >= {least}:")
        self.said = ""
        self.depth += 1
        for name in started:
            self.line(f"{name} = warpgroup_mma_wait(0, deps=[{name}])")
        written = len(self.lines)
        self.moved.clear()
        for instruction in instructions:
            self.instruction(instruction)
        self.flush()
        if len(self.lines) == written:
            self.line("pass")
        self.depth -= 1
        if by_steps and self.moved and least > 1:
            for text in moved_on(self.moved, started):
                self.line(text)

    def accumulator(self, one: InFlight) -> str:
        """Return the variable of a wgmma result in flight."""
        return variable(self.frame.names.name(one.value), one.variable)

    def flying(self) -> set[str]:
        """Return the variables that have the type of a wgmma result in flight."""
        return self.accumulators(self.flight)

    def accumulators(self, flight: Iterable[InFlight]) -> set[str]:
        """Return the variables of these wgmma results that have the type of one in flight."""
        return {self.accumulator(one) for one in flight if not one.absorbed and not one.tile}

    def flying_after(self, instructions: tuple[Instruction, ...]) -> set[str]:
        """Return the variables of the wgmma results in flight after these instructions."""
        flight = [replace(one) for one in self.flight]
        for instruction in instructions:
            advance(flight, instruction, self.frame)
        return self.accumulators(flight)

    def instruction(self, instruction: Instruction) -> None:
        """Write one instruction."""
        done = advance(self.flight, instruction, self.frame)
        if isinstance(instruction, Execute):
            self.execute(instruction)
        elif isinstance(instruction, Put | Get):
            self.hand_over(instruction)
        elif isinstance(instruction, Drain):
            self.drain(instruction, done)
        else:
            self.synchronise(instruction)

    def execute(self, instruction: Execute) -> None:
        """Write the kernel ops of one instruction, with a comment that points at the user's line."""
        position = self.variables.places.get(identity(instruction), 0)
        for at, member in enumerate(instruction.members):
            op = self.frame.op_named(member)
            if self.frame.inline(op) or op.opcode.startswith(("ttg.memdesc_", "ttng.tmem_subslice")):
                continue
            writing = self.values.writing(
                instruction.iteration, position + at, stage_here(self.variables, instruction)
            )
            cut = self.slices.cut(op) if instruction.engine == "simt" else None
            if cut is None or not self.slices.parts:
                self.place(op, instruction.iteration)
            if cut is not None:
                self.sliced(op, cut, instruction, writing)
                continue
            term = pure(op, writing)
            if term is not None:
                self.assign(op, term)
            else:
                self.act(op, instruction, writing)

    def sliced(self, op: KernelOp, cut: Slicing, instruction: Execute, writing: Writing) -> None:
        """Write an op on tiles that are cut in slices."""
        stored = instruction.writes[0].ring if instruction.writes else ""
        if not self.slices.fits(cut, stored):
            self.flush()
        action = Action(
            op=op, instruction=instruction, frame=self.frame, writing=writing, least=self.least(instruction)
        )
        if op.opcode == "ttng.tmem_load":
            self.slices.load(op, cut, action.memory(op.operands[0]), instruction.reads[0].ring)
        elif op.opcode == "tt.reduce":
            self.assign(op, self.slices.reduction(op, cut, writing))
        elif op.opcode in ("ttng.tmem_store", "ttg.local_store"):
            into, shared = int(op.opcode == "ttg.local_store"), op.opcode == "ttg.local_store"
            value = next(name for name in op.operands if self.slices.tile_of(name) is not None)
            self.slices.store(value, cut, action.memory(op.operands[into]), writing, shared=shared)
        elif op.opcode in ("ttng.tmem_alloc", "ttg.local_alloc"):
            memory = action.memory(op.results[0].name)
            self.slices.store(op.operands[0], cut, memory, writing, shared=op.opcode == "ttg.local_alloc")
        else:
            self.slices.elementwise(op, cut, writing)

    def act(self, op: KernelOp, instruction: Execute, writing: Writing) -> None:
        """Write an op that touches memory or another unit, or has regions."""
        if op.opcode.startswith("scf."):
            for text in control(op, self.frame, writing):
                self.line(text)
            return
        action = ACTIONS.get(op.opcode)
        if action is None:
            raise UnsupportedError(op.source or op.name, f"{op.opcode} has no Gluon form yet", "report it")
        done = action(
            Action(op=op, instruction=instruction, frame=self.frame, writing=writing, least=self.least(instruction))
        )
        for line in done.lines:
            self.line(line)
        if done.term is not None:
            self.assign(op, done.term)

    def assign(self, op: KernelOp, term: Term) -> None:
        """Write the assignment of an op's result, after the old value moved on in its chain."""
        value = next(result for result in op.results if result.type.space not in _QUIET)
        name = self.frame.names.name(value.name)
        if value.name in self.variables.defined:
            self.move_on(name, self.variables.last.get(value.name, 0))
        self.line(f"{name} = {bare(term.text)}")

    def move_on(self, name: str, last: int) -> None:
        """Write how the old values of a chain move on before its first variable is made again."""
        for target, source in moves(name, last):
            self.moved.append((target, source))
            self.line(f"{target} = {source}")

    def hand_over(self, instruction: Put | Get) -> None:
        """Write the copy of a register value to or from a ring."""
        copy = self.frame.copy(instruction.access, self.least(instruction))
        position = self.variables.places.get(identity(instruction), 0)
        kind = self.frame.types[instruction.value]
        if isinstance(instruction, Put):
            writing = self.values.writing(instruction.iteration, position, stage_here(self.variables, instruction))
            cut = self.slices.tile_of(instruction.value)
            if cut is not None:
                if not self.slices.fits(cut, instruction.access.ring):
                    self.flush()
                self.slices.store(instruction.value, cut, copy, writing, shared=True)
                return
            self.line(f"{copy}.store({writing.tile(instruction.value, instruction.value)})")
            return
        name = self.frame.names.name(instruction.value)
        self.move_on(name, self.variables.last.get(instruction.value, 0))
        self.line(f"{name} = {copy}.load({self.frame.layouts.name(kind.layout, instruction.value)})")

    def drain(self, instruction: Drain, done: list[InFlight]) -> None:
        """Write a wait for asynchronous work of this group."""
        if instruction.engine == "tma_store":
            self.line(f"tma.store_wait({instruction.pending})")
        elif instruction.engine == "cp_async":
            self.line(f"async_copy.wait_group({instruction.pending})")
        elif done:
            left = ", ".join(dict.fromkeys(self.accumulator(one) for one in done))
            self.line(f"{left} = warpgroup_mma_wait({instruction.pending}, deps=[{left}])")

    def synchronise(self, instruction: Wait | Arrive | ExpectBytes | Commit | Fence) -> None:
        """Write an operation on a barrier, or a fence."""
        if isinstance(instruction, Fence):
            if instruction.kind == "async_shared":
                self.line("fence_async_shared()")
            return
        bar, phase = self.frame.phase(instruction.use, self.least(instruction))
        if isinstance(instruction, Wait):
            self.line(f"mbarrier.wait({bar}, {phase})")
        elif isinstance(instruction, ExpectBytes):
            self.line(f"mbarrier.expect({bar}, {instruction.bytes})")
        elif isinstance(instruction, Commit):
            self.line(
                f"tcgen05_commit({bar})"
                if instruction.engine == "tcgen05"
                else f"async_copy.mbarrier_arrive({bar}, increment_count=False)"
            )
        else:
            self.line(f"mbarrier.arrive({bar}, count=1{self.switched(instruction)})")

    def switched(self, instruction: Arrive) -> str:
        """Return the condition of an arrival for an iteration that the first steps of a rolled loop do not have."""
        iteration = instruction.use.instance.iteration
        if iteration is None or iteration.anchor != "loop" or iteration.offset == 0 or not self.rolled():
            return ""
        return f", pred=t >= {-iteration.offset}"

    def least(self, instruction: Instruction) -> int:
        """Return the smallest ``t`` or ``trips`` there."""
        return max(
            instruction.at_least,
            self.group.stages - 1 if self.in_loop(instruction) and not self.rolled() else 0,
        )

    def rolled(self) -> bool:
        """Return whether the first steps only lack arrivals and waits for asynchronous work: then one loop from
        iteration 0 on does, with these arrivals switched off at first, and needs no code of its own before it.

        Where an iteration leaves a wgmma product in flight for the next one, the first one is written before the
        loop: the assembler serialises all wgmma of the code that Triton 3.6 makes of a loop that is entered without.
        """
        if self.group.stages < 2 or self.accumulators(self.variables.flight):
            return False
        return all(self._early(one) for one in self.group.loop)

    def _early(self, instruction: Instruction) -> bool:
        if isinstance(instruction, Execute | Put | Get):
            return stage_of(instruction) == 0
        if isinstance(instruction, Arrive | Drain | Fence):
            return True
        iteration = instruction.use.instance.iteration
        return iteration is None or iteration.offset == 0

    def in_loop(self, instruction: Instruction) -> bool:
        """Return whether an instruction is part of the steady state."""
        return instruction in self.group.loop
