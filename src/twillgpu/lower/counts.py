"""How much synchronisation a program does in one iteration of its steady state."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from twillgpu.lower.record import Arrive, Commit, Drain, ExpectBytes, Instruction, Wait, WarpProgram


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCounts:
    """What one group executes per iteration: waits for barriers, arrivals at barriers, drains."""

    group: str
    waits: int
    arrivals: int
    drains: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The counts of all groups, in their order."""

    groups: tuple[GroupCounts, ...]

    @property
    def waits(self) -> int:
        """Waits for barriers in one iteration, of all groups."""
        return sum(group.waits for group in self.groups)

    @property
    def arrivals(self) -> int:
        """Arrivals at barriers in one iteration, of all groups."""
        return sum(group.arrivals for group in self.groups)


def counts(program: WarpProgram) -> Counts:
    """Return what every group executes in one iteration of its steady-state loop."""
    return Counts(
        groups=tuple(
            GroupCounts(
                group=group.name,
                waits=_of(group.loop, Wait),
                arrivals=_of(group.loop, Arrive, ExpectBytes, Commit),
                drains=_of(group.loop, Drain),
            )
            for group in program.groups
        )
    )


def _of(instructions: Iterable[Instruction], *kinds: type[Instruction]) -> int:
    return sum(1 for instruction in instructions if isinstance(instruction, kinds))
