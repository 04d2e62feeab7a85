"""Rules on time and memory: each decides the smallest interval of a tiny instance, derived beside it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from searching import minimum

from exhaustive import brute_force
from problems import Dep, Node, in_memory, in_registers, problem, use
from twillgpu.costs.record import LegalPair
from twillgpu.machine.record import Groups, Memory
from twillgpu.schedule.record import SearchOptions

SMEM = Memory(name="smem", capacity_bytes=8, alignment_bytes=4)
TWO_USES = problem([Node(name="a", uses=(use(cycles=3),)), Node(name="b", uses=(use(cycles=2),))])
CHAIN = problem([Node(name="a", latency=3), Node(name="b", latency=2)], [Dep(tail="a", head="b")])
STAGES = 4

CASES = {
    # dependence: 3 cycles of latency from a to b and 4 back to the next a: 7 per iteration.
    "dependence": (
        problem(
            [Node(name="a", latency=3), Node(name="b", latency=4)],
            [Dep(tail="a", head="b"), Dep(tail="b", head="a", distance=1)],
        ),
        7,
    ),
    # The same circuit over three iterations: ceil(7 / 3).
    "dependence over iterations": (
        problem(
            [Node(name="a", latency=3), Node(name="b", latency=4)],
            [Dep(tail="a", head="b"), Dep(tail="b", head="a", distance=3)],
        ),
        3,
    ),
    # capacity: 3 + 2 cycles of one unit; of two, ceil(5 / 2).
    "capacity": (TWO_USES, 5),
    "capacity of two": (replace(TWO_USES, units=(replace(TWO_USES.units[0], capacity=2),)), 3),
    # Two ops that use the unit at offsets 0 and 2: 4 cycles in all, and 4 hold them as 0 2 and 1 3.
    "capacity of runs in two parts": (
        problem([Node(name=name, uses=(use(cycles=1), use(cycles=1, offset=2))) for name in "ab"]),
        4,
    ),
    # memory_capacity: two places, and a value is held for 7 cycles: ceil(7 / 2).
    "memory_capacity": (problem([Node(name="a", latency=7, value=in_memory(4))], memories=(SMEM,)), 4),
    # The same with a reader: from a's start to b's end and a barrier hop: 3 + 4 + 1 = 8 cycles over two places.
    "memory_capacity until it is read": (
        problem(
            [Node(name="a", latency=3, value=in_memory(4)), Node(name="b", latency=4)],
            [Dep(tail="a", head="b")],
            memories=(SMEM,),
        ),
        4,
    ),
    # What is fixed leaves one place: 7 cycles each.
    "memory_capacity beside what is fixed": (
        problem([Node(name="a", latency=7, value=in_memory(4))], memories=(SMEM,), fixed=(("smem", 4),)),
        7,
    ),
    # An accumulator in place takes one of two places for good; the other holds the value for 6 cycles.
    "memory_capacity beside an accumulator": (
        problem(
            [
                Node(name="acc", latency=1, value=in_memory(4, alias="acc")),
                Node(name="a", latency=6, value=in_memory(4)),
            ],
            [Dep(tail="acc", head="acc", distance=1)],
            memories=(SMEM,),
        ),
        6,
    ),
    # A value handed over is staged from its latency, 1, until it is read: its hand-off of 4 cycles later. With the
    # place that m occupies for 5 cycles, 9 cycles of one place of 8 bytes.
    "memory_capacity of staging": (
        problem(
            [
                Node(name="a", latency=1, value=in_registers(8), handoff=4, staging=8),
                Node(name="b", latency=1),
                Node(name="m", latency=5, value=in_memory(8)),
            ],
            [Dep(tail="a", head="b")],
            memories=(SMEM,),
            groups=Groups(max=2, warps=(1, 4), max_warps=8),
            legality=(LegalPair(rule="tiny_rule", relation="apart", first="a", second="b"),),
        ),
        9,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_rule_decides_the_minimum(name: str) -> None:
    tiny, interval = CASES[name]
    assert minimum(tiny, SearchOptions(max_stages=STAGES)) == interval
    found = brute_force(tiny, STAGES)
    assert found is not None
    assert found[0] == interval


@pytest.mark.parametrize(("stages", "interval"), [(1, 5), (2, 3), (3, 2), (4, 2), (5, 1)])
def test_completion_within_the_stages_allowed(stages: int, interval: int) -> None:
    # 3 + 2 cycles from start to end, and S I cycles to be done in: ceil(5 / S).
    assert minimum(CHAIN, SearchOptions(max_stages=stages)) == interval


def test_completion_of_an_op_without_latency_counts_its_start() -> None:
    # b may start at 3, when a is done, but takes the fourth cycle to do so.
    tiny = problem([Node(name="a", latency=3), Node(name="b", latency=0)], [Dep(tail="a", head="b")])
    assert minimum(tiny, SearchOptions(max_stages=1)) == 4


def test_values_take_turns_in_one_place() -> None:
    # One place: a from its start to b's end and hop, 2 + 1 + 1; c for 3 cycles: 7. Two places: by each value alone.
    tiny = problem(
        [
            Node(name="a", latency=2, value=in_memory(8)),
            Node(name="b", latency=1),
            Node(name="c", latency=3, value=in_memory(8)),
        ],
        [Dep(tail="a", head="b")],
        memories=(SMEM,),
    )
    assert minimum(tiny) == 7
    assert minimum(replace(tiny, memories=(replace(SMEM, capacity_bytes=16),))) == 4
    assert minimum(replace(tiny, memories=())) == 1


def test_tmem_is_another_memory() -> None:
    # 6 cycles of the one place in TMEM, 4 of the one in SMEM.
    tiny = problem(
        [Node(name="a", latency=6, value=in_memory(8, tmem=True)), Node(name="b", latency=4, value=in_memory(8))],
        memories=(SMEM, replace(SMEM, name="tmem")),
    )
    assert minimum(tiny) == 6
    assert minimum(replace(tiny, memories=(SMEM,))) == 4
