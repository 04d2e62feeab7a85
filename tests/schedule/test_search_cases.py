"""The handed graphs have the minimum that brute force found, and the paper's example its shape."""

from __future__ import annotations

from dataclasses import replace

import pytest
from embedding import admits
from searching import handed, minimum, optimal, searched, starts

from twillgpu.schedule.record import SearchOptions
from twillgpu.verify import Verified, check

MINIMA = {
    # The tensor unit is used twice per iteration.
    "paper_figure_1": 2,
    # Latency 7 around a circuit of distance 2: ceil(7 / 2).
    "recurrence": 4,
    # One op holds the tensor unit at offsets 0 and 3: it meets itself at 1 and 3, not at 2.
    "not_monotone_free": 2,
    # The same beside a recurrence of 3: 2 is below the recurrence, 3 meets itself.
    "not_monotone": 4,
    # EXP issues for 3 cycles; ADD waits in the same group and needs a fourth.
    "blocking_one_group": 4,
    # ADD and EXP in two groups: EXP's 3 cycles remain.
    "blocking_two_groups": 3,
    # Nothing but the two uses of one unit.
    "register_free": 2,
    # A's 40 registers live 6 cycles; two of them would be 80 of 64.
    "register_limited": 6,
}


@pytest.mark.parametrize(("name", "interval"), MINIMA.items())
def test_minimum(name: str, interval: int) -> None:
    assert minimum(handed(name), SearchOptions()) == interval


def test_every_interval_below_the_minimum_says_why_not() -> None:
    # The bound of 3 is the recurrence; 3 itself is refuted by the solver, and without units it would do.
    result = searched(handed("not_monotone"), SearchOptions())
    assert [(item.first_cycles, item.last_cycles, item.families) for item in result.refuted] == [
        (1, 2, ()),
        (3, 3, ("capacity",)),
    ]
    assert result.refuted[0].reason == result.bounds.binding.reason
    assert result.bound_reason == (
        "3 cycles refuted: no schedule of at most 3 stages; forced by capacity (possible with more units)"
    )


def test_the_paper_s_example_overlaps_two_iterations() -> None:
    # One iteration after another: S 0, P 1, O 2, and the next S at 3. At interval 2, S and O share the tensor
    # unit, so O is one cycle later than there, after the S of the next iteration.
    schedule = optimal(handed("paper_figure_1"), SearchOptions())
    at = starts(schedule)
    assert at["S"] == 0
    assert at["S"] + schedule.ii_cycles < at["O"] == 3
    assert at["S"] + 1 <= at["P"] <= at["O"] - 1


def test_the_paper_s_own_starts_are_a_solution() -> None:
    # P one cycle later too, as in the paper's figure: S 0, P 2, O 3.
    problem = handed("paper_figure_1")
    schedule = optimal(problem, SearchOptions())
    later = {"S": 0, "P": 2, "O": 3}
    paper = replace(schedule, ops=tuple(replace(op, start_cycle=later[op.name]) for op in schedule.ops))
    assert isinstance(check(problem, paper), Verified)
    assert admits(problem, paper, stages=2)
    assert not admits(problem, paper, stages=1)
