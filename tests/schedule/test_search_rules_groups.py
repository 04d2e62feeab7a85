"""Rules on groups and registers: each decides the smallest interval of a tiny instance, derived beside it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from searching import groups, minimum, optimal, searched

from exhaustive import brute_force
from problems import Dep, Node, in_memory, in_registers, problem, use
from twillgpu.costs.record import LegalPair, Problem, RuleOptions
from twillgpu.graph.record import Resident
from twillgpu.machine.record import Groups, Registers
from twillgpu.schedule.record import SearchOptions

ONE = Groups(max=1, warps=(1, 4), max_warps=4)
TWO = Groups(max=2, warps=(1, 4), max_warps=8)
STAGES = 3


def pair(relation: str, first: str, second: str) -> LegalPair:
    return LegalPair(
        rule="tiny_rule", relation="apart" if relation == "apart" else "together", first=first, second=second
    )


# One op of 4 cycles of issue, and a short one that waits for another short one.
WAITING = problem(
    [Node(name="busy", uses=(use("x", 4),)), Node(name="first", latency=1), Node(name="second", latency=1)],
    [Dep(tail="first", head="second", blocking=True)],
    groups=TWO,
)
# A load that issues for 3 cycles, and one that waits for a fixed-latency op.
LOADS = problem(
    [
        Node(name="long", uses=(use("x", 3),), variable=True),
        Node(name="fixed", latency=1),
        Node(name="late", uses=(use("y", 1),), variable=True),
    ],
    [Dep(tail="fixed", head="late", kind="order", blocking=True)],
    groups=TWO,
)
# A circuit of two ops with 1 cycle each, and hand-offs of 3 and 2.
CIRCUIT = problem(
    [
        Node(name="a", latency=1, value=in_registers(8), handoff=3),
        Node(name="b", latency=1, value=in_registers(8), handoff=2),
    ],
    [Dep(tail="a", head="b"), Dep(tail="b", head="a", distance=1)],
    groups=TWO,
)
LIVE = problem([Node(name="a", latency=6, warps=4, value=in_registers(40))], groups=ONE)


def limited(per_thread: int, per_sm: int = 65536, **more: int) -> Problem:
    return replace(LIVE, registers=Registers(per_thread=per_thread, per_sm=per_sm, **more))


def flying(first: str, second: str) -> LegalPair:
    return LegalPair(rule="tiny_pause", relation="pause", first=first, second=second)


FLIGHT = problem([Node(name="a", latency=3), Node(name="b", latency=1)], [Dep(tail="a", head="b")], groups=ONE)
FLIGHTS = problem(
    [Node(name="a", latency=3), Node(name="b", latency=1), Node(name="c", latency=3), Node(name="d", latency=1)],
    [Dep(tail="a", head="b"), Dep(tail="c", head="d")],
    groups=ONE,
)
# a, b, c, d around a circuit of 3 + 1 + 3 + 1 cycles; c starts with b, a with d.
TURNS = problem(
    [Node(name="a", latency=4), Node(name="b", latency=0), Node(name="c", latency=4), Node(name="d", latency=0)],
    [
        Dep(tail="a", head="b"),
        Dep(tail="b", head="c"),
        Dep(tail="c", head="d"),
        Dep(tail="d", head="a", distance=1),
    ],
    groups=ONE,
)


CASES = {
    # concurrency: second waits, so it needs a cycle in which busy does not issue: 4 + 1.
    "concurrency": (replace(WAITING, groups=ONE), 5),
    # In another group it need not: busy's own 4 cycles.
    "concurrency in two groups": (WAITING, 4),
    # warp_uniqueness: one warp in all, so they share a group after all.
    "warp_uniqueness": (replace(WAITING, groups=replace(TWO, max_warps=1)), 5),
    "warp_uniqueness with room": (replace(WAITING, groups=replace(TWO, max_warps=2)), 4),
    # legality: busy and second in one group.
    "legality together": (replace(WAITING, legality=(pair("together", "busy", "second"),)), 5),
    # legality: a flies until b starts, 3 cycles later; the next a is issued after that. Without it, 3 + 1 cycles in
    # 3 stages.
    "legality pause": (replace(FLIGHT, legality=(flying("a", "b"),)), 4),
    "legality pause, not asked for": (FLIGHT, 2),
    # a until b, 3 cycles, and c until d, 3 cycles, in one group: both may fly together, but not by turns.
    "legality pause of two": (replace(FLIGHTS, legality=(flying("a", "b"), flying("c", "d"))), 4),
    # In a circuit b -> c, d -> a of the next iteration one of the two flies always, at any interval up to 8.
    "legality pause in a circuit": (replace(TURNS, legality=(flying("a", "b"), flying("c", "d"))), 9),
    "legality pause in two groups": (replace(TURNS, groups=TWO, legality=(flying("a", "b"), flying("c", "d"))), 8),
    # variable_latency: both loads in group 0, where late must not wait while long issues: 3 + 1.
    "variable_latency": (LOADS, 4),
    "variable_latency free": (replace(LOADS, rules=RuleOptions(variable_latency="free")), 3),
    # cross_warp_spill: together, 1 + 1 cycles around; apart, 1 + 3 + 1 + 2.
    "no cross_warp_spill": (CIRCUIT, 2),
    "cross_warp_spill": (replace(CIRCUIT, legality=(pair("apart", "a", "b"),)), 7),
    # Values may not cross: second stays with first; busy moves instead.
    "cross_group": (replace(WAITING, rules=RuleOptions(cross_group=False)), 4),
    # register_limit: 40 registers for 6 cycles; 64 hold one instance, 96 two.
    "register_limit": (limited(64), 6),
    "register_limit of two": (limited(96), 3),
    # With 20 of overhead, 96 hold one again.
    "register_limit and overhead": (limited(96, overhead_per_thread=20), 6),
    # The register file: 4 warps of 80 need 32 x 4 x 80.
    "register_limit of the file": (limited(96, 32 * 4 * 72), 6),
    "register_limit of the whole file": (limited(96, 32 * 4 * 80), 3),
    # A resident of 30 leaves 66 of 96: one instance.
    "register_limit beside a resident": (
        replace(limited(96), residents=(Resident(name="kept", registers_per_thread=30, users=("a",)),)),
        6,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_rule_decides_the_minimum(name: str) -> None:
    tiny, interval = CASES[name]
    assert minimum(tiny, SearchOptions(max_stages=STAGES)) == interval
    found = brute_force(tiny, STAGES)
    assert found is not None
    assert found[0] == interval


def test_exactly_the_loads_are_in_group_0_with_iff() -> None:
    # second may wait in the loads' group, beside a load that issues for 1 cycle; with iff it waits beside busy.
    tiny = replace(
        WAITING,
        ops=(*WAITING.ops, *problem([Node(name="load", uses=(use("y", 1),), variable=True)]).ops),
        units=(*WAITING.units, *problem([Node(name="load", uses=(use("y", 1),))]).units),
    )
    assert minimum(tiny) == 4
    assert minimum(replace(tiny, rules=RuleOptions(variable_latency="iff"))) == 5
    one = replace(tiny, groups=ONE, rules=RuleOptions(variable_latency="iff"))
    assert minimum(one) == 5


def test_the_paper_s_window_lasts_as_long_as_the_unit() -> None:
    # busy issues for 1 of its 4 cycles: second may wait beside the other 3, but not by the paper's rule.
    tiny = problem(
        [
            Node(name="busy", uses=(use("x", 4),), issue=1),
            Node(name="first", latency=1),
            Node(name="second", latency=1),
        ],
        [Dep(tail="first", head="second", blocking=True)],
        groups=ONE,
    )
    assert minimum(tiny) == 4
    assert minimum(replace(tiny, rules=RuleOptions(concurrency="paper"))) == 5


def test_an_edge_from_another_group_makes_its_head_wait() -> None:
    # a and b apart; b waits for a although nothing blocks, and c issues for 3 cycles in b's group: 3 + 1.
    tiny = problem(
        [Node(name="a", latency=1), Node(name="b", latency=1), Node(name="c", uses=(use("x", 3),))],
        [Dep(tail="a", head="b", kind="order", latency=1)],
        groups=TWO,
        legality=(pair("apart", "a", "b"), pair("together", "b", "c")),
    )
    assert minimum(tiny) == 4
    assert minimum(replace(tiny, legality=(pair("together", "a", "b"), pair("together", "b", "c")))) == 3


def test_values_in_registers_stay_where_they_are_if_they_must() -> None:
    # Apart, the circuit's values would have to cross: no schedule; values in SMEM may.
    tiny = replace(CIRCUIT, legality=(pair("apart", "a", "b"),), rules=RuleOptions(cross_group=False))
    assert brute_force(tiny, STAGES) is None
    in_smem = replace(tiny, ops=tuple(replace(op, value=in_memory(4)) for op in tiny.ops))
    schedule = optimal(in_smem)
    assert groups(schedule) == {"a": 0, "b": 1}


def test_registers_of_a_copy_count_in_the_group_that_receives_it() -> None:
    # b reads a's 40 registers for its 5 cycles of issue, in another group; two copies do not fit 64: 5 cycles.
    tiny = problem(
        [Node(name="a", latency=1, value=in_registers(40)), Node(name="b", uses=(use("x", 5),))],
        [Dep(tail="a", head="b")],
        units={"x": 2},
        registers=Registers(per_thread=64, per_sm=65536),
        groups=TWO,
        legality=(pair("apart", "a", "b"),),
    )
    assert minimum(tiny) == 5
    assert minimum(replace(tiny, registers=Registers(per_thread=96, per_sm=65536))) == 3


def test_a_value_that_a_synchronous_op_reads_is_free_at_its_start() -> None:
    # 40 registers from 0 to b's start at 2: an instance every 2 cycles; read by wgmma until it completes, 2 + 4.
    reader = Node(name="b", uses=(use("x", 2), use("y", 1)), latency=4, issue=2)
    tiny = problem(
        [Node(name="a", latency=2, value=in_registers(40)), reader],
        [Dep(tail="a", head="b")],
        registers=Registers(per_thread=64, per_sm=65536),
        groups=ONE,
    )
    assert minimum(tiny) == 2
    asynchronous = replace(tiny, edges=tuple(replace(edge, read_cycles=4) for edge in tiny.edges))
    assert minimum(asynchronous) == 6


@pytest.mark.parametrize(
    "limits",
    [
        Registers(per_thread=40, per_sm=65536),
        Registers(per_thread=36, per_sm=65536),
        # A machine with fewer registers than the usual smallest quota, as a machine or graph file may say.
        Registers(per_thread=20, per_sm=65536, quota_min=20),
        Registers(per_thread=72, per_sm=65536, quota_step=16),
    ],
)
def test_legal_quotas_are_the_same_for_search_and_verifier(limits: Registers) -> None:
    """Before: where the smallest quota was no multiple of the step, the search gave quotas that were not legal."""
    tiny = problem([Node(name="a", latency=2, value=in_registers(8))], registers=limits, groups=ONE)
    found = brute_force(tiny, STAGES)
    result = searched(tiny, SearchOptions(max_stages=STAGES))
    assert (result.status == "infeasible") == (found is None)
    assert found is None or result.lower_bound_cycles == found[0]
