"""Search, brute force and verifier agree on small random problems; a coarse search claims nothing that is false."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from embedding import admits
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from searching import EXACT, searched
from stretching import stretched

from exhaustive import brute_force
from problems import problems
from twillgpu.costs.record import Problem
from twillgpu.schedule import resolution
from twillgpu.schedule.record import SearchOptions, SearchResult

STAGES = 2
LONGEST = 10
"""Longest interval that brute force tries."""

quick = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
thorough = settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(autouse=True)
def _coarse_slots(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let short intervals be searched in slots too."""
    monkeypatch.setattr(resolution, "EXACT_SLOTS", 1)
    return iter(())


def exact(problem: Problem) -> SearchResult:
    return searched(problem, SearchOptions(resolution=EXACT, max_stages=STAGES))


def agrees_with_brute_force(problem: Problem) -> None:
    """Compare in cycles. Where rings must share bytes, the search may leave a gap open (places are not refuted)."""
    result = exact(problem)
    found = brute_force(problem, STAGES, longest=LONGEST)
    smallest = LONGEST + 1 if found is None else found[0]
    if result.status == "infeasible":
        assert found is None
    elif result.status == "optimal":
        assert result.lower_bound_cycles == smallest or (found is None and result.lower_bound_cycles >= smallest)
    else:
        assert problem.memories, result.status
        assert result.lower_bound_cycles <= smallest
    if found is not None:
        assert admits(problem, found[1], STAGES)


@quick
@given(problems(max_ops=3))
def test_the_search_finds_the_minimum_of_brute_force(problem: Problem) -> None:
    agrees_with_brute_force(problem)


@pytest.mark.slow
@thorough
@given(problems(max_ops=3))
def test_the_search_finds_the_minimum_of_brute_force_often(problem: Problem) -> None:
    agrees_with_brute_force(problem)


def claims_nothing_false(problem: Problem, options: SearchOptions) -> None:
    """Compare a coarse search with one in cycles, which the tests above compare with brute force."""
    coarse, fine = searched(problem, options), exact(problem)
    if fine.status == "optimal":
        assert fine.schedule is not None
        assert coarse.status != "infeasible"
        assert coarse.lower_bound_cycles <= fine.schedule.ii_cycles
        assert admits(problem, fine.schedule, STAGES, slot=2)
    if coarse.schedule is not None:
        assert coarse.schedule.ii_cycles >= fine.lower_bound_cycles
        assert fine.status != "infeasible"


def coarse_options() -> st.SearchStrategy[SearchOptions]:
    """Few slots per iteration; half of them satisfied with the first schedule found, so that nothing is refined."""
    return st.builds(
        SearchOptions,
        resolution=st.integers(min_value=2, max_value=7),
        gap=st.sampled_from((0.0, 10.0)),
        max_stages=st.just(STAGES),
    )


@quick
@given(stretched(), coarse_options())
def test_a_coarse_search_claims_nothing_false(problem: Problem, options: SearchOptions) -> None:
    claims_nothing_false(problem, options)


@pytest.mark.slow
@settings(thorough, max_examples=150)
@given(stretched(), coarse_options())
def test_a_coarse_search_claims_nothing_false_often(problem: Problem, options: SearchOptions) -> None:
    claims_nothing_false(problem, options)
