"""Gantt charts: bars are the reservation tables and issue times of the schedule, nothing more and nothing less."""

from collections import Counter
from dataclasses import replace

import pytest
from handmade import PROBLEM, SCHEDULE

from twillgpu.view.lanes import Bar, Chart, default_iterations, stacked, steady_chart, whole_chart
from twillgpu.view.period import Piece


def _cycles(chart: Chart, kind: str) -> Counter[tuple[str, str]]:
    sums: Counter[tuple[str, str]] = Counter()
    for lane in chart.lanes:
        for bar in lane.bars:
            if lane.kind == kind:
                sums[lane.name, bar.op] += (bar.stop - bar.start) * bar.height
    return sums


def test_a_period_holds_every_use_once() -> None:
    wanted = {(use.unit, op.name): use.cycles * use.amount for op in PROBLEM.ops for use in op.uses}
    assert _cycles(steady_chart(PROBLEM, SCHEDULE), "unit") == wanted


def test_every_op_is_in_the_row_of_its_group_only_for_its_issue_time() -> None:
    issue = {op.name: op.issue_cycles for op in PROBLEM.ops}
    wanted = {(SCHEDULE.groups[op.group].name, op.name): issue[op.name] for op in SCHEDULE.ops}
    assert _cycles(steady_chart(PROBLEM, SCHEDULE), "group") == wanted


def test_bars_stay_in_the_period_and_in_the_lane() -> None:
    chart = steady_chart(PROBLEM, SCHEDULE)
    for lane in chart.lanes:
        assert all(0 <= bar.start < bar.stop <= chart.stop == 100 for bar in lane.bars)
        assert all(bar.level >= 0 and bar.level + bar.height <= lane.capacity for bar in lane.bars)


def test_a_whole_loop_has_prologue_and_epilogue() -> None:
    """The last op starts at 160: two stages, and pv of iteration 2 ends at 160 + 200 + 50."""
    chart = whole_chart(PROBLEM, SCHEDULE, 3)
    assert chart.stop == 410
    tensor = next(lane for lane in chart.lanes if lane.name == "tensor")
    assert [(bar.op, bar.iteration, bar.start) for bar in tensor.bars] == [
        ("qk", 0, 10), ("qk", 1, 110), ("pv", 0, 160), ("qk", 2, 210), ("pv", 1, 260), ("pv", 2, 360),
    ]  # fmt: skip
    assert default_iterations(SCHEDULE) == 4


@pytest.mark.parametrize("iterations", [1, 2, 7])
def test_a_whole_loop_repeats_every_op(iterations: int) -> None:
    once, often = (_cycles(whole_chart(PROBLEM, SCHEDULE, count), "unit") for count in (1, iterations))
    assert often == {key: iterations * cycles for key, cycles in once.items()}


def test_units_that_nothing_uses_have_no_lane() -> None:
    idle = replace(PROBLEM, units=(*PROBLEM.units, replace(PROBLEM.units[0], name="idle")))
    assert [lane.name for lane in steady_chart(idle, SCHEDULE).lanes] == ["issue", "mufu", "tensor", "g0", "g1"]


def test_what_shares_a_unit_is_piled_up_and_never_overlaps() -> None:
    pieces = (
        Piece(op="a", start=0, stop=10, age=0, amount=2),
        Piece(op="b", start=4, stop=6, age=0, amount=1),
        Piece(op="c", start=2, stop=8, age=1, amount=3),
    )
    bars = stacked(pieces)
    for cycle in range(10):
        levels = [
            level
            for bar in bars
            if bar.start <= cycle < bar.stop
            for level in range(bar.level, bar.level + bar.height)
        ]
        assert sorted(levels) == list(range(len(levels)))
        assert len(levels) == sum(piece.amount for piece in pieces if piece.start <= cycle < piece.stop)
    assert bars[0] == Bar(op="a", start=0, stop=10, iteration=0, level=0, height=2)
