"""The clausal model: one numbering per partition, pure groups, given groups, effort, and every rule in it."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice, product

import pytest
from embedding import admits, fix, question, solvable
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exhaustive import brute_force, schedules
from problems import Dep, Node, in_memory, in_registers, problem, problems, use
from twillgpu.costs.record import LegalPair, Problem, RuleOptions, Scale
from twillgpu.graph.record import Resident
from twillgpu.machine.record import Groups, Memory, Registers
from twillgpu.schedule.core import Question
from twillgpu.schedule.cpsat import solve
from twillgpu.schedule.model import answer, build
from twillgpu.schedule.partition import canonical
from twillgpu.schedule.solved import Effort

EXACT = Scale(slot_cycles=1, rounding="up")
EFFORT = Effort(work=5.0, seconds=60.0)
THREE = Groups(max=3, warps=(1, 4), max_warps=12)


def ask(tiny: Problem, interval: int = 4, stages: int = 2) -> Question:
    return question(tiny, interval, stages, EXACT)


def partitions(asked: Question, **at: int) -> list[tuple[int, ...]]:
    """Return the groups of all ops, in program order, that the model admits with these starts."""
    names = [op.name for op in asked.problem.ops]
    found = []
    for chosen in product(range(asked.problem.groups.max), repeat=len(names)):
        core = build(asked, ())
        assert core is not None
        if any(group >= core.group_count for group in chosen):
            continue
        fix(core, at, dict(zip(names, chosen, strict=True)))
        if solvable(core):
            found.append(chosen)
    return found


def test_every_partition_has_one_numbering() -> None:
    # Three ops in up to three groups: all together, three pairs with one apart, all apart.
    tiny = problem([Node(name=name) for name in "abc"], groups=THREE)
    assert partitions(ask(tiny), a=0, b=0, c=0) == [(0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1), (0, 1, 2)]
    two = replace(tiny, groups=replace(THREE, max=2))
    assert partitions(ask(two), a=0, b=0, c=0) == [(0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1)]


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        # The load b in group 0; a and c with it or in groups 1 and 2, numbered by the first of them.
        ("designated", [(0, 0, 0), (0, 0, 1), (1, 0, 0), (1, 0, 1), (1, 0, 2)]),
        # No fixed-latency op in group 0.
        ("iff", [(1, 0, 1), (1, 0, 2)]),
        # As if there were no load.
        ("free", [(0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1), (0, 1, 2)]),
    ],
)
def test_the_group_of_the_loads_keeps_its_number(option: str, expected: list[tuple[int, ...]]) -> None:
    rules = {name: RuleOptions(variable_latency=name) for name in ("designated", "iff", "free")}
    nodes = [Node(name="a"), Node(name="b", variable=True), Node(name="c")]
    tiny = problem(nodes, groups=THREE, rules=rules[option])
    assert partitions(ask(tiny), a=0, b=0, c=0) == expected


def test_pure_groups_hold_ops_of_one_kind() -> None:
    # The load alone; a and c need different widths, so they are apart.
    tiny = problem(
        [Node(name="a", warps=4), Node(name="b", variable=True), Node(name="c")],
        groups=THREE,
    )
    assert partitions(replace(ask(tiny), pure=True), a=0, b=0, c=0) == [(1, 0, 2)]
    same = problem([Node(name="a"), Node(name="b", variable=True), Node(name="c")], groups=THREE)
    assert partitions(replace(ask(same), pure=True), a=0, b=0, c=0) == [(1, 0, 1), (1, 0, 2)]


def test_given_groups_are_kept() -> None:
    tiny = problem([Node(name=name) for name in "abc"], groups=THREE)
    given_groups = (("a", 0), ("b", 1), ("c", 0))
    reply = answer(replace(ask(tiny), groups=given_groups), ("groups",), EFFORT)
    assert reply.groups == dict(given_groups)


# Something of every rule.
FULL = problem(
    [
        Node(name="load", uses=(use("tma", 1),), latency=4, variable=True, value=in_memory(8)),
        Node(
            name="mul",
            uses=(use("mma", 4),),
            issue=1,
            latency=6,
            warps=4,
            value=in_registers(24),
            handoff=2,
            staging=4,
        ),
        Node(name="exp", uses=(use("alu", 3),), warps=4, value=in_registers(16)),
        Node(name="sum", uses=(use("alu", 2),), warps=4),
    ],
    [
        Dep(tail="load", head="mul", blocking=True),
        Dep(tail="mul", head="exp", blocking=True),
        Dep(tail="exp", head="sum"),
    ],
    memories=(Memory(name="smem", capacity_bytes=20, alignment_bytes=4),),
    registers=Registers(per_thread=48, per_sm=32 * 8 * 40),
    groups=Groups(max=3, warps=(1, 4), max_warps=9),
    residents=(Resident(name="kept", registers_per_thread=4, users=("exp",)),),
    legality=(LegalPair(rule="tiny_rule", relation="apart", first="mul", second="exp"),),
)


def test_every_rule_states_something() -> None:
    core = build(ask(FULL, interval=8, stages=3), ())
    assert core is not None
    # Consistency holds by the form of the starts but for the pinned anchor.
    assert set(core.clauses.counts) >= {
        "",
        "completion",
        "dependence",
        "capacity",
        "warp_uniqueness",
        "legality",
        "cross_warp_spill",
        "concurrency",
        "register_limit",
        "memory_capacity",
        "consistency",
    }


def test_no_effort_leaves_the_answer_open() -> None:
    reply = answer(ask(FULL, interval=8, stages=3), ("groups",), Effort(work=0.0, seconds=60.0))
    assert (reply.outcome, reply.starts, reply.groups) == ("unknown", {}, {})


def test_an_answer_begins_at_zero_and_numbers_its_groups_without_gaps() -> None:
    reply = answer(ask(FULL, interval=8, stages=3), ("groups",), EFFORT)
    assert reply.outcome == "optimal"
    assert min(reply.starts.values()) == 0
    assert set(reply.groups.values()) == set(range(max(reply.groups.values()) + 1))
    assert reply.groups["load"] == 0


def test_windows_that_refute_need_no_solver() -> None:
    tiny = problem([Node(name="a", latency=9)])
    reply = answer(ask(tiny, interval=4, stages=2), (), EFFORT)
    assert (reply.outcome, reply.work) == ("infeasible", 0.0)


@settings(max_examples=50, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(problems(max_ops=3), st.integers(min_value=0, max_value=2), st.integers(min_value=0, max_value=20))
def test_the_model_in_cycles_has_every_schedule_of_brute_force(tiny: Problem, more: int, skipped: int) -> None:
    smallest = brute_force(tiny, 2)
    if smallest is None:
        return
    for schedule in islice(schedules(tiny, smallest[0] + more, 2), skipped, skipped + 1):
        assert admits(tiny, schedule, stages=2)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(problems())
def test_the_literals_of_a_known_solution_are_a_solution(tiny: Problem) -> None:
    asked = ask(tiny)
    found = answer(asked, (), EFFORT)
    groups = canonical(tiny, found.groups) if found.starts else {}
    core = build(replace(asked, known=tuple((name, at, groups[name]) for name, at in found.starts.items())), ())
    if core is None or not found.starts:
        return
    for literal in core.clauses.hint:
        core.clauses.add(literal)
    assert solve(core.clauses, EFFORT).outcome == "optimal"


def test_an_unknown_answer_is_asked_again_with_the_next_seed() -> None:
    # No work at all settles nothing: three tries cost three times what one does.
    asked = ask(problem([Node(name=name) for name in "abcdef"]), 4, 3)
    once = answer(asked, ("stages",), Effort(work=0.0, seconds=60.0))
    thrice = answer(asked, ("stages",), Effort(work=0.0, seconds=60.0, tries=3))
    assert (once.outcome, thrice.outcome) == ("unknown", "unknown")
    assert thrice.seconds > once.seconds
