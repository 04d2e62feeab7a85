"""The SMT-LIB encoding has the solutions of the formulation: those of the verifier, and of the clausal model."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exhaustive import brute_force, schedules
from problems import Dep, Node, in_registers, problem, problems, use
from twillgpu.certify.smt import SmtQuestion, question_text
from twillgpu.costs.record import LegalPair, Problem, Scale
from twillgpu.costs.scale import scaled
from twillgpu.machine.record import Groups, Memory, Registers
from twillgpu.schedule.core import Question
from twillgpu.schedule.model import answer
from twillgpu.schedule.paper.solve import run_yices
from twillgpu.schedule.record import Schedule
from twillgpu.schedule.solved import Effort
from twillgpu.verify import check
from twillgpu.verify.record import Verified

SLOW = settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def yices(tiny: Problem, interval: int, rounding: str, schedule: Schedule | None = None) -> str:
    asked = SmtQuestion(problem=tiny, interval=interval, stages=2, rounding="down" if rounding == "down" else "exact")
    return run_yices(question_text(asked, schedule), 60).outcome


@SLOW
@given(problems(max_ops=3), st.integers(0, 2), st.integers(0, 20))
def test_every_schedule_is_a_model(tiny: Problem, more: int, skipped: int) -> None:
    smallest = brute_force(tiny, 2)
    if smallest is None:
        return
    for schedule in islice(schedules(tiny, smallest[0] + more, 2), skipped, skipped + 1):
        assert yices(tiny, schedule.ii_cycles, "exact", schedule) == "sat"


@SLOW
@given(problems(max_ops=3), st.integers(0, 2), st.integers(0, 60), st.data())
def test_a_schedule_that_breaks_a_rule_is_none(tiny: Problem, more: int, skipped: int, data: st.DataObject) -> None:
    """An op is moved, in time and to a group: the verifier and Yices agree on what that breaks, places apart."""
    smallest = brute_force(tiny, 2)
    if smallest is None:
        return
    for schedule in islice(schedules(tiny, smallest[0] + more, 2), skipped, skipped + 1):
        index = data.draw(st.integers(0, len(schedule.ops) - 1))
        start = data.draw(st.integers(0, 2 * schedule.ii_cycles - 1))
        ops = list(schedule.ops)
        group = data.draw(st.integers(0, len(schedule.groups) - 1))
        ops[index] = replace(ops[index], start_cycle=start, group=group)
        moved = replace(schedule, ops=tuple(ops))
        verdict = check(tiny, moved, max_stages=2)
        broken = () if isinstance(verdict, Verified) else tuple(one.rule for one in verdict)
        if set(broken) == {"memory_capacity"} or "dependence" in broken:
            # Depths and places are the schedule's own; overwriting in a class is told apart from edges.
            continue
        assert yices(tiny, moved.ii_cycles, "exact", moved) == ("unsat" if broken else "sat"), broken


@SLOW
@given(problems(max_ops=4), st.integers(1, 7), st.sampled_from(["exact", "down"]))
def test_clauses_and_integers_agree(tiny: Problem, interval: int, rounding: str) -> None:
    scale = Scale(slot_cycles=1 if rounding == "exact" else 2, rounding="down")
    _compare(scaled(tiny, scale), interval, rounding)


@SLOW
@given(problems(max_ops=4), st.sampled_from([16, 24, 32, 40, 48]), st.integers(2, 6))
def test_they_agree_on_the_register_file(tiny: Problem, shared: int, interval: int) -> None:
    limits = Registers(per_thread=48, per_sm=32 * 4 * shared, quota_min=8)
    groups = Groups(max=3, warps=(1, 4), max_warps=9)
    _compare(replace(tiny, registers=limits, groups=groups), interval, "exact")


def _compare(tiny: Problem, interval: int, rounding: str) -> None:
    asked = Question(problem=tiny, interval=interval, stages=2, rounding="down" if rounding == "down" else "exact")
    found = answer(asked, (), Effort(work=10, seconds=60)).outcome != "infeasible"
    assert yices(tiny, interval, rounding) == ("sat" if found else "unsat")


def handed_over(registers: int, room: int) -> Problem:
    """Two ops in two groups; the second reads a register value for five cycles, through staging of 8 bytes."""
    value = in_registers(24)
    nodes = [
        Node(name="a", uses=(use("mma", 1),), latency=1, value=value, handoff=1, staging=8),
        Node(name="b", uses=(use("alu", 5),), latency=5, value=in_registers(8)),
    ]
    return problem(
        nodes,
        [Dep(tail="a", head="b")],
        memories=(Memory(name="smem", capacity_bytes=room, alignment_bytes=4),),
        registers=Registers(per_thread=registers, per_sm=65536, quota_min=8),
        groups=Groups(max=2, warps=(4,), max_warps=8),
        legality=(LegalPair(rule="tiny", relation="apart", first="a", second="b"),),
    )


@pytest.mark.parametrize(("registers", "expected"), [(32, "sat"), (24, "unsat")])
def test_a_copy_lives_in_the_group_that_reads_it(registers: int, expected: str) -> None:
    """24 of the copy and 8 of b's own value, while b issues."""
    assert yices(handed_over(registers, 64), 6, "exact") == expected


@pytest.mark.parametrize(("room", "expected"), [(8, "sat"), (4, "unsat")])
def test_a_copy_on_its_way_needs_staging(room: int, expected: str) -> None:
    """From a's completion (1) to b's start (2 at the earliest), 8 bytes."""
    assert yices(handed_over(32, room), 6, "exact") == expected
