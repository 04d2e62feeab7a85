"""Folding a schedule into one period."""

from dataclasses import replace

from handmade import PROBLEM, SCHEDULE
from hypothesis import given
from hypothesis import strategies as st

from twillgpu.view.period import Piece, covered, fold, group_pieces, unit_pieces, utilisation


def _piece(start: int, stop: int, age: int) -> Piece:
    return Piece(op="v", start=start, stop=stop, age=age, amount=1)


def test_work_inside_one_period_stays_whole() -> None:
    assert fold("v", 110, 40, 100) == (_piece(10, 50, 1),)


def test_work_across_the_end_of_a_period_is_cut_there() -> None:
    assert fold("v", 160, 50, 100) == (_piece(60, 100, 1), _piece(0, 10, 2))


def test_work_longer_than_the_period_overlaps_itself() -> None:
    assert fold("v", 0, 250, 100) == (_piece(0, 100, 0), _piece(0, 100, 1), _piece(0, 50, 2))


@given(start=st.integers(0, 500), cycles=st.integers(1, 500), interval=st.integers(1, 60))
def test_folding_keeps_every_cycle_and_its_slot(start: int, cycles: int, interval: int) -> None:
    pieces = fold("v", start, cycles, interval)
    unfolded = [piece.age * interval + slot for piece in pieces for slot in range(piece.start, piece.stop)]
    assert sorted(unfolded) == list(range(start, start + cycles))


def test_units_and_groups_of_the_hand_made_schedule() -> None:
    tensor = {(piece.op, piece.start, piece.stop, piece.age) for piece in unit_pieces(PROBLEM, SCHEDULE, "tensor")}
    assert tensor == {("qk", 10, 60, 0), ("pv", 60, 100, 1), ("pv", 0, 10, 2)}
    issue = {(piece.op, piece.start, piece.stop) for piece in group_pieces(PROBLEM, SCHEDULE, 0)}
    assert issue == {("load", 0, 2), ("qk", 10, 14), ("pv", 60, 64)}


def test_an_op_that_issues_for_no_time_is_still_seen() -> None:
    silent = replace(PROBLEM, ops=tuple(replace(op, issue_cycles=0) for op in PROBLEM.ops))
    assert {piece.op for piece in group_pieces(silent, SCHEDULE, 0)} == {"load", "qk", "pv"}


def test_utilisation_is_of_the_capacity_busiest_first() -> None:
    assert utilisation(PROBLEM, 100) == (("tensor", 1.0), ("mufu", 0.8), ("issue", 0.2))


def test_covered_counts_instances_of_the_overlap_only() -> None:
    pieces = (_piece(0, 10, 0), Piece(op="w", start=5, stop=30, age=1, amount=3))
    assert covered(pieces, 8, 12) == {("v", 0): 2, ("w", 1): 12}
