"""Rau's and swing modulo scheduling: tiny loops, and random ones, where the result is a schedule or a refusal."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings

from problems import Dep, Node, problem, problems, use
from twillgpu.baselines.heuristics import rau, swinging
from twillgpu.baselines.paths import longest, steps
from twillgpu.baselines.record import Found
from twillgpu.baselines.reservations import Reservations
from twillgpu.costs.record import Problem
from twillgpu.schedule.ask import Progress
from twillgpu.schedule.record import SearchOptions
from twillgpu.verify import Verified, check

STAGES = 4
OPTIONS = SearchOptions(max_stages=STAGES)
Scheduler = Callable[[Problem, SearchOptions, Progress], Found]
BOTH = pytest.mark.parametrize("schedule", [rau, swinging])


def found(tiny: Problem, schedule: Scheduler) -> Found:
    result = schedule(tiny, OPTIONS, lambda _: None)
    if result.outcome == "found":
        assert result.schedule is not None
        assert isinstance(check(tiny, result.schedule, max_stages=STAGES), Verified)
    else:
        assert result.schedule is None
        assert result.reason
    return result


@BOTH
def test_the_paper_s_example_is_scheduled_at_its_minimum(schedule: Scheduler) -> None:
    # S and O share the tensor unit: 2 cycles; O is carried over one iteration with 1 cycle.
    tiny = problem(
        [
            Node(name="S", uses=(use("tensor"),)),
            Node(name="P", uses=(use("exp"),)),
            Node(name="O", uses=(use("tensor"),)),
        ],
        [Dep(tail="S", head="P"), Dep(tail="P", head="O"), Dep(tail="O", head="O", distance=1)],
    )
    result = found(tiny, schedule)
    assert result.schedule is not None
    assert result.schedule.ii_cycles == 2


@BOTH
def test_a_recurrence_bounds_the_interval(schedule: Scheduler) -> None:
    # 3 + 4 cycles around a circuit of distance 2: ceil(7 / 2).
    tiny = problem(
        [Node(name="a", uses=(use("x", 3),)), Node(name="b", uses=(use("y", 4),))],
        [Dep(tail="a", head="b"), Dep(tail="b", head="a", distance=2)],
    )
    result = found(tiny, schedule)
    assert result.schedule is not None
    assert result.schedule.ii_cycles == 4


@BOTH
def test_an_interval_at_which_an_op_meets_itself_is_passed_over(schedule: Scheduler) -> None:
    # Held at offsets 0 and 3: the op meets itself at 3 and at 1 cycle, and a recurrence of 3 forbids 2.
    tiny = problem(
        [Node(name="a", uses=(use("x"), use("x", offset=3)), latency=3)],
        [Dep(tail="a", head="a", distance=1)],
    )
    result = found(tiny, schedule)
    assert result.schedule is not None
    assert result.schedule.ii_cycles == 4


def test_heights_are_longest_paths_to_the_end() -> None:
    tiny = problem(
        [Node(name="a", uses=(use("x", 2),)), Node(name="b", uses=(use("y", 5),))], [Dep(tail="a", head="b")]
    )
    assert longest(tiny, steps(tiny, 10), backward=True) == {"a": 7, "b": 5}
    assert longest(tiny, steps(tiny, 10)) == {"a": 0, "b": 2}


def test_candidates_hold_the_earliest_and_the_latest_free_start() -> None:
    tiny = problem(
        [Node(name="a", uses=(use("x", 3),)), Node(name="b", uses=(use("x", 2, offset=1),))],
    )
    table = Reservations(tiny, {"a": 0, "b": 0}, 8)
    table.place("a", 2)
    free = [start for start in range(8) if table.free("b", start)]
    # a holds the unit in slots 2 to 4; b holds it from 1 to 3 cycles after its start.
    assert free == [4, 5, 6, 7]
    assert next(s for s in table.candidates("b", 0, 7) if table.free("b", s)) == 4
    assert next(s for s in table.backward("b", 0, 7) if table.free("b", s)) == 7
    assert table.conflicts("b", 1) == {"a"}


@settings(max_examples=80, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(problems(max_ops=5))
@BOTH
def test_random_loops_get_a_verified_schedule_or_a_reason(schedule: Scheduler, tiny: Problem) -> None:
    found(tiny, schedule)
