"""What a user of the paper's method may choose, and what its steps hand to each other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from twillgpu.costs.record import Problem
from twillgpu.schedule.record import SearchOptions

WarpsAs = Literal["paper", "groups"]
"""``paper``: each op on one of a fixed number of equal warps; ``groups``: warp groups with widths and quotas."""

IntegerSolver = Literal["highs", "scip"]
"""Solver of the integer program: HiGHS or SCIP."""

UNITS = 300
"""The paper's bound U on the sum of the normalised costs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperOptions:
    """Options of the paper's method.

    Attributes:
        search: stages, time limit and resolution, as for the default method. Without ``max_stages`` each interval is
            searched at the number of stages of its shortest modulo schedule, as published.
        units: the bound U on the sum of normalised costs; 0: no normalisation, slots rounded up at the
            resolution of ``search``, as the default method has them.
        literal: leave out everything that the paper does not state.
        warps_as: what an op is assigned to; ``None``: ``paper`` where literal, ``groups`` otherwise.
        integer_solver: solver of the integer program.
    """

    search: SearchOptions = field(default_factory=SearchOptions)
    units: int = UNITS
    literal: bool = False
    warps_as: WarpsAs | None = None
    integer_solver: IntegerSolver = "highs"

    @property
    def warps(self) -> WarpsAs:
        """What an op is assigned to, with the default filled in."""
        return self.warps_as or ("paper" if self.literal else "groups")


@dataclass(frozen=True, slots=True, kw_only=True)
class JointQuestion:
    """SWP-AND-WS(G, M, I, L): is there a schedule of ``problem`` at this interval and length, with groups?

    Attributes:
        problem: the problem in the unit of time of the question.
        interval, length: I and L in that unit.
        literal, warps: see ``PaperOptions``.
        places: demand a place for every ring of copies in a memory, not only that all live bytes fit.
        without: rules left out.
    """

    problem: Problem
    interval: int
    length: int
    literal: bool = False
    warps: WarpsAs = "groups"
    places: bool = False
    without: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class JointAnswer:
    """What the SMT solver said: ``sat``, ``unsat`` or ``unknown``; starts and groups of a model; seconds."""

    outcome: Literal["sat", "unsat", "unknown"]
    starts: dict[str, int]
    groups: dict[str, int]
    seconds: float
