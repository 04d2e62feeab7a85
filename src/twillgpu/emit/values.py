"""Expressions of values where they are read: made in an earlier step, from before the loop, or the loop's counter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from twillgpu.emit.counting import iteration_text
from twillgpu.emit.expressions import Writing, pure
from twillgpu.emit.frame import Frame
from twillgpu.emit.loop_variables import LoopVariables, identity, stage_of
from twillgpu.emit.terms import Term
from twillgpu.emit.versions import Definition, age, index, variable
from twillgpu.errors import UnsupportedError
from twillgpu.frontend.kernel import KernelOp
from twillgpu.lower.record import Execute, Get, Iteration, Put


@dataclass(slots=True, kw_only=True)
class Values:
    """Resolves the values that one group reads.

    ``left_out``: how often the prologue so far has not made a value, since its iteration does not exist.
    """

    frame: Frame
    variables: LoopVariables
    left_out: Counter[str] = field(default_factory=Counter)

    def leave_out(self, values: Iterable[str]) -> None:
        """Note that a step has not made values: readers of earlier ones count steps, but chains did not move."""
        self.left_out.update(values)

    def writing(self, iteration: Iteration | None, position: int, stage: int) -> Writing:
        """Return what resolves the values read at one place."""
        return Writing(
            layouts=self.frame.layouts,
            types=self.frame.types,
            term=lambda value: self.term(value, iteration, position, stage),
            beside=lambda value: self.frame.makers.get(value) if self.variables.beside(value, position) else None,
        )

    def term(  # noqa: PLR0911  # one return for each place that a value may come from
        self, value: str, iteration: Iteration | None, position: int, stage: int
    ) -> Term:
        """Return a value as a reader in ``iteration`` at ``position``, of local stage ``stage``, writes it."""
        loop = self.frame.program.kernel.loop
        maker = self.frame.makers.get(value)
        if maker is not None and self.frame.inline(maker):
            return self.written(maker, self.writing(iteration, position, stage))
        if iteration is None:
            return self.outside(value)
        if value == loop.induction.name:
            return self.induction(iteration)
        found_at = self.variables.source(value)
        definition = self.variables.defined.get(found_at.value)
        if definition is None:
            return self.invariant(value, iteration, position, stage)
        if not found_at.distance and self.variables.beside(value, position):
            return Term(text=self.frame.names.name(value), shape=self.frame.types[value].shape)
        steps = age(stage, found_at.distance, definition)
        if steps > 0 and maker is not None and not found_at.distance and self.variables.recomputed(value):
            return self.written(maker, self.writing(iteration, position, stage))
        at = index(steps, position, definition) - unmade(iteration, position, stage, definition)
        if iteration.anchor == "first":
            at -= self.left_out[found_at.value]
        name = variable(self.frame.names.name(found_at.value), at)
        return Term(text=name, shape=self.frame.types[value].shape)

    def written(self, op: KernelOp, writing: Writing) -> Term:
        """Return the expression of an op that is written where it is read."""
        if op.name in self.frame.dropped:
            return writing.term(op.operands[0])
        found = pure(op, writing)
        if found is None:
            raise UnsupportedError(op.source or op.name, f"{op.opcode} has no Gluon form", "report it")
        return found

    def invariant(self, value: str, iteration: Iteration, position: int, stage: int) -> Term:
        """Return a value that no step of this loop makes; one that differs only in the first iterations is chosen by
        the number of the iteration.
        """
        found = self.variables.source(value)
        inner = self.writing(None, position, stage)
        if not found.distance:
            return self.outside(value)
        if found.distance > 1:
            raise UnsupportedError(value, "a constant that the loop hands on for several iterations", "peel the loop")
        first, later = inner.term(found.initial[0]).text, inner.term(found.value).text
        number = iteration_text(iteration)
        if (first, later) == ("False", "True"):
            return Term(text="False" if number == "0" else "True" if number.isdigit() else f"({number} > 0)")
        return Term(text=f"gl.where({number} > 0, {later}, {first})", shape=self.frame.types[value].shape)

    def outside(self, value: str) -> Term:
        """Return a value from before the loop, or what the loop leaves behind."""
        maker = self.frame.makers.get(value)
        if maker is not None and self.frame.inline(maker):
            return self.written(maker, self.writing(None, 0, 0))
        for carried in self.frame.program.kernel.loop.carried:
            if carried.result == value and carried.yielded in self.variables.defined:
                return Term(text=self.frame.names.name(carried.yielded), shape=self.frame.types[value].shape)
        return Term(text=self.frame.names.name(value), shape=self.frame.types[value].shape)

    def induction(self, iteration: Iteration) -> Term:
        """Return the loop's induction variable in one iteration."""
        loop = self.frame.program.kernel.loop
        lower, step, number = self.outside(loop.lower).text, self.outside(loop.step).text, iteration_text(iteration)
        count = number if number.isidentifier() or number.isdigit() else f"({number})"
        scaled = count if step == "1" else f"{count} * {step}"
        return Term(text=f"({scaled})" if lower == "0" else f"({lower} + {scaled})")


def unmade(iteration: Iteration, position: int, stage: int, definition: Definition) -> int:
    """Return how many steps of the epilogue, up to a reader's place, have not made a value anew: its chain did not
    move in them. Step e of the epilogue has the ops of stages above e.
    """
    if iteration.anchor != "last":
        return 0
    step = iteration.offset + stage
    past = position > definition.position and step >= definition.stage
    return max(0, step - definition.stage) + past


def stage_here(variables: LoopVariables, instruction: Execute | Put | Get) -> int:
    """Return the local stage of an instruction, also of its copies in prologue and epilogue."""
    for one in variables.group.loop:
        if identity(one) == identity(instruction):
            return stage_of(one)
    return 0
