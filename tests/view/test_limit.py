"""Which limit ended a search, and what to try."""

from dataclasses import replace

import pytest
from handmade import RESULT

from twillgpu.schedule.record import SearchOptions, SearchResult
from twillgpu.view.claim import claim_section
from twillgpu.view.limit import limit_reached

FEASIBLE = replace(RESULT, status="feasible", lower_bound_cycles=90, work=20.1, limit="work")
UNSURE = "a solver call stopped at its own limit (7.2 of 20 units used); try another --seed or --resolution"
CLOSE = "the gap is within the 20.0% at which no finer slots are tried; a larger --resolution (here 34) may close it"


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (FEASIBLE, "stopped at the work limit of 20 units; try --work-limit 100"),
        (
            replace(FEASIBLE, options=SearchOptions(work_limit=1000)),
            "stopped at the work limit of 1,000 units; try --work-limit 5000 --time-limit 5000",
        ),
        (replace(FEASIBLE, limit="time"), "stopped at the time limit of 300 s; try --time-limit 1500"),
        (replace(FEASIBLE, seconds=301), "stopped at the time limit of 300 s; try --time-limit 1500"),
        (
            replace(FEASIBLE, work=7.21, limit="call"),
            UNSURE,
        ),
        (
            replace(FEASIBLE, status="limit", schedule=None, work=7.21, limit="call"),
            UNSURE,
        ),
        (
            replace(FEASIBLE, options=SearchOptions(gap=0.2)),
            CLOSE,
        ),
    ],
)
def test_a_search_without_proof_says_why_it_stopped(result: SearchResult, text: str) -> None:
    assert limit_reached(result) == text


def test_the_result_says_it_only_without_a_proof() -> None:
    assert "stopped at" in " ".join(claim_section(FEASIBLE))
    assert "stopped at" not in " ".join(claim_section(RESULT))
