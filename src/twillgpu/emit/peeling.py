"""Prologue, loop and epilogue of a group without conditions, and each number of iterations too small for them apart.

ptxas serialises all wgmma of a kernel where accumulators pass through conditional blocks, "due to insufficient
register resources for the wgmma pipeline" (C7511), however few registers are live.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from twillgpu.emit.loop_variables import InFlight
from twillgpu.lower.record import Execute, GroupProgram, Instruction


class Writer(Protocol):
    """What writes a group's function, as far as it is needed here."""

    group: GroupProgram
    flight: list[InFlight]
    depth: int
    said: str

    def line(self, text: str) -> None:
        """Write one line."""

    def flush(self) -> None:
        """Write what was put off."""

    def instruction(self, instruction: Instruction) -> None:
        """Write one instruction."""

    def leave_out(self, instruction: Instruction) -> None:
        """Note that an instruction of the prologue is left out: its iteration does not exist."""

    def begin(self) -> None:
        """Note that nothing is left out."""

    def loop(self) -> None:
        """Write the steady state."""

    def flying(self) -> set[str]:
        """Return the variables of wgmma results in flight."""


def peels(group: GroupProgram) -> bool:
    """Return whether a group has a prologue, and wgmma in its loop."""
    return group.stages > 1 and any(isinstance(one, Execute) and one.engine == "wgmma" for one in group.loop)


def apart(writer: Writer) -> None:
    """Write what is done for enough iterations for the whole prologue, and for each smaller number of iterations."""
    most = writer.group.stages - 1
    for trips in range(most, 0, -1):
        writer.line(f"if trips >= {trips}:" if trips == most else f"elif trips == {trips}:")
        writer.depth += 1
        writer.flight = []
        writer.said = ""
        writer.begin()
        _straight(writer, writer.group.prologue, trips)
        if trips == most:
            writer.loop()
        _straight(writer, writer.group.epilogue, trips)
        _settle(writer)
        writer.depth -= 1
    writer.said = ""


def _straight(writer: Writer, instructions: Iterable[Instruction], trips: int) -> None:
    """Write the instructions that so many iterations have."""
    for instruction in instructions:
        if instruction.at_least <= trips:
            writer.instruction(instruction)
        else:
            writer.leave_out(instruction)
    writer.flush()


def _settle(writer: Writer) -> None:
    """Write a wait for every wgmma result in flight: a variable has one type on all ways."""
    names = ", ".join(sorted(writer.flying()))
    if names:
        writer.line(f"{names} = warpgroup_mma_wait(0, deps=[{names}])")
    writer.flight = []
