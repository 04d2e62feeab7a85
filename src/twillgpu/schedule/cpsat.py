"""A clausal model in OR-Tools CP-SAT, and its solution."""

from __future__ import annotations

from collections.abc import Iterable

from ortools.sat.python import cp_model

from twillgpu.schedule.literals import AtLeast, Clauses, OneOf, Sum, Term
from twillgpu.schedule.solved import Effort, Solved


def translate(clauses: Clauses) -> cp_model.CpModel:
    """Return the CP-SAT model; variable v is its variable v - 1."""
    model = cp_model.CpModel()
    variables = [
        model.new_int_var(0, clauses.integers[v], "") if v in clauses.integers else model.new_bool_var("")
        for v in range(1, len(clauses.names) + 1)
    ]
    proto = model.proto
    for constraint in clauses.constraints:
        if isinstance(constraint, tuple):
            proto.constraints.add().bool_or.literals.extend(_indices(constraint))
        elif isinstance(constraint, OneOf):
            added = proto.constraints.add()
            (added.exactly_one if constraint.exactly else added.at_most_one).literals.extend(
                _indices(constraint.literals)
            )
        elif isinstance(constraint, Sum):
            _add_sum(model, variables, constraint)
        else:
            _add_at_least(model, variables, constraint)
    if clauses.objective:
        model.minimize(_weighted(variables, clauses.objective))
    return model


def _indices(literals: Iterable[int]) -> list[int]:
    """Return literals as CP-SAT writes them: v - 1, and -v for the negation."""
    return [literal - 1 if literal > 0 else literal for literal in literals]


def _add_sum(model: cp_model.CpModel, variables: list[cp_model.IntVar], constraint: Sum) -> None:
    terms = (*constraint.integers, *constraint.terms, *constraint.chain)
    added = model.add(_weighted(variables, terms) <= constraint.limit)
    if constraint.unless:
        added.only_enforce_if([_literal(variables, -literal) for literal in constraint.unless])


def _add_at_least(model: cp_model.CpModel, variables: list[cp_model.IntVar], constraint: AtLeast) -> None:
    least = constraint.constant + _weighted(variables, constraint.chain)
    added = model.add(variables[constraint.integer - 1] >= least)
    if constraint.condition is not True:
        added.only_enforce_if(_literal(variables, constraint.condition))


def _weighted(variables: list[cp_model.IntVar], terms: tuple[Term, ...]) -> cp_model.LinearExpr:
    literals = [_literal(variables, literal) for _, literal in terms]
    return cp_model.LinearExpr.weighted_sum(literals, [weight for weight, _ in terms])


def _literal(variables: list[cp_model.IntVar], literal: int) -> cp_model.LiteralT:
    return variables[literal - 1] if literal > 0 else ~variables[-literal - 1]


def solve(clauses: Clauses, effort: Effort) -> Solved:
    """Solve with CP-SAT; effort is counted in its deterministic time."""
    solver = _solver(effort)
    status = solver.solve(translate(clauses))
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
