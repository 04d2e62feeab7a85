"""Records of the baselines: what a way of scheduling decides, what came of it, and all of them side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from twillgpu.costs.record import PricedEdge
from twillgpu.schedule.record import Schedule, SearchResult

Outcome = Literal["found", "infeasible", "unsuited", "limit"]
"""``found``: a verified schedule; ``infeasible``: a rule stands against it; ``unsuited``: the loop is not of the form
that it is for; ``limit``: the effort ended before there was a schedule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way of scheduling: its name, one line on what it does, and where it comes from."""

    name: str
    says: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a way decides for one problem; the rest is left to the search.

    Attributes:
        groups: the group of every op.
        orders: further dependences: the order of issue in each group, how far loads run ahead, how long they take.
        max_stages: at most so many stages, ``None`` for those of the comparison.
    """

    groups: tuple[tuple[str, int], ...]
    orders: tuple[PricedEdge, ...]
    max_stages: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsuited:
    """Why a way does not apply to a loop."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a schedule costs.

    Attributes:
        ii_cycles: the interval.
        ratio: the interval over that of the best schedule known.
        stages, groups, warps: numbers.
        registers: registers of the register file that the groups' quotas take.
        registers_needed: registers per thread of the group that needs most, with the machine's overhead.
        barriers: (op, receiving group) pairs per iteration.
        handoff_cycles: cycles of hand-off per iteration.
        unit, utilisation: the busiest unit and the share of the period for which it is held.
    """

    ii_cycles: int
    ratio: float
    stages: int
    groups: int
    warps: int
    registers: int
    registers_needed: int
    barriers: int
    handoff_cycles: int
    unit: str
    utilisation: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What came of one way, before it is set beside the others.

    Attributes:
        rule: the rule that stands against it, where it is ``infeasible``.
        reason: what it says, or why the way is unsuited.
        proved: no smaller interval exists for what the way decides (``None`` for heuristics, which prove nothing).
        lower_cycles: proved lower bound for what the way decides; 0 where nothing is proved.
        forced: what keeps a plan from a smaller interval: a bound, or what else is known.
        lifted: the legality rule that is left out, since it refuses the plan at every interval (``reason`` says how);
            empty: all rules hold.
    """

    way: Way
    outcome: Outcome
    schedule: Schedule | None = None
    rule: str = ""
    reason: str = ""
    proved: bool | None = None
    lower_cycles: int = 0
    forced: str = ""
    lifted: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a comparison: what came of a way, with its figures where there is a schedule."""

    found: Found
    figures: Figures | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All ways under the same rules and costs.

    Attributes:
        max_stages: stages allowed to all of them.
        optimum: what the search found and proved.
        rows: the optimum first, then every way.
    """

    problem: str
    machine: str
    max_stages: int
    optimum: SearchResult
    rows: tuple[Row, ...]
