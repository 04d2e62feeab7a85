"""Order-encoded integers, clauses with constants, and sums with constants: every solution is enumerated."""

from __future__ import annotations

from copy import copy
from itertools import product

import pytest

from twillgpu.schedule import cpsat, sat
from twillgpu.schedule.literals import Clauses, Holds, Literal, Order, Shifted, negate
from twillgpu.schedule.solved import Effort

EFFORT = Effort(work=5.0, seconds=60.0)


def solution(clauses: Clauses, *also: Literal) -> Holds | None:
    """Return a solution of the clauses in which the literals ``also`` hold."""
    extended = copy(clauses)
    extended.constraints = list(clauses.constraints)
    extended.counts = dict(clauses.counts)
    for literal in also:
        extended.add(literal)
    return cpsat.solve(extended, EFFORT).holds


def possible(clauses: Clauses, *also: Literal) -> bool:
    return solution(clauses, *also) is not None


@pytest.mark.parametrize(("first", "last"), [(0, 0), (0, 1), (3, 7), (-2, 1)])
def test_an_order_takes_every_value_of_its_range_and_no_other(first: int, last: int) -> None:
    for value in range(first - 1, last + 2):
        clauses = Clauses()
        order = Order(clauses, "x", first, last)
        found = solution(clauses, order.at(value))
        if not first <= value <= last:
            assert found is None
            continue
        assert found is not None
        assert order.value(found) == value
        for bound in range(first - 1, last + 3):
            assert found(order.ge(bound)) == (value >= bound)
            assert found(order.lt(bound)) == (value < bound)


def test_beyond_its_range_an_order_is_constant() -> None:
    order = Order(Clauses(), "x", 2, 4)
    assert (order.ge(2), order.ge(5), order.lt(2), order.lt(5)) == (True, False, False, True)
    assert (order.at(1), order.at(5)) == (False, False)
    assert Order(Clauses(), "y", 2, 2).at(2) is True


def test_a_shifted_integer_has_no_literals_of_its_own() -> None:
    clauses = Clauses()
    order = Order(clauses, "x", 2, 5)
    shifted = Shifted(order, 3)
    assert (shifted.first, shifted.last) == (5, 8)
    assert len(clauses.names) == 3
    found = solution(clauses, shifted.at(7))
    assert found is not None
    assert (order.value(found), shifted.value(found)) == (4, 7)
    assert [found(shifted.ge(bound)) for bound in (7, 8, 9)] == [True, False, False]
    assert sum(weight for weight, literal in shifted.below(2) if found(literal)) == 2


def test_an_equality_is_made_once() -> None:
    clauses = Clauses()
    order = Order(clauses, "x", 0, 4)
    first = order.at(2)
    stated = len(clauses.constraints)
    assert order.at(2) == first
    assert len(clauses.constraints) == stated


def test_what_is_missing_from_the_last_value() -> None:
    """Three times (4 - x) <= 7 leaves x >= 2."""
    clauses = Clauses()
    order = Order(clauses, "x", 0, 4)
    clauses.at_most([], 7, chain=order.below(3))
    assert [possible(clauses, order.at(value)) for value in range(5)] == [False, False, True, True, True]


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
    assert sat.solve_cadical(clauses, EFFORT).outcome == "infeasible"


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


def test_a_sum_may_depend_on_a_condition() -> None:
    clauses = Clauses()
    left, right, condition = clauses.fresh("left"), clauses.fresh("right"), clauses.fresh("condition")
    clauses.at_most_if(condition, [(2, left), (1, right), (1, True), (5, False)], 3)
    assert not possible(clauses, left, right, condition)
    assert possible(clauses, left, right, negate(condition))
    assert possible(clauses, left, condition)


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("quota", range(4))
@pytest.mark.parametrize("limit", [5, 8, 14, 30])
def test_an_integer_of_several_lower_bounds(wide: bool, quota: int, limit: int) -> None:
    """Width (1, or 3 if wide) times quota (2 to 5) against a limit on twice that, beside 1."""
    clauses = Clauses()
    condition, enforced = clauses.fresh("wide"), clauses.fresh("enforced")
    order = Order(clauses, "quota", 0, 3)
    share = clauses.integer("share", 100)
    clauses.at_least(share, True, 2, order.above(1))
    clauses.at_least(share, condition, 6, order.above(3))
    clauses.at_least(share, False, 1000, [])
    clauses.at_most_if(enforced, [(1, True)], limit, integers=[(2, share)])
    fixed = [condition if wide else negate(condition), order.at(quota), enforced]
    fits = 2 * (3 if wide else 1) * (2 + quota) + 1 <= limit
    assert possible(clauses, *fixed) == fits
    for literal in fixed:
        clauses.add(literal)
    assert (sat.solve_cadical(clauses, EFFORT).holds is not None) == fits


def test_an_integer_is_at_most_its_last_value() -> None:
    clauses = Clauses()
    order = Order(clauses, "x", 0, 3)
    clauses.at_least(clauses.integer("most", 5), True, 1, order.above(2))
    clauses.add(order.ge(3))
    assert not possible(clauses)
    assert sat.solve_cadical(clauses, EFFORT).outcome == "infeasible"
