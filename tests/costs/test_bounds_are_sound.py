"""No schedule beats a bound, and none exists where a bound says so: against all schedules of tiny problems."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from problems import brute_force, problems
from twillgpu.costs.bounds import bounds
from twillgpu.costs.record import Problem


def check_bounds(problem: Problem, stages: int) -> None:
    found = bounds(problem)
    best = brute_force(problem, stages)
    if best is None:
        return
    interval, schedule = best
    assert not found.impossible, schedule
    assert found.binding.cycles <= interval, (found.binding, schedule)


@settings(max_examples=60, deadline=None)
@given(problems(max_ops=3), st.integers(min_value=1, max_value=3))
def test_no_schedule_beats_a_bound(problem: Problem, stages: int) -> None:
    check_bounds(problem, stages)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(problems(max_ops=4), st.integers(min_value=1, max_value=2))
def test_no_schedule_of_four_ops_beats_a_bound(problem: Problem, stages: int) -> None:
    check_bounds(problem, stages)
