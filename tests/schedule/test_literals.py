"""Order-encoded integers, clauses with constants, and sums with constants: every solution is enumerated."""

from __future__ import annotations

from itertools import product

import pytest
from ortools.sat.python import cp_model

from twillgpu.schedule.literals import Clauses, Literal, Order, negate, weighted


def possible(clauses: Clauses, *also: Literal) -> bool:
    """Return whether the clauses and the literals ``also`` can hold together."""
    model = clauses.model.clone()
    for literal in also:
        model.add_bool_or([literal])
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    return solver.solve(model) in (cp_model.OPTIMAL, cp_model.FEASIBLE)


@pytest.mark.parametrize(("first", "last"), [(0, 0), (0, 1), (3, 7), (-2, 1)])
def test_an_order_takes_every_value_of_its_range_and_no_other(first: int, last: int) -> None:
    for value in range(first - 1, last + 2):
        clauses = Clauses()
        order = Order(clauses, "x", first, last)
        clauses.add(order.at(value))
        solver = cp_model.CpSolver()
        status = solver.solve(clauses.model)
        if not first <= value <= last:
            assert status == cp_model.INFEASIBLE
            continue
        assert status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
        assert order.value(solver) == value
        for bound in range(first - 1, last + 3):
            assert _holds(solver, order.ge(bound)) == (value >= bound)
            assert _holds(solver, order.lt(bound)) == (value < bound)


def _holds(solver: cp_model.CpSolver, literal: Literal) -> bool:
    return literal if isinstance(literal, bool) else bool(solver.boolean_value(literal))


def test_beyond_its_range_an_order_is_constant() -> None:
    order = Order(Clauses(), "x", 2, 4)
    assert (order.ge(2), order.ge(5), order.lt(2), order.lt(5)) == (True, False, False, True)
    assert (order.at(1), order.at(5)) == (False, False)
    assert Order(Clauses(), "y", 2, 2).at(2) is True


def test_an_equality_is_made_once() -> None:
    order = Order(Clauses(), "x", 0, 4)
    assert order.at(2) is order.at(2)


def test_constants_in_clauses() -> None:
    clauses = Clauses()
    clauses.rule = "some_rule"
    free = clauses.fresh("free")
    clauses.add(True, free)
    assert clauses.counts == {}
    clauses.add(False, free)
    assert clauses.counts == {"some_rule": 1}
    assert possible(clauses, free)
    assert not possible(clauses, negate(free))


def test_a_clause_of_nothing_cannot_hold() -> None:
    clauses = Clauses()
    clauses.add(False)
    assert not possible(clauses)


def test_an_implication_without_a_cause_is_a_fact() -> None:
    clauses = Clauses()
    cause, effect = clauses.fresh("cause"), clauses.fresh("effect")
    clauses.imply([], effect)
    clauses.imply([effect, True], cause)
    assert not possible(clauses, negate(cause))
    assert negate(True) is False


WEIGHTS = (1, 2, 3, 5)


@pytest.mark.parametrize("limit", range(-1, 12))
@pytest.mark.parametrize("constant", [0, 2])
def test_a_sum_allows_exactly_what_stays_within_its_limit(limit: int, constant: int) -> None:
    """Every assignment of weighted literals, beside constants: also weights that alone exceed the limit."""
    for values in product((False, True), repeat=len(WEIGHTS)):
        clauses = Clauses()
        literals = [clauses.fresh(f"x{weight}") for weight in WEIGHTS]
        fixed: list[tuple[int, Literal]] = [(constant, True), (7, False)]
        clauses.at_most([*zip(WEIGHTS, literals, strict=True), *fixed], limit)
        taken = [literal if value else negate(literal) for literal, value in zip(literals, values, strict=True)]
        total = constant + sum(weight for weight, value in zip(WEIGHTS, values, strict=True) if value)
        assert possible(clauses, *taken) == (total <= limit), (values, total)


@pytest.mark.parametrize(("weights", "limit"), [((24,), 18), ((2, 2), 3), ((3, 3, 3), 3), ((5, 1), 4)])
def test_one_at_a_time(weights: tuple[int, ...], limit: int) -> None:
    """Before: a weight above the limit was allowed wherever no two could hold."""
    for values in product((False, True), repeat=len(weights)):
        clauses = Clauses()
        literals = [clauses.fresh(f"x{index}") for index in range(len(weights))]
        clauses.at_most(zip(weights, literals, strict=True), limit)
        taken = [literal if value else negate(literal) for literal, value in zip(literals, values, strict=True)]
        total = sum(weight for weight, value in zip(weights, values, strict=True) if value)
        assert possible(clauses, *taken) == (total <= limit)


def test_a_weighted_sum_counts_constants() -> None:
    clauses = Clauses()
    free = clauses.fresh("free")
    clauses.model.add(weighted([(4, True), (9, False), (3, free)]) == 7)
    assert possible(clauses, free)
    assert not possible(clauses, negate(free))
