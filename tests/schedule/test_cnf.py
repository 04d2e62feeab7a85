"""Clauses for sums and cliques: exactly the assignments that the definition allows, enumerated."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pysat.solvers import Solver

from twillgpu.schedule.cnf import Cnf
from twillgpu.schedule.literals import Clauses


def allowed(clauses: Clauses) -> set[tuple[bool, ...]]:
    """Return the assignments of the model's own variables that its clauses admit."""
    cnf = Cnf(clauses)
    count = len(clauses.names)
    with Solver(name="cadical153", bootstrap_with=[list(clause) for clause in cnf.clauses]) as solver:
        return {
            values
            for values in product((False, True), repeat=count)
            if solver.solve([v if value else -v for v, value in enumerate(values, 1)])
        }


@pytest.mark.parametrize("count", range(1, 11))
@pytest.mark.parametrize("exactly", [False, True])
def test_one_of(count: int, exactly: bool) -> None:
    clauses = Clauses()
    literals = [clauses.fresh(str(index)) for index in range(count)]
    if exactly:
        clauses.exactly_one(literals)
    else:
        clauses.at_most([(1, literal) for literal in literals], 1)
    least = 1 if exactly else 0
    assert allowed(clauses) == {
        values for values in product((False, True), repeat=count) if least <= sum(values) <= 1
    }


def chains(weights: list[int]) -> Iterator[list[int]]:
    """Yield what a chain over ``weights`` may be: nothing, or everything from some position on."""
    for first in range(len(weights) + 1):
        yield [0] * first + [1] * (len(weights) - first)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    st.lists(st.integers(1, 9), max_size=6),
    st.lists(st.integers(1, 9), max_size=3),
    st.integers(0, 30),
    st.booleans(),
)
def test_sums(weights: list[int], steps: list[int], limit: int, liftable: bool) -> None:
    clauses = Clauses()
    terms = [(weight, clauses.fresh("x")) for weight in weights]
    chain = [(step, clauses.fresh("c")) for step in steps]
    lifted = [clauses.fresh("lifted")] if liftable else []
    for (_, first), (_, second) in pairwise(chain):
        clauses.imply([first], second)
    if lifted:
        clauses.at_most_if(-lifted[0], [*terms, *chain], limit)
    else:
        clauses.at_most(terms, limit, chain=chain)
    expected = {
        (*values, *(bool(value) for value in held), *up)
        for values in product((False, True), repeat=len(weights))
        for held in chains(steps)
        for up in product((False, True), repeat=len(lifted))
        if any(up)
        or sum(w for w, value in zip(weights, values, strict=True) if value)
        + sum(w for w, value in zip(steps, held, strict=True) if value)
        <= limit
    }
    assert allowed(clauses) == expected


def test_a_literal_may_be_in_a_sum_twice() -> None:
    clauses = Clauses()
    first, second = clauses.fresh("first"), clauses.fresh("second")
    clauses.at_most([(2, first), (2, first), (1, second)], 4)
    assert allowed(clauses) == {(False, False), (False, True), (True, False)}


def test_equal_remainders_are_stated_once() -> None:
    """Two sums that differ in their first term share the diagram of the rest."""

    def size(count: int) -> int:
        clauses = Clauses()
        rest = [(weight, clauses.fresh("rest")) for weight in (2, 3, 5, 7, 11, 13)]
        for _ in range(count):
            clauses.at_most([(1, clauses.fresh("own")), *rest], 17)
        return len(Cnf(clauses).clauses)

    assert size(4) - size(1) < size(1)


def test_long_sums_need_no_recursion() -> None:
    clauses = Clauses()
    clauses.at_most([(1, clauses.fresh("x")) for _ in range(3000)], 2)
    assert len(Cnf(clauses).clauses) < 20000
