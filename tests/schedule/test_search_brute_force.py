"""Search, brute force and verifier agree on small random problems; a coarse search claims nothing that is false."""

from __future__ import annotations

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

QUICK = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
THOROUGH = settings(QUICK, max_examples=250)


@pytest.fixture(autouse=True)
def _coarse_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let short intervals be searched in slots too."""
    monkeypatch.setattr(resolution, "EXACT_SLOTS", 1)


def exact(problem: Problem) -> SearchResult:
    return searched(problem, SearchOptions(resolution=EXACT, max_stages=STAGES))


def agrees_with_brute_force(problem: Problem) -> None:
    """Compare in cycles. Where rings must share bytes, the search may leave a gap open: places are not refuted."""
    result = exact(problem)
    found = brute_force(problem, STAGES, longest=LONGEST)
    interval = LONGEST + 1 if found is None else found[0]
    if result.schedule is not None:
        # Brute force has rings at their floor only; deeper ones may share bytes where those cannot.
        deeper = any(ring.depth > ring.depth_floor for ring in result.schedule.buffers)
        assert result.schedule.ii_cycles >= interval or deeper
    if found is not None:
        assert result.schedule is not None
        assert result.lower_bound_cycles <= interval
        assert result.status == "optimal" or problem.memories
        assert admits(problem, found[1], STAGES)


@QUICK
@given(problems(max_ops=3))
def test_the_search_finds_the_minimum_of_brute_force(problem: Problem) -> None:
    agrees_with_brute_force(problem)


@pytest.mark.slow
@THOROUGH
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


@settings(QUICK, max_examples=20)
@given(stretched(factor=4), coarse_options())
def test_a_coarse_search_claims_nothing_false(problem: Problem, options: SearchOptions) -> None:
    claims_nothing_false(problem, options)


@pytest.mark.slow
@settings(THOROUGH, max_examples=60)
@given(stretched(factor=5), coarse_options())
def test_a_coarse_search_claims_nothing_false_often(problem: Problem, options: SearchOptions) -> None:
    claims_nothing_false(problem, options)
