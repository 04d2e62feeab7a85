"""A refutation is explained by the rules each of which alone, left out, lifts it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from embedding import question
from searching import searched

from problems import Dep, Node, in_memory, in_registers, problem, use
from twillgpu.costs.record import LegalPair, Problem, Scale
from twillgpu.machine.record import Groups, Memory, Registers
from twillgpu.schedule.reasons import FAMILIES, families, reason
from twillgpu.schedule.solved import Effort

TWO = Groups(max=2, warps=(1, 4), max_warps=8)
APART = (LegalPair(rule="tiny_rule", relation="apart", first="a", second="b"),)
WAIT = problem(
    [Node(name="busy", uses=(use("x", 4),)), Node(name="a", latency=1), Node(name="b", latency=1)],
    [Dep(tail="a", head="b", blocking=True)],
)
TAKING_TURNS = problem(
    [Node(name="a", latency=4, value=in_memory(8)), Node(name="b", latency=3, value=in_memory(8))],
    memories=(Memory(name="smem", capacity_bytes=8, alignment_bytes=4),),
)

CASES: dict[str, tuple[Problem, int, tuple[str, ...]]] = {
    # A wait beside 4 cycles of issue needs a fifth.
    "concurrency": (WAIT, 4, ("concurrency",)),
    # 4 + 3 cycles in one place.
    "memory_capacity": (TAKING_TURNS, 6, ("memory_capacity",)),
    # 40 registers for 6 cycles in threads of 64.
    "register_limit": (
        problem(
            [Node(name="a", latency=6, value=in_registers(40))], registers=Registers(per_thread=64, per_sm=65536)
        ),
        5,
        ("register_limit",),
    ),
    # A circuit of 1 + 1 cycles and 2 + 2 of hand-off: free hand-overs, or one group, make 2.
    "cross_warp_spill": (
        problem(
            [
                Node(name="a", latency=1, value=in_registers(8), handoff=2),
                Node(name="b", latency=1, value=in_registers(8), handoff=2),
            ],
            [Dep(tail="a", head="b"), Dep(tail="b", head="a", distance=1)],
            groups=TWO,
            legality=APART,
        ),
        5,
        ("cross_warp_spill", "legality"),
    ),
    # One op that uses a unit at 0 and at 3 meets itself.
    "capacity": (problem([Node(name="a", uses=(use("x", 1), use("x", 1, offset=3)))]), 3, ("capacity",)),
    # A circuit of 7: no family forces it.
    "none": (
        problem([Node(name="a", latency=7)], [Dep(tail="a", head="a", distance=1, kind="order", latency=7)]),
        6,
        (),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_forces_a_refutation(name: str) -> None:
    tiny, interval, expected = CASES[name]
    asked = question(tiny, interval, 3, Scale(slot_cycles=1, rounding="down"))
    assert families(asked, Effort(work=1.0, seconds=30.0)) == expected


def test_the_reason_names_the_rules_and_what_would_help() -> None:
    assert reason(("register_limit", "legality"), 3) == (
        "no schedule of at most 3 stages; forced by register_limit (possible with more registers), "
        "legality (possible with lifting the legality rules)"
    )
    assert reason((), 1) == "no schedule of at most 1 stage; no single rule forces it"


def test_every_family_has_a_hint() -> None:
    for name, _, hint in FAMILIES:
        assert f"{name} (possible with {hint})" in reason((name,), 2)


def test_the_result_of_a_search_carries_the_reason() -> None:
    result = searched(replace(WAIT, groups=Groups(max=1, warps=(1, 4), max_warps=4)))
    assert [item.families for item in result.refuted] == [(), ("concurrency",)]
    assert "waits that do not hold up their group" in result.bound_reason
