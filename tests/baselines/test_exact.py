"""The smallest interval of a plan in cycles: derived by hand, and never above what any schedule of the plan has."""

from __future__ import annotations

from problems import Dep, Node, in_memory, in_registers, problem, use
from twillgpu.baselines.crowded import crowded, restless
from twillgpu.baselines.exact import Tightest, tightest
from twillgpu.baselines.orders import issue_order, restricted
from twillgpu.baselines.paths import crossing
from twillgpu.baselines.record import Plan
from twillgpu.costs.bounds import bounds
from twillgpu.costs.record import LegalPair, Problem
from twillgpu.machine.record import Groups, Memory, Registers
from twillgpu.schedule.solved import Effort

TWO = Groups(max=2, warps=(1, 4), max_warps=8)


def smallest(tiny: Problem, groups: dict[str, int], stages: int = 3) -> Tightest:
    lower = bounds(tiny).binding.cycles
    return tightest(tiny, groups, between=(lower, 40), stages=stages, effort=Effort(work=2.0, seconds=60.0))


def test_uses_of_a_unit_never_meet() -> None:
    # 3 and 2 cycles of one unit, and of a unit of two shares 1 and 2: neither pair fits at once.
    tiny = problem(
        [Node(name="a", uses=(use("x", 3), use("y", 3))), Node(name="b", uses=(use("x", 2), use("y", 2, amount=2)))],
        units={"x": 1, "y": 2},
    )
    found = smallest(tiny, {"a": 0, "b": 0})
    assert found.draft is not None
    assert (found.lower_cycles, found.draft.ii_cycles, found.infeasible) == (5, 5, False)


def test_a_wait_keeps_out_of_the_issue_of_its_group() -> None:
    # EXP issues for 3 cycles, ADD waits for GEMM: a fourth cycle in one group, none in two.
    tiny = problem(
        [
            Node(name="GEMM", uses=(use("tensor", 2),), issue=0),
            Node(name="ADD", uses=(use("alu", 1),)),
            Node(name="EXP", uses=(use("exp", 3),)),
        ],
        [Dep(tail="GEMM", head="ADD", blocking=True)],
        groups=TWO,
        barrier=0,
    )
    assert smallest(tiny, {"GEMM": 0, "ADD": 0, "EXP": 0}).lower_cycles == 4
    assert smallest(tiny, {"GEMM": 0, "ADD": 0, "EXP": 1}).lower_cycles == 3


def test_two_values_that_are_live_together_need_a_quota_for_both() -> None:
    # a (2 cycles, 40 registers) then b (4 cycles, 20): apart they take 6 cycles; 60 registers would do with 4.
    def with_registers(per_thread: int) -> Problem:
        return problem(
            [
                Node(name="a", uses=(use("x", 2),), value=in_registers(40)),
                Node(name="b", uses=(use("y", 4),), value=in_registers(20)),
            ],
            registers=Registers(per_thread=per_thread, per_sm=65536, quota_min=8, quota_step=4),
        )

    few, many = (smallest(with_registers(limit), {"a": 0, "b": 0}).lower_cycles for limit in (56, 60))
    assert (few, many) == (6, 4)


def test_what_no_interval_allows_is_infeasible() -> None:
    tiny = problem(
        [Node(name="a", uses=(use("x", 2),), value=in_registers(40))],
        registers=Registers(per_thread=32, per_sm=65536, quota_min=8, quota_step=8),
    )
    assert smallest(tiny, {"a": 0}).infeasible


def test_the_order_of_two_ops_on_a_unit_costs_the_time_that_the_first_holds_it() -> None:
    # Both take one cycle to issue, and hold the unit for 5 and 4: body after body, a then b is 9 cycles.
    tiny = problem([Node(name="a", uses=(use("x", 5),), issue=1), Node(name="b", uses=(use("x", 4),), issue=1)])
    groups = {"a": 0, "b": 0}
    plan = Plan(groups=tuple(groups.items()), orders=tuple(issue_order(tiny, [("a", 0), ("b", 0)])))
    binding = bounds(crossing(restricted(tiny, plan), groups)).binding
    assert binding.cycles == 9
    latencies = [edge.latency_cycles for edge in restricted(tiny, plan).edges]
    assert latencies == [5, 4]


def test_a_ring_that_never_fits_is_named_without_solving() -> None:
    # The load is two iterations ahead of its reader: two copies of 8 bytes all the time, and there are 12.
    tiny = problem(
        [Node(name="load", uses=(use("tma", 1),), value=in_memory(8)), Node(name="work", uses=(use("alu", 1),))],
        [Dep(tail="load", head="work"), Dep(tail="load", head="work", distance=-2, kind="order", latency=1)],
        memories=(Memory(name="smem", capacity_bytes=12, alignment_bytes=4),),
    )
    assert crowded(tiny) == "smem holds at all times, in this order, 2 of load: 16 bytes of 12 left"


def test_a_product_that_is_always_in_flight_leaves_no_pause() -> None:
    # s of the next iteration is issued before e of this one, and s of the one after that before e of the next.
    pause = LegalPair(rule="tiny_pause", relation="pause", first="s", second="e")
    tiny = problem(
        [Node(name="s", uses=(use("x", 4),), issue=1), Node(name="e", uses=(use("y", 4),))],
        [Dep(tail="s", head="e", blocking=True)],
        legality=(pause,),
    )

    def ordered(ahead: int) -> Problem:
        orders = issue_order(tiny, [("s", ahead), ("e", 0)])
        return restricted(tiny, Plan(groups=(("s", 0), ("e", 0)), orders=tuple(orders)))

    assert restless(ordered(0)) == ""
    assert restless(ordered(1)) == (
        "tiny_pause: s is waited for (by e) an iteration or more after its issue, in this order"
    )
