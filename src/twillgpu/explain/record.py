"""The record of an explanation: what forces the interval, what would help, and how the capacities matter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from twillgpu.schedule.record import SearchResult

Kind = Literal[
    "unit",
    "memory",
    "registers",
    "register_file",
    "groups",
    "warps",
    "stages",
    "handoff",
    "concurrency",
    "variable_latency",
    "legality",
    "latency",
]
"""What a family of rules limits. ``latency``: the dependences themselves; all others can be relaxed in a problem."""

RULE: dict[Kind, str] = {
    "unit": "capacity",
    "memory": "memory_capacity",
    "registers": "register_limit",
    "register_file": "register_limit",
    "groups": "warp_uniqueness",
    "warps": "warp_uniqueness",
    "stages": "completion",
    "handoff": "cross_warp_spill",
    "concurrency": "concurrency",
    "variable_latency": "variable_latency",
    "legality": "legality",
    "latency": "dependence",
}
"""The rule of ``docs/formulation.md`` that each kind is part of."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Family:
    """Rules that are relaxed together: those of one unit, one memory, one legality sub-rule, ...

    ``name`` is the unit, the memory, the legality sub-rule, or (``latency``) the op; empty otherwise.
    """

    kind: Kind
    name: str = ""

    @property
    def rule(self) -> str:
        """The rule of the formulation that the family is part of."""
        return RULE[self.kind]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A family relaxed.

    Attributes:
        family: which one.
        before, after: its amount: speed in percent (``unit``), bytes (``memory``), registers (``registers`` of a
            thread, ``register_file`` of the SM), numbers (``groups``, ``warps``, ``stages``), cost in percent
            (``handoff``), cycles (``latency``). ``after`` is ``None`` where the rule is lifted altogether.
    """

    family: Family
    before: int
    after: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forced:
    """Intervals ``first..last`` (cycles, inclusive) that no schedule reaches, and what forces that.

    Attributes:
        sets: smallest sets of families, each of which alone refutes the intervals. An empty set: the dependences
            (and the number of stages, where no other is allowed) refute them whatever else is relaxed.
        ways: smallest sets of families that have to be relaxed together before the refutation fails; empty for
            bounds, where one family of every set has to be.
        bounds: names of the analytic bounds that refute the intervals; empty where a solver did.
        complete: whether ``sets`` are all there are; ``False`` where effort or time ended.
        minimal: whether every set is known to be smallest.
    """

    first_cycles: int
    last_cycles: int
    sets: tuple[tuple[Family, ...], ...]
    ways: tuple[tuple[Family, ...], ...] = ()
    bounds: tuple[str, ...] = ()
    complete: bool = True
    minimal: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Relaxed:
    """What was found with some families relaxed: the smallest interval lies in ``lower..upper`` (cycles).

    Attributes:
        changes: what was relaxed; empty where the question was never asked.
        lower_cycles: proved lower bound.
        upper_cycles: interval of the best schedule known (which has passed the verifier), ``None`` without one.
        stages: stages allowed.
        bound: name of the largest analytic bound that is left, and its cycles.
        groups: groups of the new schedule that need more registers per thread than there were.
        solved: whether a solver was asked; otherwise what is known already settles it.
        infeasible: whether it is proved that there is no schedule at all.
    """

    changes: tuple[Change, ...]
    lower_cycles: int
    upper_cycles: int | None
    stages: int
    bound: str
    bound_cycles: int
    groups: tuple[str, ...] = ()
    solved: bool = True
    infeasible: bool = False

    @property
    def proved(self) -> bool:
        """Whether the smallest interval is known exactly."""
        return self.lower_cycles == self.upper_cycles


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A smallest set of families that help, relaxed as little as helps.

    Attributes:
        families: what has to be relaxed.
        least: the least relaxation found that gives a smaller interval, ``None`` where none was found.
        most: what doubling (or lifting) gives, where that is better than ``least``.
        answered: ``False`` where time ended before the least relaxation was known.
    """

    families: tuple[Family, ...]
    least: Relaxed | None
    most: Relaxed | None = None
    answered: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The interval as a function of one capacity: ``cells`` belong to ``PERCENT`` more of it, ``None``: no time."""

    family: Family
    amount: int
    cells: tuple[Relaxed | None, ...]


PERCENT = (25, 50, 100)
"""By how much each capacity is raised in the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Cycles of a unit that the ops of one source line hold in every iteration (capacity 1: cycles; more: shares)."""

    source: str
    ops: tuple[str, ...]
    cycles: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CriticalUnit:
    """The busiest unit: what it does in an iteration, by source line, the largest first."""

    unit: str
    capacity: int
    bound_cycles: int
    shares: tuple[Share, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitStep:
    """An op of a circuit, its line, and the cycles from its start to the next op's."""

    op: str
    source: str
    latency_cycles: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CriticalCircuit:
    """The circuit of dependences with the largest ratio of latency to distance."""

    steps: tuple[CircuitStep, ...]
    latency_cycles: int
    distance: int
    bound_cycles: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainOptions:
    """Limits of an explanation.

    Attributes:
        work: deterministic work units of the solver for each question with a changed problem.
        time_budget_seconds: processor seconds for all questions; what is not reached is said to be open.
        table: whether to make the table of capacities.
    """

    work: float = 4.0
    time_budget_seconds: float = 80.0
    table: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why the interval of a search is what it is.

    Attributes:
        result: the search that is explained.
        forced: refuted intervals, ascending, without a gap up to the proved bound.
        ways: what would help, cheapest first.
        rows: the interval as a function of each capacity.
        unit, circuit: critical ones, ``None`` where there is none.
        options: limits.
        complete: ``False`` where the time budget ended first.
        questions: how many questions were put to the solver.
        seconds: processor seconds, without the search itself.
    """

    result: SearchResult
    forced: tuple[Forced, ...]
    ways: tuple[Way, ...]
    rows: tuple[Row, ...]
    unit: CriticalUnit | None
    circuit: CriticalCircuit | None
    options: ExplainOptions
    complete: bool
    questions: int
    seconds: float
