"""Which register values an instruction touches while an engine may still be writing them (``wgmma``)."""

from __future__ import annotations

from collections.abc import Sequence

from twillgpu.emulate.naming import Names
from twillgpu.emulate.steps import Cell
from twillgpu.frontend.kernel import Kernel, KernelOp
from twillgpu.lower.record import Execute, GroupProgram, Instruction

ACCUMULATOR = {"ttng.warp_group_dot": 2}
"""Operand that a product may take while the product before it is under way: the engine keeps their order."""


class RegisterUse:
    """The values that asynchronous ops of one group leave in its registers, and who touches them.

    Only these are followed: all other values are there when the next instruction starts.
    """

    def __init__(self, kernel: Kernel, group: GroupProgram) -> None:
        self._kernel = kernel
        ops = (*kernel.before, *kernel.loop.body, *kernel.after)
        self._ops = {op.name: op for op in ops}
        self._names = Names(kernel)
        self._written = {name for one in _instructions(group) for name in self.gives(one)}
        self._reach = self._written | self._carriers()

    def gives(self, instruction: Instruction) -> tuple[str, ...]:
        """Return the register values that an instruction leaves to an engine."""
        if not isinstance(instruction, Execute) or instruction.engine != "wgmma":
            return ()
        results = [result for op in self._members(instruction) for result in op.results]
        return tuple(result.name for result in results if result.type.space == "registers")

    def uses(self, execute: Execute) -> tuple[str, ...]:
        """Return the values that an instruction touches and an engine may be writing."""
        inner = {result.name for op in self._members(execute) for result in op.results}
        names = [
            name
            for op in self._members(execute)
            for place, name in enumerate(op.operands)
            if execute.engine != "wgmma" or ACCUMULATOR.get(op.opcode) != place
        ]
        return self.pending(tuple(dict.fromkeys(name for name in names if name not in inner)))

    def pending(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return those of ``names`` that can stand for a value that an engine writes."""
        return tuple(name for name in names if name in self._reach)

    def cells(self, names: Sequence[str], iteration: int | None, base: int, trips: int) -> tuple[Cell, ...]:
        """Return the registers that names stand for in one iteration of a tile."""
        return tuple(self._cell(name, iteration, base, trips) for name in names)

    def _cell(self, name: str, iteration: int | None, base: int, trips: int) -> Cell:
        found, at = self._names.cell(name, iteration, trips)
        return found, None if at is None else base + at

    def _carriers(self) -> set[str]:
        """Return the carried values and results of the loop that may hold one of the values."""
        found: set[str] = set()
        while True:
            more = {
                name
                for carried in self._kernel.loop.carried
                if carried.yielded in self._written | found or carried.initial in self._written
                for name in (carried.argument.name, carried.result)
            }
            if more <= found:
                return found
            found |= more

    def _members(self, execute: Execute) -> list[KernelOp]:
        return [self._ops[name] for name in execute.members if name in self._ops]


def _instructions(group: GroupProgram) -> tuple[Instruction, ...]:
    return (*group.before, *group.prologue, *group.loop, *group.epilogue, *group.after)
