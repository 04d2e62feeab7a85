"""A clausal model in OR-Tools CP-SAT, and its solution."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ortools.sat.python import cp_model

from twillgpu.schedule.literals import AtLeast, Clauses, OneOf, Sum, Term
from twillgpu.schedule.solved import Effort, Solved

INFINITE = (1 << 63) - 1

BOOLEAN = "variables{domain:[0,1]}"

RANDOM = 0.01
"""Share of decisions whose polarity is drawn."""


def translate(clauses: Clauses) -> cp_model.CpModel:
    """Return the CP-SAT model; variable v is its variable v - 1.

    It goes through the text form of its protocol buffer: reading some ten thousand clauses takes half as long as
    adding them one by one.
    """
    model = cp_model.CpModel()
    model.proto.parse_text_format("".join(_text(clauses)))
    return model


def _text(clauses: Clauses) -> Iterator[str]:
    """Yield variables, constraints and objective as CP-SAT writes them: literal v is v - 1, its negation -v."""
    count = len(clauses.names)
    name = {v: str(v - 1) for v in range(1, count + 1)} | {-v: str(-v) for v in range(1, count + 1)}
    for v in range(1, count + 1):
        yield f"variables{{domain:[0,{clauses.integers[v]}]}}" if v in clauses.integers else BOOLEAN
    for constraint in clauses.constraints:
        if isinstance(constraint, tuple):
            yield f"constraints{{bool_or{{literals:[{','.join([name[literal] for literal in constraint])}]}}}}"
        elif isinstance(constraint, OneOf):
            kind = "exactly_one" if constraint.exactly else "at_most_one"
            yield f"constraints{{{kind}{{literals:[{','.join([name[v] for v in constraint.literals])}]}}}}"
        elif isinstance(constraint, Sum):
            yield _sum(constraint)
        else:
            yield _at_least(constraint)
    if clauses.hint:
        values = [int(literal > 0) for literal in clauses.hint]
        yield f"solution_hint{{vars:{[abs(literal) - 1 for literal in clauses.hint]} values:{values}}}"
    if clauses.objective:
        variables, weights, constant = _weighted(clauses.objective)
        yield f"objective{{vars:{variables} coeffs:{weights} offset:{constant}}}"


def _sum(constraint: Sum) -> str:
    variables, weights, constant = _weighted((*constraint.integers, *constraint.terms, *constraint.chain))
    domain = [-INFINITE - 1, constraint.limit - constant]
    return _linear(variables, weights, domain, [-literal for literal in constraint.unless])


def _at_least(constraint: AtLeast) -> str:
    variables, weights, constant = _weighted(((-1, constraint.integer), *constraint.chain))
    enforced = [] if constraint.condition is True else [constraint.condition]
    return _linear(variables, weights, [-INFINITE - 1, -constraint.constant - constant], enforced)


def _linear(variables: list[int], weights: list[int], domain: list[int], enforced: list[int]) -> str:
    """Return a sum that lies in ``domain`` where all of ``enforced`` hold."""
    conditions = [literal - 1 if literal > 0 else literal for literal in enforced]
    linear = f"linear{{vars:{variables} coeffs:{weights} domain:{domain}}}"
    return f"constraints{{enforcement_literal:{conditions} {linear}}}"


def _weighted(terms: Iterable[Term]) -> tuple[list[int], list[int], int]:
    """Return variables, weights and a constant that sum to what the terms do: a negation counts as 1 minus its
    variable.
    """
    weights: dict[int, int] = {}
    constant = 0
    for weight, literal in terms:
        variable = abs(literal) - 1
        weights[variable] = weights.get(variable, 0) + (weight if literal > 0 else -weight)
        constant += 0 if literal > 0 else weight
    kept = {variable: weight for variable, weight in weights.items() if weight}
    return list(kept), list(kept.values()), constant


def solve(clauses: Clauses, effort: Effort) -> Solved:
    """Solve with CP-SAT; effort is counted in its deterministic time."""
    model = translate(clauses)
    work = seconds = 0.0
    for turn in range(effort.tries):
        left = max(0.1, effort.seconds - seconds)
        found = _try(model, Effort(work=effort.work, seconds=left, seed=effort.seed + turn))
        work, seconds = work + found.work, seconds + found.seconds
        if found.outcome != "unknown" or seconds >= effort.seconds:
            break
    return replace(found, work=work, seconds=seconds)


def _try(model: cp_model.CpModel, effort: Effort) -> Solved:
    solver = _solver(effort)
    status = solver.solve(model)
    spent = {"work": solver.response_proto.deterministic_time, "seconds": solver.wall_time}
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Solved(outcome="infeasible" if status == cp_model.INFEASIBLE else "unknown", holds=None, **spent)
    values = list(solver.response_proto.solution)

    def holds(literal: int) -> bool:
        return literal if isinstance(literal, bool) else bool(values[abs(literal) - 1]) == (literal > 0)

    return Solved(outcome="optimal" if status == cp_model.OPTIMAL else "feasible", holds=holds, **spent)


def _solver(effort: Effort) -> cp_model.CpSolver:
    solver = cp_model.CpSolver()
    # Measured on attention forward and backward: these clauses are solved two to five times faster without
    # presolve and linear relaxation, and with less spread between seeds; symmetry is broken by the rules
    # themselves. Between restarts, too, probing and shortening of clauses cost more than they save: without them
    # easy questions take a tenth to a half of the time. One worker: the same answer on every machine.
    solver.parameters.num_workers = 1
    solver.parameters.cp_model_presolve = False
    solver.parameters.linearization_level = 0
    solver.parameters.cp_model_probing_level = 0
    solver.parameters.symmetry_level = 0
    solver.parameters.use_sat_inprocessing = False
    # A few random decisions: without them a seed would change nothing, and hard questions need several.
    solver.parameters.initial_polarity = solver.parameters.POLARITY_TRUE
    solver.parameters.random_polarity_ratio = RANDOM
    solver.parameters.random_seed = effort.seed
    solver.parameters.max_deterministic_time = effort.work
    solver.parameters.max_time_in_seconds = effort.seconds
    solver.parameters.catch_sigint_signal = False
    return solver
