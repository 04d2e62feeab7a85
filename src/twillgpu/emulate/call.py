"""One execution of one op: what a rule of the ``ops_*`` files is given, and how it reads attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from twillgpu.emulate.memory import GlobalMemory
from twillgpu.emulate.numbers import rounded
from twillgpu.errors import UnsupportedError
from twillgpu.frontend.kernel import KernelOp, TileType
from twillgpu.frontend.layouts import integers

Value: TypeAlias = Any
"""What an SSA value is while a program runs: a numpy array or scalar in the carrier type of its element type (byte
addresses for pointers), a ``MemDesc`` in SMEM or TMEM, a ``Descriptor``, ``None`` for a token.
"""

Rule: TypeAlias = Callable[["Call"], Value]
"""Meaning of an opcode: one value, a tuple for several results, anything for none. It has no state and no control
flow of the program; it changes only the memory that it is handed.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What ops know of the program they run in.

    Attributes:
        types: type of every value of the kernel, by name; an emulator adds those of values that it makes.
        memory: global memory.
        program: place of this block in the grid.
        grid: extents of the grid.
    """

    types: Mapping[str, TileType]
    memory: GlobalMemory
    program: tuple[int, int, int] = (0, 0, 0)
    grid: tuple[int, int, int] = (1, 1, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """An op with the values that it reads, tokens left out.

    Attributes:
        op: the op.
        values: values of its operands that are no tokens.
        types: their types.
        results: types of its results that are no tokens.
        context: the program.
    """

    op: KernelOp
    values: tuple[Value, ...]
    types: tuple[TileType, ...]
    results: tuple[TileType, ...]
    context: Context

    @property
    def result(self) -> TileType:
        """Type of the first result."""
        return self.results[0]

    def integer(self, key: str, default: int | None = None) -> int:
        """Return an integer attribute such as ``2 : i64``; ``true`` is 1.

        Raises ``UnsupportedError`` where it is missing and there is no default.
        """
        text = self.op.attribute(key)
        if text is None and default is not None:
            return default
        if text in ("true", "unit"):
            return 1
        if text == "false":
            return 0
        found = integers(text or "")
        if not found:
            raise self.unsupported(f"it has no integer attribute {key}")
        return found[0]

    def list(self, key: str) -> tuple[int, ...]:
        """Return a list attribute such as ``array<i32: 1, 0>``, empty where it is missing."""
        _, _, items = (self.op.attribute(key) or "").partition(":")
        return integers(items)

    def segments(self) -> tuple[tuple[Value, ...], ...]:
        """Return the values by operand segment (``operandSegmentSizes``), tokens left out."""
        sizes = self.list("operandSegmentSizes")
        tokens = [self.context.types[name].space == "token" for name in self.op.operands]
        found, place, kept = [], 0, iter(self.values)
        for size in sizes:
            found.append(tuple(next(kept) for token in tokens[place : place + size] if not token))
            place += size
        return tuple(found)

    def optional(self, segment: int, default: Value = None) -> Value:
        """Return the value of an operand segment that has at most one, ``default`` where it has none.

        Ops without ``operandSegmentSizes`` have their operands in order.
        """
        if self.op.attribute("operandSegmentSizes") is None:
            return self.values[segment] if segment < len(self.values) else default
        found = self.segments()
        return found[segment][0] if segment < len(found) and found[segment] else default

    def rounded(self, values: Value) -> Value:
        """Return ``values`` rounded to the first result's element type."""
        return rounded(values, self.result.dtype)

    def unsupported(self, why: str) -> UnsupportedError:
        """Return the error for an op that cannot be run, with its source line."""
        op = self.op
        return UnsupportedError(
            op.source or f"op {op.name}",
            f"{op.opcode} at {op.name} cannot be run on numbers: {why}",
            "rewrite the op, or report this if Triton's own ops make it",
        )
