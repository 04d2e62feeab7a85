"""The picture of a period: geometry and marks."""

from dataclasses import replace

import pytest
from handmade import PROBLEM, SCHEDULE

from twillgpu.costs.record import Problem
from twillgpu.schedule.record import Schedule, ScheduledOp
from twillgpu.view.picture import marks, picture


def _rows(problem: Problem, schedule: Schedule, name: str) -> tuple[str, str]:
    lines = picture(problem, schedule)
    place = next(index for index, line in enumerate(lines) if line.split()[:1] == [name])
    return lines[place].split()[1], lines[place + 1]


def test_a_column_of_the_tensor_unit_shows_op_and_age() -> None:
    row, ages = _rows(PROBLEM, SCHEDULE, "tensor")
    assert row == "D" * 5 + "B" * 25 + "D" * 20
    assert ages.strip() == "2" * 5 + "0" * 25 + "1" * 20


def test_a_short_period_has_a_column_per_cycle() -> None:
    row, _ = _rows(PROBLEM, replace(SCHEDULE, ii_cycles=50), "mufu")
    assert len(row) == 50


@pytest.mark.parametrize(("interval", "columns"), [(1, 1), (69, 69), (70, 70), (71, 36), (2048, 64), (100_000, 70)])
def test_columns_are_whole_cycles_and_fit(interval: int, columns: int) -> None:
    row, _ = _rows(PROBLEM, replace(SCHEDULE, ii_cycles=interval), "mufu")
    assert len(row) == columns


def test_a_shared_unit_shows_tenths_and_a_full_one_a_hash() -> None:
    full = replace(PROBLEM, units=(replace(PROBLEM.units[0], capacity=2), *PROBLEM.units[1:]))
    assert set(_rows(PROBLEM, SCHEDULE, "issue")[0]) == {"2", "."}
    assert set(_rows(full, SCHEDULE, "issue")[0]) == {"#", "."}


def test_letters_follow_the_starts_and_end_in_a_star() -> None:
    ops = tuple(ScheduledOp(name=f"v{index}", start_cycle=100 - index, group=0) for index in range(54))
    letters = marks(Schedule(graph="g", machine="m", ii_cycles=100, ops=ops, groups=(), buffers=()))
    assert (letters["v53"], letters["v2"], letters["v1"], letters["v0"]) == ("A", "z", "*", "*")
