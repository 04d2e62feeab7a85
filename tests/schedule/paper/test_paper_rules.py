"""Each rule alone forbids an answer that all the others allow; as published and by docs/formulation.md."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from paper_cases import outcome

from problems import Dep, Node, in_memory, in_registers, problem, use
from twillgpu.costs.record import LegalPair, Problem, RuleOptions
from twillgpu.machine.record import Groups, Memory, Registers
from twillgpu.schedule import model
from twillgpu.schedule.paper import joint
from twillgpu.schedule.paper.joint import build, smtlib
from twillgpu.schedule.paper.record import JointQuestion
from twillgpu.schedule.paper.solve import run_yices
from twillgpu.verify import RULES

PAIR = Groups(max=2, warps=(1, 4), max_warps=16)
SMEM = (Memory(name="smem", capacity_bytes=8, alignment_bytes=4),)
IFF = RuleOptions(concurrency="paper", variable_latency="iff")


@dataclass(frozen=True, kw_only=True)
class Case:
    """An answer that breaks one rule; ``length`` is L, ``literal`` whether the paper has the rule, too."""

    problem: Problem
    starts: dict[str, int]
    groups: dict[str, int] = field(default_factory=dict)
    interval: int = 4
    length: int = 8
    literal: bool = True


CASES = {
    # b follows 3 cycles after a; it starts 1 after.
    "dependence": Case(
        problem=problem(
            [Node(name="a", latency=3), Node(name="b", latency=1), Node(name="c", latency=1)],
            [Dep(tail="a", head="b")],
        ),
        starts={"a": 3, "b": 4, "c": 0},
    ),
    # Both hold the unit in cycle 1.
    "capacity": Case(
        problem=problem([Node(name="a", uses=(use(cycles=2),)), Node(name="b", uses=(use(cycles=2),))]),
        starts={"a": 0, "b": 1},
    ),
    # a's 8 bytes live from 0 to 5 at least: two instances at I = 4, 16 of 8 bytes.
    "memory_capacity": Case(
        problem=problem(
            [Node(name="a", latency=1, value=in_memory(8)), Node(name="b", latency=1)],
            [Dep(tail="a", head="b")],
            memories=SMEM,
        ),
        starts={"a": 0, "b": 5},
    ),
    # Groups of 4 and 1 warps in a block of 4.
    "warp_uniqueness": Case(
        problem=problem(
            [Node(name="a", latency=1, warps=4), Node(name="b", latency=1)],
            groups=Groups(max=2, warps=(1, 4), max_warps=4),
        ),
        starts={"a": 0, "b": 0},
        groups={"a": 0, "b": 1},
        literal=False,
    ),
    # The load is not in the group set apart for it.
    "variable_latency": Case(
        problem=problem(
            [Node(name="load", latency=1, variable=True), Node(name="a", latency=1)], groups=PAIR, rules=IFF
        ),
        starts={"load": 0, "a": 0},
        groups={"load": 1, "a": 1},
    ),
    "legality": Case(
        problem=problem(
            [Node(name="a", latency=1), Node(name="b", latency=1)],
            groups=PAIR,
            legality=(LegalPair(rule="tiny_rule", relation="apart", first="a", second="b"),),
        ),
        starts={"a": 0, "b": 0},
        groups={"a": 0, "b": 0},
        literal=False,
    ),
    # Two instances of 16 registers are live at once, in 24.
    "register_limit": Case(
        problem=problem(
            [Node(name="a", latency=1, value=in_registers(16)), Node(name="b", latency=1)],
            [Dep(tail="a", head="b")],
            registers=Registers(per_thread=24, per_sm=65536),
        ),
        starts={"a": 0, "b": 6},
    ),
    # The hand-off takes 2 cycles on top of the latency of 1; b starts 2 cycles after a.
    "cross_warp_spill": Case(
        problem=problem(
            [Node(name="a", latency=1, handoff=2, value=in_registers(8)), Node(name="b", latency=1)],
            [Dep(tail="a", head="b")],
            groups=PAIR,
        ),
        starts={"a": 0, "b": 2},
        groups={"a": 0, "b": 1},
    ),
    # o holds its unit, and issues, for 3 cycles; the wait of b falls into the second.
    "concurrency": Case(
        problem=problem(
            [Node(name="a", latency=1), Node(name="b", latency=1), Node(name="o", uses=(use(cycles=3),))],
            [Dep(tail="a", head="b", blocking=True)],
        ),
        starts={"a": 0, "b": 2, "o": 1},
    ),
}


def said(rule: str, *, literal: bool, without: frozenset[str]) -> str:
    case = CASES[rule]
    question = JointQuestion(
        problem=case.problem,
        interval=case.interval,
        length=case.length,
        literal=literal,
        warps="paper" if literal else "groups",
        without=without,
    )
    return outcome(question, case.starts, case.groups)


@pytest.mark.parametrize("literal", [False, True])
@pytest.mark.parametrize("rule", CASES)
def test_one_rule_forbids_what_the_others_allow(rule: str, literal: bool) -> None:
    forbidden = "unsat" if CASES[rule].literal or not literal else "sat"
    assert said(rule, literal=literal, without=frozenset()) == forbidden
    assert said(rule, literal=literal, without=frozenset({rule})) == "sat"


TWO = problem([Node(name="a", latency=1), Node(name="b", latency=2)])


def test_uniqueness_what_has_begun_stays_so() -> None:
    for without, expected in ((frozenset[str](), "unsat"), (frozenset({"uniqueness"}), "sat")):
        program = build(JointQuestion(problem=TWO, interval=4, length=8, without=without))
        program.script.require(program.begun("a", 0, 2))
        program.script.require(f"(not {program.begun('a', 0, 3)})")
        assert run_yices(program.script.text(), 10).outcome == expected


def test_consistency_ties_the_copies_of_a_literal_program() -> None:
    for without, expected in ((frozenset[str](), "unsat"), (frozenset({"consistency"}), "sat")):
        program = build(JointQuestion(problem=TWO, interval=4, length=8, literal=True, without=without))
        program.script.require(program.op("a", 0, 1))
        program.script.require(program.op("a", 1, 6))
        assert run_yices(program.script.text(), 10).outcome == expected


def test_consistency_lets_some_op_start_at_cycle_0() -> None:
    for without, expected in ((frozenset[str](), "unsat"), (frozenset({"consistency"}), "sat")):
        question = JointQuestion(problem=TWO, interval=4, length=8, without=without)
        assert outcome(question, {"a": 1, "b": 2}) == expected


def test_completion_ends_every_op_by_the_length() -> None:
    # b takes 2 cycles: it can start at 6 where L is 8, and not at 7.
    question = JointQuestion(problem=TWO, interval=4, length=8)
    assert outcome(question, {"a": 0, "b": 6}) == "sat"
    assert outcome(question, {"a": 0, "b": 7}) == "unsat"


def test_the_paper_ends_a_lifetime_where_its_last_user_starts() -> None:
    # b reads a's 8 bytes for 1 cycle and the barrier hop of 1 after its start at 3: with them two instances meet.
    tiny = problem(
        [Node(name="a", latency=1, value=in_memory(8)), Node(name="b", latency=1)],
        [Dep(tail="a", head="b")],
        memories=SMEM,
    )
    question = JointQuestion(problem=tiny, interval=4, length=8)
    assert outcome(question, {"a": 0, "b": 3}) == "unsat"
    published = JointQuestion(problem=tiny, interval=4, length=8, literal=True, warps="paper")
    assert outcome(published, {"a": 0, "b": 3}) == "sat"


def test_equal_warps_have_no_widths() -> None:
    case = CASES["warp_uniqueness"]
    question = JointQuestion(problem=case.problem, interval=4, length=8, warps="paper")
    assert outcome(question, case.starts, case.groups) == "sat"


def test_the_same_rules_as_everywhere_else() -> None:
    names = [name for name, _ in joint.RULES]
    assert sorted(names) == sorted(rule.__name__ for rule in RULES)
    assert sorted(names) == sorted(name for name, _ in model.RULES)
    assert [rule.__name__ for _, rule in joint.RULES] == names


def test_the_text_names_its_rules_and_can_be_solved_by_anyone() -> None:
    text = smtlib(TWO, 4, 8)
    assert text.startswith("; SWP-AND-WS of 'tiny' on 'tiny', with the rules of docs/formulation.md\n")
    assert "; I = 4, L = 8: 2 copies, T = 12" in text
    assert [line.removeprefix("; rule: ") for line in text.splitlines() if line.startswith("; rule: ")][1:] == [
        name for name, _ in joint.RULES
    ]
    assert "(set-logic QF_LIA)" in text
    assert "as published" in smtlib(TWO, 4, 8, literal=True)
    assert run_yices(text, 10).outcome == "sat"
