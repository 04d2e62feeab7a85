"""``take_schedule``: a schedule from anywhere is verified, or one is found."""

from dataclasses import replace
from pathlib import Path

import pytest

import twillgpu
from twillgpu.errors import InputError
from twillgpu.inputs import Priced
from twillgpu.schedule.jsonform import ScheduleFile, write_schedule
from twillgpu.schedule.record import Schedule, SearchOptions, SearchResult

DATA = Path(__file__).parent / "graph" / "data"


@pytest.fixture(scope="module")
def priced() -> Priced:
    """The paper's Figure 1."""
    return twillgpu.load_problem(DATA / "paper_figure_1.json")


@pytest.fixture(scope="module")
def result(priced: Priced) -> SearchResult:
    """What the search says of it."""
    return twillgpu.find_schedule(priced).result


def test_without_a_schedule_it_searches(priced: Priced, result: SearchResult) -> None:
    taken = twillgpu.take_schedule(priced)
    assert taken.verified is not None
    assert taken.run is not None
    assert taken.result == taken.run.result
    assert taken.verified.schedule == result.schedule


def test_a_file_a_schedule_and_a_result_are_taken_alike(priced: Priced, result: SearchResult, tmp_path: Path) -> None:
    assert result.schedule is not None
    path = tmp_path / "found.json"
    path.write_text(write_schedule(priced.problem, result, priced.limits), encoding="utf-8")
    for given in (twillgpu.load_schedule(path), result.schedule, result):
        taken = twillgpu.take_schedule(priced, given)
        assert taken.verified is not None
        assert taken.verified.schedule == result.schedule
        assert (taken.run, taken.notes) == (None, ())


def broken(schedule: Schedule) -> Schedule:
    """Start every op at once."""
    return replace(schedule, ops=tuple(replace(op, start_cycle=0) for op in schedule.ops))


def test_a_broken_schedule_raises_the_first_rule_and_where_it_is_from(priced: Priced, result: SearchResult) -> None:
    assert result.schedule is not None
    bad = broken(result.schedule)
    with pytest.raises(InputError, match=r"^schedule: the schedule has 3 violations, first dependence: "):
        twillgpu.take_schedule(priced, bad)
    with pytest.raises(InputError, match=r"^mine\.json: the schedule has 3 violations, first dependence: "):
        twillgpu.take_schedule(priced, ScheduleFile(schedule=bad, stages=None, where="mine.json"))


def test_stages_that_a_file_claims_are_checked(priced: Priced, result: SearchResult) -> None:
    assert result.schedule is not None
    with pytest.raises(InputError, match="first completion: "):
        twillgpu.take_schedule(priced, ScheduleFile(schedule=result.schedule, stages=1))


def test_graphs_have_no_program(priced: Priced, result: SearchResult) -> None:
    with pytest.raises(InputError, match="graph JSON has no kernel; give the kernel itself"):
        twillgpu.take_schedule(priced, result).program()


def test_a_search_that_finds_nothing_is_no_error_until_its_program_is_asked_for() -> None:
    priced = twillgpu.load_problem(DATA / "register_limited.json")
    taken = twillgpu.take_schedule(priced, options=SearchOptions(max_stages=1, time_limit_seconds=1e-6))
    assert taken.verified is None
    assert taken.nothing().what.startswith("no schedule was found, stopped at the time limit of ")
