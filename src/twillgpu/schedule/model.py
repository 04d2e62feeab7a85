"""The clausal model of one interval, its solution, and the list of its rules.

Time is in slots of the scaled problem. Starts are pinned so that the anchor op begins at slot 0 of some period
(a modulo schedule can be rotated); ``base`` is where the claimed ``stages * interval`` slots begin.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal as Choice

from ortools.sat.python import cp_model

from twillgpu.schedule import rules_groups, rules_memory, rules_registers, rules_time
from twillgpu.schedule.core import Core, Question
from twillgpu.schedule.objective import add_objective
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How hard to try: deterministic work units, a wall-clock backstop in seconds, and the seed."""

    work: float
    seconds: float
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the solver said.

    Attributes:
        outcome: ``optimal`` (of the objective), ``feasible``, ``infeasible`` or ``unknown``.
        starts, groups: the solution, empty without one; starts in slots from the base.
        work, seconds: effort spent.
    """

    outcome: Choice["optimal", "feasible", "infeasible", "unknown"]
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
    return core


def answer(question: Question, objective: tuple[str, ...], effort: Effort) -> Answer:
    """Solve ``question``, minimising ``objective`` (empty: any schedule will do)."""
    core = build(question, objective)
    if core is None:
        return Answer(outcome="infeasible", starts={}, groups={}, work=0.0, seconds=0.0)
    solver = _solver(effort)
    status = solver.solve(core.clauses.model)
    building = BUILD_WORK * sum(core.clauses.counts.values())
    spent = {"work": solver.response_proto.deterministic_time + building, "seconds": solver.wall_time}
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        outcome: Choice["optimal", "feasible"] = "optimal" if status == cp_model.OPTIMAL else "feasible"
        return Answer(outcome=outcome, starts=_starts(core, solver), groups=_groups(core, solver), **spent)
    outcome_none: Choice["infeasible", "unknown"] = "infeasible" if status == cp_model.INFEASIBLE else "unknown"
    return Answer(outcome=outcome_none, starts={}, groups={}, **spent)


def _solver(effort: Effort) -> cp_model.CpSolver:
    solver = cp_model.CpSolver()
    # Measured on attention forward and backward: these clauses are solved two to five times faster without
    # presolve and linear relaxation, and with less spread between seeds; symmetry is broken by the rules
    # themselves. One worker: the same answer on every machine.
    solver.parameters.num_workers = 1
    solver.parameters.cp_model_presolve = False
    solver.parameters.linearization_level = 0
    solver.parameters.cp_model_probing_level = 0
    solver.parameters.symmetry_level = 0
    solver.parameters.random_seed = effort.seed
    solver.parameters.max_deterministic_time = effort.work
    solver.parameters.max_time_in_seconds = effort.seconds
    solver.parameters.catch_sigint_signal = False
    return solver


def _starts(core: Core, solver: cp_model.CpSolver) -> dict[str, int]:
    starts = {name: start.value(solver) for name, start in core.starts.items()}
    first = min(starts.values())
    return {name: start - first for name, start in starts.items()}


def _groups(core: Core, solver: cp_model.CpSolver) -> dict[str, int]:
    """Return the group of every op, numbered without gaps."""
    raw = {
        name: next(g for g, literal in enumerate(literals) if literal is True or solver.boolean_value(literal))
        for name, literals in core.groups.items()
    }
    number = {group: index for index, group in enumerate(sorted(set(raw.values())))}
    return {name: number[group] for name, group in raw.items()}
