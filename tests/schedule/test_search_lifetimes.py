"""Lifetimes of an assignment agree with the verifier's, and their peak with counting cycle by cycle."""

from __future__ import annotations

from collections import Counter
from itertools import islice

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from searching import groups, starts

from exhaustive import brute_force, schedules
from problems import Dep, Node, in_memory, in_registers, problem, problems
from twillgpu.costs.record import Problem
from twillgpu.machine.record import Groups, Memory
from twillgpu.schedule.lifetimes import Lifetime, Moment, buffer_lifetimes, instances, peak, register_lifetimes
from twillgpu.schedule.record import Schedule
from twillgpu.verify.registers import register_peak

STAGES = 2
TWO = Groups(max=2, warps=(1, 4), max_warps=8)


def lifetime(weight: int, begin: int, end: int, *, pinned: bool = False) -> Lifetime:
    return Lifetime(
        name="x",
        holder="0",
        weight=weight,
        begins=(Moment(op="a", cycles=begin),),
        ends=(Moment(op="a", cycles=end),),
        pinned=pinned,
    )


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.builds(
            lambda weight, begin, length, pinned: lifetime(weight, begin, begin + length, pinned=pinned),
            st.integers(min_value=1, max_value=9),
            st.integers(min_value=-9, max_value=9),
            st.integers(min_value=0, max_value=14),
            st.booleans(),
        ),
        max_size=5,
    ),
    st.integers(min_value=1, max_value=6),
)
def test_the_peak_is_that_of_counting_every_cycle(lifetimes: list[Lifetime], interval: int) -> None:
    held = Counter(dict.fromkeys(range(interval), 0))
    for item in lifetimes:
        begin, end = (0, interval) if item.pinned else item.span({"a": 0}, interval)
        for cycle in range(begin, end):
            held[cycle % interval] += item.weight
    assert peak(lifetimes, {"a": 0}, interval) == max(held.values())


def test_instances_live_at_once() -> None:
    assert [instances((0, length), 4) for length in (1, 4, 5, 8, 9)] == [1, 1, 2, 2, 3]


def test_a_moment_moves_with_its_op_and_the_interval() -> None:
    assert Moment(op="a", cycles=3, turns=2).at({"a": 5}, 10) == 5 + 3 + 20


def test_a_buffer_lives_a_cycle_at_least_a_register_need_not() -> None:
    for holder, end in (("smem", 5), ("tmem", 5), ("0", 4)):
        moment = (Moment(op="a"),)
        life = Lifetime(name="x", holder=holder, weight=1, begins=moment, ends=moment)
        assert life.span({"a": 4}, 10) == (4, end)


def test_a_value_handed_over_lives_in_two_groups_and_in_between() -> None:
    # u 0 to 3, its hand-off to 5; v in the other group reads it at 6 for its 2 cycles of issue.
    pair = problem(
        [
            Node(name="u", latency=3, value=in_registers(8), handoff=2, staging=16),
            Node(name="v", latency=2, issue=2),
        ],
        [Dep(tail="u", head="v")],
        memories=(Memory(name="smem", capacity_bytes=64, alignment_bytes=16),),
        groups=TWO,
    )
    at, where = {"u": 0, "v": 6}, {"u": 0, "v": 1}
    home, copy = register_lifetimes(pair, where)
    assert (home.holder, home.span(at, 9)) == ("0", (0, 5))
    assert (copy.holder, copy.span(at, 9)) == ("1", (6, 8))
    (staging,) = buffer_lifetimes(pair, where)
    assert (staging.name, staging.weight, staging.span(at, 9)) == ("u.staging", 16, (3, 6))
    assert buffer_lifetimes(pair, {"u": 0, "v": 0}) == []


def test_a_value_without_a_reader_fills_its_buffer_for_its_real_latency() -> None:
    # A load that streams: 0 cycles in the model, 5 in reality; with a reader, until the reader's end.
    alone = problem([Node(name="load", latency=5, variable=True, value=in_memory(8))])
    (life,) = buffer_lifetimes(alone, {"load": 0})
    assert life.span({"load": 2}, 9) == (2, 7)


def test_a_member_in_another_group_takes_no_copy() -> None:
    """Before: a class's value was counted twice in the group of its next member, as a copy and as its own."""
    chain = problem(
        [
            Node(name="a", latency=2, value=in_registers(8, alias="s")),
            Node(name="b", value=in_registers(8, alias="s")),
        ],
        [Dep(tail="a", head="b")],
        groups=TWO,
    )
    assert [life.holder for life in register_lifetimes(chain, {"a": 0, "b": 1})] == ["0", "1"]


@settings(max_examples=80, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(problems(max_ops=3), st.integers(min_value=0, max_value=2), st.integers(min_value=0, max_value=9))
def test_registers_and_buffers_are_those_of_the_verifier(tiny: Problem, more: int, skipped: int) -> None:
    smallest = brute_force(tiny, STAGES)
    if smallest is None:
        return
    for schedule in islice(schedules(tiny, smallest[0] + more, STAGES), skipped, skipped + 1):
        for group in range(len(schedule.groups)):
            assert _held(tiny, schedule, group) == _verified(tiny, schedule, group)
        assert _floors(tiny, schedule) == {ring.name: ring.depth_floor for ring in schedule.buffers}


def _held(tiny: Problem, schedule: Schedule, group: int) -> int:
    where = groups(schedule)
    lives = [life for life in register_lifetimes(tiny, where) if life.holder == str(group)]
    kept = sum(
        resident.registers_per_thread
        for resident in tiny.residents
        if any(where[user] == group for user in resident.users)
    )
    return peak(lives, starts(schedule), schedule.ii_cycles) + kept


def _verified(tiny: Problem, schedule: Schedule, group: int) -> int:
    most = register_peak(tiny, schedule, group)
    return most.amount if most else 0


def _floors(tiny: Problem, schedule: Schedule) -> dict[str, int]:
    at, interval = starts(schedule), schedule.ii_cycles
    return {
        life.name: 1 if life.pinned else instances(life.span(at, interval), interval)
        for life in buffer_lifetimes(tiny, groups(schedule))
    }
