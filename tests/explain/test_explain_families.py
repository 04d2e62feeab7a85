"""Each family of rules decides a tiny problem once: what forces its interval, and the least change that helps."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from explaining import explained, helping, last_sets

from problems import Dep, Node, in_memory, in_registers, problem, use
from twillgpu.costs.record import LegalPair, Problem, RuleOptions
from twillgpu.machine.record import Groups, Memory, Registers

APART = (LegalPair(rule="tiny_rule", relation="apart", first="a", second="b"),)


def waiting(groups: Groups, **changes: object) -> Problem:
    """EXP issues for 3 cycles; ADD waits for GEMM. In one group the wait needs a fourth cycle, in two it does not."""
    base = problem(
        [
            Node(name="GEMM", uses=(use("tensor", 2),), issue=0, warps=4),
            Node(name="ADD", uses=(use("alu", 1),), warps=4),
            Node(name="EXP", uses=(use("exp", 3),), warps=4),
        ],
        [Dep(tail="GEMM", head="ADD", blocking=True)],
        groups=groups,
        barrier=0,
    )
    return replace(base, **changes)  # type: ignore[arg-type]  # fields of a problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A problem, its interval, the smallest sets that force it, and what helps: (amount, new interval)."""

    tiny: Problem
    interval: int
    sets: list[tuple[str, ...]]
    helps: dict[tuple[str, ...], tuple[int | None, int | None]]
    stages: int | None = None


CASES: dict[str, Case] = {
    # x is held at 0 and at 3: at an interval of 3, twice in one slot. Two of x, or x twice as fast, allow the 3 of r.
    "unit": Case(
        tiny=problem(
            [Node(name="a", uses=(use("x", 1), use("x", 1, offset=3))), Node(name="r", latency=3)],
            [Dep(tail="r", head="r", distance=1)],
        ),
        interval=4,
        sets=[("unit x",)],
        helps={("unit x",): (200, 3)},
    ),
    # 4 + 3 cycles of one place of 8 bytes; 12 bytes are still one place; with two places the longer one takes 4.
    "memory": Case(
        tiny=problem(
            [Node(name="a", latency=4, value=in_memory(8)), Node(name="b", latency=3, value=in_memory(8))],
            memories=(Memory(name="smem", capacity_bytes=8, alignment_bytes=4),),
        ),
        interval=7,
        sets=[("memory smem",)],
        helps={("memory smem",): (16, 4)},
    ),
    # 40 registers for 6 cycles in threads of 64: one at a time. Two at a time need 80, 16 more, and 3 cycles each.
    "registers": Case(
        tiny=problem(
            [Node(name="a", latency=6, value=in_registers(40))], registers=Registers(per_thread=64, per_sm=65536)
        ),
        interval=6,
        sets=[("registers",)],
        helps={("registers",): (80, 3)},
    ),
    # The same, but the file gives each of the 128 threads 64 registers: 80 are 10,240 in all.
    "register_file": Case(
        tiny=problem(
            [Node(name="a", latency=6, value=in_registers(40), warps=4)],
            registers=Registers(per_thread=128, per_sm=8192),
            groups=Groups(max=1, warps=(4,), max_warps=4),
        ),
        interval=6,
        sets=[("register_file",)],
        helps={("register_file",): (10240, 3)},
    ),
    "groups": Case(
        tiny=waiting(Groups(max=1, warps=(4,), max_warps=16)),
        interval=4,
        sets=[("groups", "concurrency")],
        helps={("groups",): (2, 3), ("concurrency",): (None, 3)},
    ),
    # Two groups of 4 warps do not fit in 4.
    "warps": Case(
        tiny=waiting(Groups(max=2, warps=(4,), max_warps=4)),
        interval=4,
        sets=[("warps", "concurrency")],
        helps={("warps",): (8, 3), ("concurrency",): (None, 3)},
    ),
    # 3 + 2 cycles within one stage; within two: 3.
    "stages": Case(
        tiny=problem([Node(name="a", latency=3), Node(name="b", latency=2)], [Dep(tail="a", head="b")]),
        interval=5,
        sets=[("stages",)],
        helps={("stages",): (2, 3)},
        stages=1,
    ),
    # A circuit of 1 + 1 cycles and 2 + 2 of hand-off: 6. Hand-over at 75 % costs 2 + 2 all the same (rounded up), at
    # 50 % 1 + 1. In one group there is none. An op that is done at once leaves 1 + 4.
    "handoff": Case(
        tiny=problem(
            [
                Node(name="a", latency=1, value=in_registers(8), handoff=2),
                Node(name="b", latency=1, value=in_registers(8), handoff=2),
            ],
            [Dep(tail="a", head="b"), Dep(tail="b", head="a", distance=1)],
            groups=Groups(max=2, warps=(1, 4), max_warps=8),
            legality=APART,
        ),
        interval=6,
        sets=[("handoff", "legality tiny_rule")],
        helps={("handoff",): (50, 4), ("legality tiny_rule",): (None, 2), ("latency a",): (0, 5)},
    ),
    # The load sits alone in the first group, and the others share the second one.
    "variable_latency": Case(
        tiny=problem(
            [
                Node(name="GEMM", uses=(use("tensor", 2),), issue=0),
                Node(name="ADD", uses=(use("alu", 1),)),
                Node(name="EXP", uses=(use("exp", 3),)),
                Node(name="LOAD", uses=(use("tma", 1),), variable=True),
            ],
            [Dep(tail="GEMM", head="ADD", blocking=True)],
            groups=Groups(max=2, warps=(1, 4), max_warps=8),
            rules=RuleOptions(variable_latency="iff"),
            barrier=0,
        ),
        interval=4,
        sets=[("groups", "concurrency", "variable_latency")],
        helps={("groups",): (3, 3), ("variable_latency",): (None, 3), ("concurrency",): (None, 3)},
    ),
    # Two groups would do, but the rule keeps ADD and EXP in one.
    "legality": Case(
        tiny=waiting(
            Groups(max=2, warps=(4,), max_warps=16),
            legality=(LegalPair(rule="tiny_rule", relation="together", first="ADD", second="EXP"),),
        ),
        interval=4,
        sets=[("concurrency", "legality tiny_rule")],
        helps={("legality tiny_rule",): (None, 3), ("concurrency",): (None, 3)},
    ),
    # A circuit of 7 cycles: nothing but the latency of its op, of which 2 remain beside the 2 cycles of x.
    "latency": Case(
        tiny=problem(
            [Node(name="a", latency=7), Node(name="b", uses=(use("x", 2),))],
            [Dep(tail="a", head="a", distance=1)],
        ),
        interval=7,
        sets=[()],
        helps={("latency a",): (2, 2)},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_forces_the_interval_and_the_least_change_that_helps(name: str) -> None:
    case = CASES[name]
    explanation = explained(case.tiny, stages=case.stages)
    assert explanation.result.schedule is not None
    assert explanation.result.schedule.ii_cycles == case.interval
    assert last_sets(explanation) == case.sets
    found = helping(explanation)
    assert {ways: found.get(ways) for ways in case.helps} == case.helps
    assert explanation.complete


def test_the_group_that_needs_more_registers_is_named() -> None:
    least = explained(CASES["registers"].tiny).ways[0].least
    assert least is not None
    assert least.groups == ("compute",)


def test_stages_first_then_units() -> None:
    explanation = explained(CASES["groups"].tiny)
    assert [way.families[0].kind for way in explanation.ways] == ["groups", "concurrency"]
