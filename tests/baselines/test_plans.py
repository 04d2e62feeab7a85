"""Baselines on tiny loops: intervals derived by hand, and what a way does not apply to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from problems import Dep, Node, in_memory, in_registers, problem, use
from twillgpu.baselines.complete import complete
from twillgpu.baselines.loops import (
    SEQUENTIAL,
    buffers_way,
    consumers_way,
    load_pipelining,
    producer_consumer,
    sequential,
)
from twillgpu.baselines.orders import contradictory, issue_order, restricted
from twillgpu.baselines.record import Found, Plan, Unsuited, Way
from twillgpu.baselines.roles import program_order, roles
from twillgpu.costs.record import Problem
from twillgpu.machine.record import Groups, Memory, Registers
from twillgpu.schedule.record import SearchOptions
from twillgpu.verify import Verified, check

OPTIONS = SearchOptions(max_stages=5)
TWO = Groups(max=2, warps=(1, 4), max_warps=16)


def loaded(*, memory: int = 1024, groups: Groups | None = None) -> Problem:
    """A load (4 cycles of the copy engine, 10 until its data is there) that a 3-cycle op reads."""
    return problem(
        [
            Node(name="load", uses=(use("tma", 4),), latency=10, issue=1, variable=True, value=in_memory(4)),
            Node(name="work", uses=(use("alu", 3),), value=in_registers(8)),
        ],
        [Dep(tail="load", head="work", blocking=True)],
        memories=(Memory(name="smem", capacity_bytes=memory, alignment_bytes=4),),
        groups=groups,
    )


def completed(tiny: Problem, plan: Plan | Unsuited, way: Way = SEQUENTIAL) -> Found:
    assert isinstance(plan, Plan)
    found = complete(tiny, way, plan, OPTIONS, lambda _: None)
    if found.schedule is not None:
        assert isinstance(check(tiny, found.schedule, max_stages=OPTIONS.max_stages), Verified)
    return found


def interval(found: Found) -> int:
    assert found.schedule is not None, found.reason
    return found.schedule.ii_cycles


def test_sequential_waits_for_loads_and_does_not_overlap_iterations() -> None:
    # 10 cycles until the data is there, 3 cycles of work, then the next iteration.
    assert interval(completed(loaded(), sequential(loaded()))) == 13


def test_two_buffers_hide_the_latency_of_a_load_behind_one_iteration() -> None:
    # M(work) >= M(load) + 10, and the load two iterations later waits until the buffer has been read, 3 cycles and
    # 1 for the barrier: M(load) + 2 I >= M(work) + 4. So 2 I >= 14.
    assert interval(completed(loaded(), load_pipelining(loaded(), 2))) == 7


def test_with_more_buffers_the_release_of_a_buffer_is_left() -> None:
    # With n buffers, n I >= 14: 5 and 4. But the load at the top of a body (1 cycle) takes the buffer that the work
    # of the body before has read, 3 cycles and 1 for the barrier: I >= 5 however many there are.
    assert [interval(completed(loaded(), load_pipelining(loaded(), n))) for n in (3, 4)] == [5, 5]


def test_buffers_that_the_memory_lacks_are_the_rule_that_is_broken() -> None:
    # Two loads in flight and one being read: three copies of 4 bytes, and there are 8.
    found = completed(loaded(memory=8), load_pipelining(loaded(memory=8), 4), buffers_way(4))
    assert (found.outcome, found.rule) == ("infeasible", "memory_capacity")


def test_a_producer_runs_ahead_as_far_as_it_must() -> None:
    # The model has no latency for a load that streams: the copy engine's 4 cycles are the limit.
    tiny = loaded(groups=TWO)
    found = completed(tiny, producer_consumer(tiny, 1), consumers_way(1))
    assert interval(found) == 4
    assert found.schedule is not None
    assert [op.group for op in found.schedule.ops] == [0, 1]


def test_loops_without_loads_have_nothing_to_pipeline() -> None:
    tiny = problem([Node(name="a", uses=(use(),))])
    for plan in (load_pipelining(tiny, 2), producer_consumer(tiny, 1)):
        assert isinstance(plan, Unsuited)
        assert "no load of variable latency" in plan.reason


def test_too_few_registers_are_the_rule_that_is_broken() -> None:
    # The work's 8 registers and the overhead of 20 are more than the 24 that a thread may have.
    few = Registers(per_thread=24, per_sm=65536, overhead_per_thread=20, quota_min=24, quota_step=8)
    tiny = replace(loaded(), registers=few)
    found = completed(tiny, sequential(tiny))
    assert (found.outcome, found.schedule) == ("infeasible", None)
    assert "register" in found.reason


def test_a_product_one_iteration_ahead_overlaps_the_work_on_the_one_before() -> None:
    # s (tensor, 4 cycles, issue 1) feeds e (alu, 4 cycles). Depth 1: s's latency of 4 is waited for, then e: 8, less
    # the issue of the next s, which may begin when e is issued: 8. Depth 2: s of the next iteration runs under e: 5,
    # for 1 cycle of issue and 4 of work.
    tiny = problem(
        [
            Node(name="load", uses=(use("tma", 1),), variable=True, value=in_memory(4)),
            Node(name="s", uses=(use("tensor", 4),), issue=1, value=in_registers(8)),
            Node(name="e", uses=(use("alu", 4),), value=in_registers(8)),
        ],
        [Dep(tail="load", head="s"), Dep(tail="s", head="e", blocking=True)],
        groups=TWO,
    )
    tiny = replace(tiny, ops=tuple(replace(op, kind="mma") if op.name == "s" else op for op in tiny.ops))
    assert interval(completed(tiny, producer_consumer(tiny, 1))) == 8
    assert interval(completed(tiny, producer_consumer(tiny, 2))) == 5


def test_issue_order_closes_the_body() -> None:
    tiny = problem([Node(name="a", uses=(use(cycles=2),)), Node(name="b", uses=(use(cycles=3),))])
    edges = [(e.tail, e.head, e.latency_cycles, e.distance) for e in issue_order(tiny, [("a", 1), ("b", 0)])]
    # b of this iteration after a of the next; a of the next but one after b.
    assert edges == [("a", "b", 2, -1), ("b", "a", 3, 2)]


def test_an_order_against_the_dependences_is_contradictory() -> None:
    tiny = problem([Node(name="a", uses=(use(),)), Node(name="b", uses=(use(),))], [Dep(tail="a", head="b")])
    backwards = Plan(groups=(("a", 0), ("b", 0)), orders=tuple(issue_order(tiny, [("b", 1), ("a", 0)])))
    assert contradictory(restricted(tiny, backwards))
    found = completed(tiny, backwards)
    assert (found.outcome, found.rule) == ("infeasible", "dependence")


def test_parts_are_sub_tiles_and_what_they_share_joins_the_first() -> None:
    names = ("x_0", "x_1", "y_0", "y_1", "shared")
    tiny = problem([Node(name=name, uses=(use(),), value=in_registers(8)) for name in names])
    assert roles(tiny).parts == (("x_0", "y_0", "shared"), ("x_1", "y_1"))


def test_a_narrower_copy_follows_the_other_readers_of_the_wide_tile() -> None:
    nodes = [
        Node(name="wide", value=in_registers(32)),
        Node(name="total", value=in_registers(1)),
        Node(name="other", value=in_registers(32)),
        Node(name="narrow", value=in_registers(16)),
    ]
    deps = [Dep(tail="wide", head="total"), Dep(tail="wide", head="narrow")]
    assert program_order(problem(nodes, deps)) == ("wide", "total", "narrow", "other")


@pytest.mark.parametrize("copies", [2, 3])
def test_loads_have_the_buffers_that_their_name_says(copies: int) -> None:
    found = completed(loaded(), load_pipelining(loaded(), copies))
    assert found.schedule is not None
    assert found.schedule.buffers[0].depth_floor <= copies
