"""The slot of a coarse search, the stages allowed, and the interval beyond which nothing new is possible."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, assume, given, settings

from exhaustive import schedules
from problems import Dep, Node, problem, problems, use
from twillgpu.costs.bounds import bounds
from twillgpu.costs.record import Problem
from twillgpu.machine.record import Registers
from twillgpu.schedule.resolution import EXACT_SLOTS, PLAIN_SLOTS, default_stages, serial_interval, slot_cycles

STAGES = 2


def alone(cycles: int) -> Problem:
    return problem([Node(name="a", uses=(use(cycles=cycles),))])


def test_short_intervals_are_searched_cycle_by_cycle() -> None:
    assert slot_cycles(alone(EXACT_SLOTS), EXACT_SLOTS, 34) == 1
    assert slot_cycles(alone(900), 900, 1000) == 1


def test_with_one_group_and_no_registers_slots_are_cycles_for_longer() -> None:
    assert slot_cycles(alone(PLAIN_SLOTS), PLAIN_SLOTS, 34) == 1
    limited = replace(alone(PLAIN_SLOTS), registers=Registers(per_thread=255, per_sm=65536))
    assert slot_cycles(limited, PLAIN_SLOTS, 34) == 4


def test_a_slot_divides_what_fills_the_unit() -> None:
    # 1024 cycles in about 34 slots: 30 cycles each; 32 makes 32 slots without any rounding.
    assert slot_cycles(alone(1024), 1024, 34) == 32


def test_a_slot_fits_the_uses_rather_than_the_interval() -> None:
    # Eight uses of 125 cycles: 25 cycles a slot lose nothing, 1000 / 34 = 29 would lose 20 cycles each.
    eight = problem([Node(name=name, uses=(use(cycles=125),)) for name in "abcdefgh"])
    assert slot_cycles(eight, 1000, 34) == 25


def test_slots_in_which_the_fullest_unit_loses_nothing_come_first() -> None:
    # Ten uses of 256 cycles: in 30 slots of 86 they take 2,580 cycles, in 40 of 64 they fit exactly. Before, the 86
    # were chosen, and backward attention on Hopper was found at its bound only with some seeds.
    ten = problem([Node(name=name, uses=(use(cycles=256),)) for name in "abcdefghij"])
    assert slot_cycles(ten, 2560, 34) == 64


def test_slots_are_near_the_resolution_asked_for() -> None:
    for lower in (140, 700, 9973):
        for resolution in (8, 34, 60):
            slot = slot_cycles(alone(lower), lower, resolution)
            assert 0.7 * lower <= slot * resolution <= 1.3 * lower


@pytest.mark.parametrize(
    ("latencies", "lower", "stages"),
    [
        # A critical path of 12 cycles at interval 3 needs four; one more is allowed.
        ((4, 4, 4), 3, 5),
        # Three at least.
        ((1, 1), 9, 3),
    ],
)
def test_stages_allowed_by_default(latencies: tuple[int, ...], lower: int, stages: int) -> None:
    names = "abc"[: len(latencies)]
    chain = problem(
        [Node(name=name, latency=latency) for name, latency in zip(names, latencies, strict=True)],
        [Dep(tail=tail, head=head) for tail, head in pairwise(names)],
    )
    assert default_stages(chain, lower) == stages


def test_edges_to_later_iterations_add_no_stage() -> None:
    carried = problem([Node(name="a", latency=9), Node(name="b")], [Dep(tail="a", head="b", distance=1)])
    assert default_stages(carried, 9) == 3


def test_the_serial_interval_holds_one_op_after_the_other() -> None:
    # 3 + 2 + 1 cycles of latency in a row, each with its hand-off of 1 and a cycle of its edge for reading.
    chain = problem(
        [Node(name=name, latency=latency, handoff=1) for name, latency in (("a", 3), ("b", 2), ("c", 1))],
        [Dep(tail="a", head="b"), Dep(tail="b", head="c")],
    )
    assert serial_interval(chain) == (3 + 1) + (2 + 1) + (1 + 1) + 2


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(problems(max_ops=2))
def test_beyond_the_serial_interval_nothing_new_is_possible(tiny: Problem) -> None:
    """Where some interval just beyond has a schedule, so has one up to it."""
    if bounds(tiny).impossible:
        return
    last = serial_interval(tiny)
    assume(last <= 14)
    beyond = any(possible(tiny, interval) for interval in (last + 1, last + 3))
    assert beyond <= any(possible(tiny, interval) for interval in range(last, 0, -1))


def possible(tiny: Problem, interval: int) -> bool:
    return next(schedules(tiny, interval, STAGES), None) is not None


def test_the_serial_interval_is_reached() -> None:
    """Two uses of one unit leave no cycle free at 5; every edge adds to what is looked at."""
    pair = problem(
        [Node(name="a", uses=(use("alu", 3),)), Node(name="b", uses=(use("alu", 2),))],
        [Dep(tail="b", head="a", distance=1), Dep(tail="a", head="b")],
    )
    assert next(interval for interval in range(1, 20) if possible(pair, interval)) == 5
    assert serial_interval(replace(pair, edges=())) == 5
    assert serial_interval(pair) == 5 + 2
