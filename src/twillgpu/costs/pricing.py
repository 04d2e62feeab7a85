"""The price of one op: what the pricing rules produce and ``price`` turns into a ``PricedOp``."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from twillgpu.errors import InputError, nearest
from twillgpu.graph.record import Op, Use


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Cycles of one op, or of one of its machine ops.

    Attributes:
        uses: reservation table.
        issue_cycles: cycles for which the warps' instruction stream is busy.
        latency_cycles: cycles until the result may be used.
        asynchronous: a unit works on when the issue is over.
        signals: the hardware itself arrives on an mbarrier when the op has completed, so that another group
            may wait for it at no further cost.
        accumulates: a tensor core op, which adds to its own accumulator without waiting for the pipeline.
        handoff_cycles: hand-off that the graph gives, ``None`` where it follows from the value.
        worked: priced from the op's work, not given by a graph file.
    """

    uses: tuple[Use, ...] = ()
    issue_cycles: int = 0
    latency_cycles: int = 0
    asynchronous: bool = False
    signals: bool = False
    accumulates: bool = False
    handoff_cycles: int | None = None
    worked: bool = False

    @property
    def end_cycles(self) -> int:
        """End of the last use."""
        return max((use.offset + use.cycles for use in self.uses), default=0)


def given(op: Op) -> Price:
    """Return the price that a graph file gives; an op without cost and without work is free.

    Where the file does not say whether the op is asynchronous, it is so by the definition of
    ``docs/formulation.md``. It signals its completion if it is and if its value is in a memory.
    """
    if op.cost is None:
        return Price()
    found = Price(uses=op.cost.uses, issue_cycles=op.cost.issue_cycles, latency_cycles=op.cost.latency_cycles)
    stated = op.cost.asynchronous
    asynchronous = found.issue_cycles < found.end_cycles if stated is None else stated
    in_memory = op.result is not None and op.result.space != "registers"
    return replace(
        found,
        asynchronous=asynchronous,
        signals=asynchronous and in_memory,
        handoff_cycles=op.cost.handoff_cycles,
    )


def whole(cycles: float) -> int:
    """Round cycles (bytes, registers) up to an integer, forgiving errors of floating point."""
    return math.ceil(round(cycles, 6))


def at(op: Op) -> str:
    """Return the place of an op for messages: its name, with the source line where it is known."""
    return f"op {op.name} ({op.source})" if op.source else f"op {op.name}"


def check_uses(op: Op, price: Price, capacities: dict[str, int], machine: str) -> None:
    """Raise ``InputError`` if the op holds an unknown unit, or more of one than the machine has."""
    for use in price.uses:
        if use.unit not in capacities:
            raise InputError(at(op), f"machine {machine} has no unit {use.unit!r}", nearest(use.unit, capacities))
        if use.amount > capacities[use.unit]:
            raise InputError(
                at(op),
                f"it holds {use.amount} of unit {use.unit}, machine {machine} has {capacities[use.unit]}",
                "lower the amount or raise the unit's capacity in the machine file",
            )
