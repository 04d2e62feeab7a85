"""The steady state found by the expansion is what adding up cell by cell gives."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twillgpu.errors import InputError
from twillgpu.verify.expand import Span, peak, steady_cycle, unroll

SPANS = st.lists(
    st.builds(
        lambda start, cycles, amount: Span(subject="a", start=start, end=start + cycles, amount=amount),
        st.integers(min_value=0, max_value=12),
        st.integers(min_value=0, max_value=9),
        st.integers(min_value=1, max_value=3),
    ),
    min_size=1,
    max_size=5,
)


@given(SPANS, st.integers(min_value=1, max_value=6))
def test_peak_is_the_most_of_any_cycle_of_a_long_run(spans: list[Span], interval: int) -> None:
    held: Counter[int] = Counter()
    for span in spans:
        for iteration in range(60):
            for cycle in range(span.start + iteration * interval, span.end + iteration * interval):
                held[cycle] += span.amount
    most = peak(spans, interval)
    if most is None:
        assert not held
        return
    assert most.amount == max(held.values())
    assert held[most.cycle] == most.amount
    assert sum(item.span.amount for item in most.held) == most.amount
    first = steady_cycle([span for span in spans if span.end > span.start], interval)
    assert first <= most.cycle < first + interval


def test_only_iterations_that_exist_are_seen() -> None:
    span = Span(subject="a", start=7, end=25, amount=1)
    found = unroll((span,), 10)
    # The period from 30 to 40 sees iterations 1 (17 to 35), 2 (27 to 45) and 3 (37 to 55).
    assert [(held.iteration, held.start, held.end) for held in found] == [(1, 17, 35), (2, 27, 45), (3, 37, 55)]


def test_a_span_that_never_ends_is_refused() -> None:
    span = Span(subject="far", start=0, end=10**9, amount=1)
    with pytest.raises(
        InputError, match=r"^far: it lasts from cycle 0 to 1000000000, more than 10000 intervals of 8"
    ):
        peak((span,), 8)


def test_late_starts_cost_nothing() -> None:
    most = peak((Span(subject="a", start=10**12, end=10**12 + 3, amount=1),), 2)
    assert most is not None
    assert most.amount == 2
