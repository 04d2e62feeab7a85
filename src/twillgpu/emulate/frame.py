"""The registers of one group for one tile, and what a name means there."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from twillgpu.emulate.call import Context, Value
from twillgpu.emulate.memory import MemDesc
from twillgpu.emulate.naming import Names
from twillgpu.emulate.numbers import format_of, poison
from twillgpu.emulate.ops import evaluate
from twillgpu.emulate.steps import Cell
from twillgpu.frontend.kernel import Kernel, KernelOp, TileType

KEPT = 8
"""Iterations after which a register value is forgotten; more than any program has stages."""


class Frame:
    """Values that a group holds while it works on one tile."""

    def __init__(self, kernel: Kernel, arguments: Mapping[str, Value], context: Context, trips: int) -> None:
        self.kernel = kernel
        self.context = context
        self.trips = trips
        self.missing: dict[str, None] = {}
        self._names = Names(kernel)
        self._values: dict[Cell, Value] = {(name, None): value for name, value in arguments.items()}
        self._makers = {
            result.name: op for op in (*kernel.before, *kernel.loop.body, *kernel.after) for result in op.results
        }

    def type_of(self, name: str) -> TileType:
        """Return the type of a value."""
        return self.context.types[name]

    def cell(self, name: str, iteration: int | None) -> Cell:
        """Return the result, and its iteration, that a name stands for."""
        return self._names.cell(name, iteration, self.trips)

    def define(self, name: str, iteration: int | None, value: Value) -> None:
        """Give a register its value."""
        self._values[self.cell(name, iteration)] = value
        if iteration is not None and iteration >= KEPT:
            self._values = {
                cell: kept for cell, kept in self._values.items() if cell[1] is None or cell[1] > iteration - KEPT
            }

    def value(self, name: str, iteration: int | None) -> Value:
        """Return a register value or a scalar; poison where the group does not have it, which is noted."""
        found, at = self.cell(name, iteration)
        if found == self.kernel.loop.induction.name and at is not None:
            return self._induction(at)
        if (found, at) not in self._values:
            self.missing[found] = None
            return _poisoned(self.type_of(found))
        return self._values[found, at]

    def view(self, name: str, iteration: int | None, tiles: Mapping[str, MemDesc]) -> MemDesc | None:
        """Return the tile in SMEM or TMEM that a name stands for, made from ``tiles`` (by value); ``None`` where it
        is no view of any of them.
        """
        found, at = self.cell(name, iteration)
        if found in tiles:
            return tiles[found]
        op = self._makers.get(found)
        if op is None or not op.operands:
            return None
        base = self.view(op.operands[0], at, tiles) if self._in_memory(op.operands[0]) else None
        if base is None:
            return None
        values = [base, *(self.value(operand, at) for operand in op.operands[1:] if not self._is_token(operand))]
        return self._viewed(op, values)

    def _viewed(self, op: KernelOp, values: list[Value]) -> MemDesc:
        given = iter(values)
        operands = [None if self._is_token(name) else next(given) for name in op.operands]
        found: MemDesc = evaluate(op, operands, self.context)[0]
        return found

    def _induction(self, iteration: int) -> Value:
        loop = self.kernel.loop
        lower, step = self.value(loop.lower, None), self.value(loop.step, None)
        return np.asarray(lower + step * iteration, np.asarray(lower).dtype)[()]

    def _in_memory(self, name: str) -> bool:
        return self.type_of(name).space in ("smem", "tmem")

    def _is_token(self, name: str) -> bool:
        return self.type_of(name).space == "token"


def _poisoned(kind: TileType) -> Value:
    return format_of(kind.dtype).decode(poison(kind.shape, kind.dtype))[()]
