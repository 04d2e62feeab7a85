"""From units to cycles: the order is kept, collisions of what had no length in units are resolved."""

from __future__ import annotations

from problems import Dep, Node, in_registers, problem, use
from twillgpu.costs.record import Problem
from twillgpu.machine.record import Groups, Registers
from twillgpu.schedule.paper.cycles import in_cycles
from twillgpu.schedule.paper.partition import broken_rules
from twillgpu.schedule.paper.record import JointAnswer
from twillgpu.schedule.record import Schedule
from twillgpu.verify import Verified, check


def laid_out(tiny: Problem, starts: dict[str, int], interval: int, *, stages: int = 2) -> Schedule | None:
    """Lay out a schedule in units of 50 cycles, all in one group, and verify what comes out."""
    answer = JointAnswer(outcome="sat", starts=starts, groups=dict.fromkeys(starts, 0), seconds=0.0)
    schedule = in_cycles(tiny, interval, answer, cycles_per_unit=50.0, lower=1, stages=stages)
    if schedule is not None:
        verdict = check(tiny, schedule, max_stages=stages)
        assert isinstance(verdict, Verified), verdict
    return schedule


def test_an_op_without_length_in_units_gets_its_time_in_cycles() -> None:
    # b rounds to 0 units and starts with a; in cycles the unit needs 100 + 4.
    tiny = problem([Node(name="a", uses=(use(cycles=100),)), Node(name="b", uses=(use(cycles=4),))])
    schedule = laid_out(tiny, {"a": 0, "b": 0}, 2)
    assert schedule is not None
    assert schedule.ii_cycles == 104


def test_overlap_on_a_unit_of_two_shares_is_kept() -> None:
    tiny = problem(
        [Node(name="a", uses=(use(cycles=110),)), Node(name="b", uses=(use(cycles=90),))], units={"alu": 2}
    )
    schedule = laid_out(tiny, {"a": 0, "b": 0}, 2)
    assert schedule is not None
    assert schedule.ii_cycles == 110


def test_stages_and_order_are_those_in_units() -> None:
    # b of the last iteration runs beside a: two stages of 100, where one iteration takes 200.
    tiny = problem(
        [Node(name="a", uses=(use(cycles=100),)), Node(name="b", uses=(use("mma", 100),))], [Dep(tail="a", head="b")]
    )
    schedule = laid_out(tiny, {"a": 0, "b": 2}, 2)
    assert schedule is not None
    assert (schedule.ii_cycles, schedule.start("b") - schedule.start("a")) == (100, 100)


def test_a_wait_is_kept_out_of_the_issue_of_its_group() -> None:
    # o issues for 120 cycles, 2 units; b waits for a and starts at its end in units, 20 cycles too soon.
    tiny = problem(
        [Node(name="a", latency=1), Node(name="b", latency=1), Node(name="o", uses=(use(cycles=120),))],
        [Dep(tail="a", head="b", blocking=True)],
    )
    schedule = laid_out(tiny, {"a": 0, "o": 0, "b": 2}, 3)
    assert schedule is not None
    assert schedule.ii_cycles == 121


def test_registers_that_do_not_suffice_in_cycles_give_none() -> None:
    tiny = problem(
        [Node(name="a", latency=100, value=in_registers(40)), Node(name="b", latency=1)],
        [Dep(tail="a", head="b")],
        registers=Registers(per_thread=24, per_sm=65536),
    )
    assert laid_out(tiny, {"a": 0, "b": 2}, 3) is None


def test_groups_that_break_no_rule() -> None:
    tiny = problem([Node(name="a"), Node(name="b")], groups=Groups(max=2, warps=(1, 4), max_warps=16))
    assert broken_rules(tiny, {"a": 0, "b": 1}) == ()


def test_groups_that_are_too_many_warps_are_named() -> None:
    tiny = problem(
        [Node(name="a", warps=4), Node(name="b", warps=4)], groups=Groups(max=2, warps=(1, 4), max_warps=4)
    )
    assert broken_rules(tiny, {"a": 0, "b": 1}) == ("warp_uniqueness (8 warps in all, a block has 4)",)


def test_a_load_outside_the_group_set_apart_for_it_is_named() -> None:
    tiny = problem(
        [Node(name="load", variable=True), Node(name="b")], groups=Groups(max=2, warps=(1, 4), max_warps=16)
    )
    assert broken_rules(tiny, {"load": 1, "b": 0}) == ("variable_latency (load in group 1)",)
