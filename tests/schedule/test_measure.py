"""What the secondary objectives of a schedule are, each worked out by hand; and canonical group numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from problems import Dep, Node, in_registers, problem, use
from twillgpu.costs.record import Problem, RuleOptions
from twillgpu.machine.record import Groups
from twillgpu.schedule.measure import length_cycles, measured, stage_count
from twillgpu.schedule.partition import canonical, cost, crossings, designated, widths
from twillgpu.schedule.record import Group, Schedule, ScheduledOp, SearchOptions

# load (variable latency, 1 warp) -> mul (4 warps, hand-off 2) -> exp and sum (4 warps); exp -> sum as well.
NODES = (
    Node(name="load", variable=True, latency=6),
    Node(name="mul", latency=5, warps=4, value=in_registers(8), handoff=2),
    Node(name="exp", latency=3, warps=4, value=in_registers(8), handoff=4),
    Node(name="sum", latency=0, warps=4),
)
DEPS = (
    Dep(tail="load", head="mul"),
    Dep(tail="mul", head="exp"),
    Dep(tail="mul", head="sum"),
    Dep(tail="exp", head="sum"),
)
PROBLEM = problem(NODES, DEPS, groups=Groups(max=4, warps=(1, 4), max_warps=16))


def schedule(interval: int, **placed: tuple[int, int]) -> Schedule:
    """Return a schedule of (start, group) per op; groups are 4 warps wide with 40 registers, group 0 1 and 24."""
    count = 1 + max(group for _, group in placed.values())
    return Schedule(
        graph="tiny",
        machine="tiny",
        ii_cycles=interval,
        ops=tuple(ScheduledOp(name=name, start_cycle=start, group=group) for name, (start, group) in placed.items()),
        groups=tuple(
            Group(name=f"g{index}", warps=4 if index else 1, registers_per_thread=40 if index else 24)
            for index in range(count)
        ),
        buffers=(),
    )


APART = schedule(8, load=(0, 0), mul=(0, 1), exp=(7, 2), sum=(14, 2))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mixed", 0),
        # mul's value to the group of exp and sum: 2, once for both; load has no hand-off to pay.
        ("handoff", 2),
        # (load, group 1) and (mul, group 2).
        ("barriers", 2),
        ("warps", 1 + 4 + 4),
        ("groups", 3),
        # The last op has no latency and starts at 14: 15 cycles, two stages of 8.
        ("stages", 2),
        ("registers", 32 * (24 + 4 * 40 + 4 * 40)),
        ("length", 15),
    ],
)
def test_each_objective(name: str, value: int) -> None:
    assert measured(PROBLEM, APART, (name,)) == ((name, value),)


def test_they_come_in_the_order_asked_for() -> None:
    order = SearchOptions().objective
    assert tuple(name for name, _ in measured(PROBLEM, APART, order)) == order
    assert measured(PROBLEM, APART, ("groups", "mixed")) == (("groups", 3), ("mixed", 0))


def test_mixing_counts_ops_beside_loads_and_in_wider_groups() -> None:
    # mul and exp sit beside load in group 0: two strangers; load sits in a group wider than it needs: a third.
    together = schedule(8, load=(0, 0), mul=(0, 0), exp=(5, 0), sum=(9, 1))
    assert measured(PROBLEM, together, ("mixed",)) == (("mixed", 3),)
    # Where nothing is set apart, only the width counts.
    free = replace(PROBLEM, rules=RuleOptions(variable_latency="free"))
    assert measured(free, together, ("mixed",)) == (("mixed", 1),)
    alone = replace(PROBLEM, groups=Groups(max=1, warps=(1, 4), max_warps=4))
    assert measured(alone, schedule(8, load=(0, 0), mul=(0, 0), exp=(5, 0), sum=(9, 0)), ("mixed",)) == (
        ("mixed", 1),
    )


def test_every_receiving_group_pays_for_its_own_copy() -> None:
    # mul to the groups of exp and of sum, exp to the group of sum: 2 + 2 + 4; with load's wait, 4 barriers.
    spread = schedule(20, load=(0, 0), mul=(0, 1), exp=(7, 2), sum=(14, 3))
    assert measured(PROBLEM, spread, ("handoff", "barriers")) == (("handoff", 8), ("barriers", 4))


def test_length_and_stages_of_one_op() -> None:
    alone = problem([Node(name="a", latency=5)])
    assert [stage_count(alone, schedule(interval, a=(0, 0))) for interval in (5, 4, 1)] == [1, 2, 5]
    assert length_cycles(alone, schedule(4, a=(3, 0))) == 8


def test_a_group_is_as_narrow_as_the_machine_and_its_ops_allow() -> None:
    tiny = problem(
        [Node(name="a"), Node(name="b", warps=2), Node(name="c", warps=3)],
        groups=Groups(max=4, warps=(1, 2, 4, 8), max_warps=16),
    )
    assert widths(tiny, {"a": 0, "b": 1, "c": 2}) == [1, 2, 4]
    assert widths(tiny, {"a": 0, "b": 0, "c": 0}) == [4]
    # A group that lost its ops has no width.
    assert widths(tiny, {"a": 0, "b": 0, "c": 2}) == [2, 0, 4]


def test_crossings_are_counted_per_receiving_group() -> None:
    spread = crossings(PROBLEM, {"load": 0, "mul": 1, "exp": 2, "sum": 2})
    assert {key: len(edges) for key, edges in spread.items()} == {("load", 1): 1, ("mul", 2): 2}


def test_the_cost_of_a_partition_leaves_out_what_needs_times() -> None:
    where = {"load": 0, "mul": 1, "exp": 2, "sum": 2}
    assert cost(PROBLEM, where, ("stages", "groups", "length", "handoff")) == (3, 2)


def test_groups_are_numbered_by_their_first_op_and_loads_stay_in_group_0() -> None:
    assert canonical(PROBLEM, {"load": 0, "mul": 3, "exp": 1, "sum": 3}) == {"load": 0, "mul": 1, "exp": 2, "sum": 1}
    # An op beside the loads stays there, whatever its place in the order.
    assert canonical(PROBLEM, {"load": 0, "mul": 2, "exp": 0, "sum": 1}) == {"load": 0, "mul": 1, "exp": 0, "sum": 2}
    plain = problem([Node(name="a", uses=(use(),)), Node(name="b")], groups=Groups(max=2, warps=(1,), max_warps=2))
    assert canonical(plain, {"a": 1, "b": 0}) == {"a": 0, "b": 1}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (PROBLEM, True),
        (replace(PROBLEM, rules=RuleOptions(variable_latency="iff")), True),
        (replace(PROBLEM, rules=RuleOptions(variable_latency="free")), False),
        (replace(PROBLEM, groups=Groups(max=1, warps=(1, 4), max_warps=16)), False),
        (problem(NODES[1:], DEPS[1:], groups=PROBLEM.groups), False),
    ],
)
def test_group_0_is_set_apart_where_there_are_loads_and_groups_to_choose(changed: Problem, *, expected: bool) -> None:
    assert designated(changed) is expected
