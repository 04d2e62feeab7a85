"""Search, brute force and verifier agree on small random problems; a coarse search claims nothing that is false."""

from __future__ import annotations

import pytest
from embedding import admits
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from searching import EXACT, searched
from stretching import stretched

from exhaustive import brute_force
from problems import Node, problem, problems, use
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


def exact(tiny: Problem) -> SearchResult:
    return searched(tiny, SearchOptions(resolution=EXACT, max_stages=STAGES))


def agrees_with_brute_force(tiny: Problem) -> None:
    """Compare in cycles. Where rings must share bytes, the search may leave a gap open: places are not refuted."""
    result = exact(tiny)
    found = brute_force(tiny, STAGES, longest=LONGEST)
    interval = LONGEST + 1 if found is None else found[0]
    if result.schedule is not None:
        # Brute force has rings at their floor only; deeper ones may share bytes where those cannot.
        deeper = any(ring.depth > ring.depth_floor for ring in result.schedule.buffers)
        assert result.schedule.ii_cycles >= interval or deeper
    if found is not None:
        assert result.schedule is not None
        assert result.lower_bound_cycles <= interval
        assert result.status == "optimal" or tiny.memories
        assert admits(tiny, found[1], STAGES)


@QUICK
@given(problems(max_ops=3))
def test_the_search_finds_the_minimum_of_brute_force(tiny: Problem) -> None:
    agrees_with_brute_force(tiny)


@pytest.mark.slow
@THOROUGH
@given(problems(max_ops=3))
def test_the_search_finds_the_minimum_of_brute_force_often(tiny: Problem) -> None:
    agrees_with_brute_force(tiny)


def claims_nothing_false(tiny: Problem, options: SearchOptions) -> None:
    """Compare a coarse search with one in cycles, which the tests above compare with brute force."""
    coarse, fine = searched(tiny, options), exact(tiny)
    if fine.status == "optimal":
        assert fine.schedule is not None
        assert coarse.schedule is not None
        assert coarse.lower_bound_cycles <= fine.schedule.ii_cycles
        assert admits(tiny, fine.schedule, STAGES, slot=2)
    if coarse.schedule is not None:
        assert coarse.schedule.ii_cycles >= fine.lower_bound_cycles
        assert fine.status != "infeasible"


def test_rounding_up_may_ask_for_more_than_any_schedule_in_cycles_needs() -> None:
    """Before: in slots of 8 the two uses take 16 + 16 cycles, which is beyond the serial interval in cycles, 22.

    So nothing was found, and the search called that a limit although none was reached.
    """
    tiny = problem([Node(name="a", uses=(use(cycles=10),)), Node(name="b", uses=(use(cycles=9),))])
    result = searched(tiny, SearchOptions(resolution=2, max_stages=STAGES))
    assert (result.status, result.lower_bound_cycles) == ("optimal", 19)


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
def test_a_coarse_search_claims_nothing_false(tiny: Problem, options: SearchOptions) -> None:
    claims_nothing_false(tiny, options)


@pytest.mark.slow
@settings(THOROUGH, max_examples=60)
@given(stretched(factor=5), coarse_options())
def test_a_coarse_search_claims_nothing_false_often(tiny: Problem, options: SearchOptions) -> None:
    claims_nothing_false(tiny, options)
