"""The clausal model of one interval, its solution, and the list of its rules.

Time is in slots of the scaled problem. Starts are pinned so that the anchor op begins at slot 0 of some period
(a modulo schedule can be rotated); ``base`` is where the claimed ``stages * interval`` slots begin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal as Choice

from twillgpu.schedule import cpsat, rules_groups, rules_memory, rules_registers, rules_time, sat
from twillgpu.schedule.core import Core, Question
from twillgpu.schedule.literals import Clauses, Holds
from twillgpu.schedule.objective import add_objective
from twillgpu.schedule.solved import Effort, Outcome, Solved
from twillgpu.schedule.windows import windows

RULES: tuple[tuple[str, Callable[[Core], None]], ...] = (
    ("uniqueness", rules_time.uniqueness),
    ("consistency", rules_time.consistency),
    ("completion", rules_time.completion),
    ("dependence", rules_time.dependence),
    ("capacity", rules_time.capacity),
    ("warp_uniqueness", rules_groups.warp_uniqueness),
    ("variable_latency", rules_groups.variable_latency),
    ("legality", rules_groups.legality),
    ("cross_warp_spill", rules_groups.cross_warp_spill),
    ("concurrency", rules_groups.concurrency),
    ("register_limit", rules_registers.register_limit),
    ("memory_capacity", rules_memory.memory_capacity),
)
"""Every rule of the formulation with the function that states it, in the order in which they are added."""


BUILD_WORK = 5e-6
"""Work units for each clause: stating a question takes time as well."""


Backend = Choice["cp-sat", "cadical", "glucose"]

SOLVERS: dict[Backend, Callable[[Clauses, Effort], Solved]] = {
    "cp-sat": cpsat.solve,
    "cadical": sat.solve_cadical,
    "glucose": sat.solve_glucose,
}
"""Who may be asked. Only CP-SAT minimises; SAT solvers return any schedule, as ``feasible``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the solver said.

    Attributes:
        outcome: ``optimal`` (of the objective), ``feasible``, ``infeasible`` or ``unknown``.
        starts, groups: the solution, empty without one; starts in slots from the base.
        work, seconds: effort spent.
    """

    outcome: Outcome
    starts: dict[str, int]
    groups: dict[str, int]
    work: float
    seconds: float


def build(question: Question, objective: tuple[str, ...]) -> Core | None:
    """Return the model of ``question``, or ``None`` where the windows alone refute it."""
    span = windows(question.problem, question.interval, question.stages)
    if span is None:
        return None
    core = Core(question, span)
    for name, rule in RULES:
        core.clauses.rule = name
        if name not in question.without:
            rule(core)
    if objective:
        add_objective(core, objective)
    core.clauses.hint = tuple(_held(core, question.known))
    return core


def answer(question: Question, objective: tuple[str, ...], effort: Effort, backend: Backend = "cp-sat") -> Answer:
    """Solve ``question``, minimising ``objective`` (empty: any schedule will do).

    Raises:
        InputError: the back end's package is not installed.
    """
    core = build(question, objective if backend == "cp-sat" else ())
    if core is None:
        return Answer(outcome="infeasible", starts={}, groups={}, work=0.0, seconds=0.0)
    solved = SOLVERS[backend](core.clauses, effort)
    found = solved.holds
    return Answer(
        outcome=solved.outcome,
        starts=_starts(core, found) if found else {},
        groups=_groups(core, found) if found else {},
        work=solved.work + BUILD_WORK * sum(core.clauses.counts.values()),
        seconds=solved.seconds,
    )


def _held(core: Core, known: tuple[tuple[str, int, int], ...]) -> Iterator[int]:
    """Yield the literals of starts and groups in a known solution, turned so that the anchor is at slot 0."""
    starts = {name: start for name, start, _ in known}
    turn = -starts.get(core.anchor, 0) % core.interval
    pairs = [(core.base.ge(time), turn >= time) for time in range(1, core.interval)] if known else []
    for name, begun, group in known:
        start = core.starts[name]
        pairs += [(start.ge(time), begun + turn >= time) for time in range(start.first + 1, start.last + 1)]
        pairs += [(literal, number == group) for number, literal in enumerate(core.groups[name])]
    for literal, holds in pairs:
        if not isinstance(literal, bool):
            yield literal if holds else -literal


def _starts(core: Core, holds: Holds) -> dict[str, int]:
    starts = {name: start.value(holds) for name, start in core.starts.items()}
    first = min(starts.values())
    return {name: start - first for name, start in starts.items()}


def _groups(core: Core, holds: Holds) -> dict[str, int]:
    """Return the group of every op, numbered without gaps."""
    raw = {
        name: next(g for g, literal in enumerate(literals) if literal is not False and holds(literal))
        for name, literals in core.groups.items()
    }
    number = {group: index for index, group in enumerate(sorted(set(raw.values())))}
    return {name: number[group] for name, group in raw.items()}
