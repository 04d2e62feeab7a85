"""Every rule broken on purpose, in a schedule that keeps all the others, is reported under its own name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from problems import Dep, Node, in_memory, in_registers, problem, use
from slow_oracle import faults
from twillgpu.costs.record import LegalPair, Problem, RuleOptions
from twillgpu.graph.record import Resident
from twillgpu.machine.record import Groups, Memory, Registers
from twillgpu.schedule.record import Buffer, Group, Schedule, ScheduledOp
from twillgpu.verify import Verified, Violation, check

# A load feeds a matrix product in SMEM; an exponential in another group takes the product through staging and
# a sum takes the exponential in its own group. Interval 8.
#   load  0..1 of tma, real latency 4 (streaming: 0), SMEM value of 16 bytes
#   mul   0..4 of mma, issue 1, latency 6: reads the load for 6 + 1 cycles (barrier hop 1)
#   exp   0..3 of alu, latency 3, 8 registers
#   sum   0..2 of alu, latency 2
PROBLEM = problem(
    [
        Node(name="load", uses=(use("tma", 1),), latency=4, variable=True, value=in_memory(16)),
        Node(
            name="mul",
            uses=(use("mma", 4),),
            issue=1,
            latency=6,
            warps=4,
            value=in_registers(40),
            handoff=2,
            staging=16,
        ),
        Node(name="exp", uses=(use("alu", 3),), warps=4, value=in_registers(8)),
        Node(name="sum", uses=(use("alu", 2),), warps=4),
    ],
    [
        Dep(tail="load", head="mul", blocking=True),
        Dep(tail="mul", head="exp", blocking=True),
        Dep(tail="exp", head="sum"),
    ],
    units={"tma": 1, "mma": 1, "alu": 1},
    memories=(Memory(name="smem", capacity_bytes=64, alignment_bytes=16),),
    fixed=(("smem", 16),),
    registers=Registers(per_thread=64, per_sm=32 * 8 * 64, overhead_per_thread=4),
    groups=Groups(max=2, warps=(1, 4), max_warps=8),
    residents=(Resident(name="scale", registers_per_thread=4, users=("exp",)),),
    legality=(LegalPair(rule="tiny_rule", relation="apart", first="mul", second="exp"),),
)
# exp reads mul's value at 9 = 1 + latency 6 + handoff 2. mul's 40 registers live 1..9; exp's group: a copy of 40
# during exp's issue 9..12, exp's 8 from 9 to 12, and the resident's 4.
STARTS = (("load", 0, 0), ("mul", 1, 0), ("exp", 9, 1), ("sum", 12, 1))
SCHEDULE = Schedule(
    graph="tiny",
    machine="tiny",
    ii_cycles=8,
    ops=tuple(ScheduledOp(name=name, start_cycle=start, group=group) for name, start, group in STARTS),
    groups=(
        Group(name="feed", warps=4, registers_per_thread=48),
        Group(name="math", warps=4, registers_per_thread=56),
    ),
    buffers=(
        # load lives from 0 to 1 + 7 = 8; the staging copy from 7 to 9.
        Buffer(name="load", space="smem", bytes=16, depth=1, depth_floor=1, offset_bytes=16),
        Buffer(name="mul.staging", space="smem", bytes=16, depth=1, depth_floor=1, offset_bytes=32),
    ),
)


def move(name: str, start: int, schedule: Schedule = SCHEDULE) -> Schedule:
    return replace(
        schedule,
        ops=tuple(replace(op, start_cycle=start) if op.name == name else op for op in schedule.ops),
    )


def regroup(name: str, group: int, schedule: Schedule = SCHEDULE) -> Schedule:
    return replace(schedule, ops=tuple(replace(op, group=group) if op.name == name else op for op in schedule.ops))


def change_group(index: int, **changes: object) -> Schedule:
    groups = [
        replace(group, **changes) if position == index else group  # type: ignore[arg-type]
        for position, group in enumerate(SCHEDULE.groups)
    ]
    return replace(SCHEDULE, groups=tuple(groups))


def change_buffer(which: str, **changes: object) -> Schedule:
    buffers = [
        replace(buffer, **changes) if buffer.name == which else buffer  # type: ignore[arg-type]
        for buffer in SCHEDULE.buffers
    ]
    return replace(SCHEDULE, buffers=tuple(buffers))


def broken(case: Problem, schedule: Schedule, *, max_stages: int | None = None) -> tuple[Violation, ...]:
    verdict = check(case, schedule, max_stages=max_stages)
    assert not isinstance(verdict, Verified)
    return verdict


def test_the_schedule_that_the_others_break_is_sound() -> None:
    verdict = check(PROBLEM, SCHEDULE, max_stages=2)
    assert isinstance(verdict, Verified)
    assert verdict.schedule == SCHEDULE
    assert verdict.problem == PROBLEM
    assert faults(PROBLEM, SCHEDULE) == set()


def test_only_check_makes_a_verified_schedule() -> None:
    with pytest.raises(TypeError, match=r"made by twillgpu\.verify\.check only"):
        Verified(problem=PROBLEM, schedule=SCHEDULE, seal=None)
    verdict = check(PROBLEM, SCHEDULE)
    assert isinstance(verdict, Verified)
    with pytest.raises(ValueError, match="seal"):
        replace(verdict, schedule=move("sum", 0))  # type: ignore[call-arg]


WIDE = replace(PROBLEM, units=tuple(replace(unit, capacity=2) for unit in PROBLEM.units))
NO_CROSSING = replace(PROBLEM, rules=RuleOptions(cross_group=False))
IFF = replace(PROBLEM, rules=RuleOptions(variable_latency="iff"))
FREE = replace(PROBLEM, rules=RuleOptions(variable_latency="free"))
UNLIMITED = replace(PROBLEM, registers=None)

CASES = [
    ("uniqueness", PROBLEM, replace(SCHEDULE, ops=(*SCHEDULE.ops, SCHEDULE.ops[3])), "sum has 2 starts, 1 is needed"),
    ("uniqueness", PROBLEM, replace(SCHEDULE, ops=SCHEDULE.ops[:3]), "sum has 0 starts"),
    (
        "uniqueness",
        PROBLEM,
        replace(SCHEDULE, ops=(*SCHEDULE.ops, ScheduledOp(name="sun", start_cycle=0, group=0))),
        "'sun', which is no op of tiny; did you mean 'sum'?",
    ),
    ("consistency", PROBLEM, replace(SCHEDULE, ii_cycles=0), "interval is 0 cycles, at least 1"),
    ("consistency", PROBLEM, move("load", -1), "load starts at cycle -1, before cycle 0"),
    ("dependence", WIDE, move("sum", 11), "sum of iteration 0 starts at cycle 11, but exp of iteration 0"),
    # sum at 18, slot 2, meets the exp of iteration 1, which holds alu from 17 to 20; exp's value lives on till then.
    (
        "capacity",
        PROBLEM,
        move("sum", 18, change_group(1, registers_per_thread=64)),
        "alu is held 2 times at cycle 26 (slot 2), its capacity is 1: 1 by exp of iteration 2 in cycles 25 to 28",
    ),
    ("memory_capacity", PROBLEM, replace(SCHEDULE, buffers=SCHEDULE.buffers[:1]), "mul.staging (16 bytes in smem"),
    ("memory_capacity", PROBLEM, replace(SCHEDULE, buffers=SCHEDULE.buffers * 2), "2 buffers are called load"),
    ("memory_capacity", PROBLEM, change_buffer("load", name="lode"), "the buffer lode holds no value of the graph"),
    ("memory_capacity", PROBLEM, change_buffer("load", space="tmem"), "load is in tmem, its value in smem"),
    ("memory_capacity", PROBLEM, change_buffer("load", bytes=0), "has 0 bytes, its value needs 16"),
    ("memory_capacity", PROBLEM, change_buffer("load", depth=0), "load has 0 copies and needs 1"),
    ("memory_capacity", PROBLEM, change_buffer("load", depth_floor=2, depth=2, offset_bytes=32), "given as 2; inst"),
    ("memory_capacity", PROBLEM, change_buffer("load", offset_bytes=0), "of which the first 16 are taken outside"),
    ("memory_capacity", PROBLEM, change_buffer("load", offset_bytes=64), "bytes 64 to 80 of smem, which has 64"),
    ("memory_capacity", PROBLEM, change_buffer("load", offset_bytes=49), "multiples of 16 in smem"),
    ("memory_capacity", PROBLEM, change_buffer("load", offset_bytes=32), "load of iteration 2 holds bytes 32 to 48"),
    # One cycle later, exp takes the copy at 10: it lives 7 to 10. With mul at 2, load lives 9 cycles of 8.
    ("memory_capacity", PROBLEM, move("mul", 2, move("exp", 10, move("sum", 13))), "cycle 16 sees 2 of them"),
    ("warp_uniqueness", PROBLEM, change_group(0, warps=1), "mul needs 4 warps, its group feed has 1"),
    ("warp_uniqueness", PROBLEM, change_group(0, warps=2), "feed has 2 warps; legal are 1, 4"),
    ("register_limit", PROBLEM, change_group(0, registers_per_thread=40), "feed needs 40 + 4 registers per thread"),
    ("register_limit", PROBLEM, change_group(1, registers_per_thread=48), "math needs 52 + 4 registers per thread"),
    ("register_limit", PROBLEM, change_group(0, registers_per_thread=52), "legal are multiples of 8 from 24 to 64"),
    ("register_limit", PROBLEM, change_group(0, registers_per_thread=72), "the quota of feed is 72"),
    ("register_limit", UNLIMITED, SCHEDULE, "registers are unlimited here: the quota of feed must be 0"),
    ("cross_warp_spill", PROBLEM, move("exp", 8), "exp of iteration 0 starts at cycle 8 in group 1, but mul of"),
    ("cross_warp_spill", NO_CROSSING, SCHEDULE, "a register value goes from mul (group 0) to exp (group 1)"),
    ("variable_latency", IFF, SCHEDULE, "mul has a fixed latency and sits in group 0"),
    # load issues for one cycle at slot 0; mul waits for it and may not start in that slot.
    ("concurrency", PROBLEM, move("mul", 0), "mul of iteration 1 starts at cycle 8 with a wait for load, while load"),
]


@pytest.mark.parametrize(("rule", "case", "schedule", "message"), CASES)
def test_one_broken_rule(rule: str, case: Problem, schedule: Schedule, message: str) -> None:
    found = broken(case, schedule)
    assert {violation.rule for violation in found} == {rule}
    assert any(message in violation.message for violation in found), [violation.message for violation in found]


def test_completion() -> None:
    # sum starts at 12 and ends at 14: 2 stages of 8.
    found = broken(PROBLEM, SCHEDULE, max_stages=1)
    assert {violation.rule for violation in found} == {"completion"}
    assert {violation.subjects for violation in found} == {("exp",), ("sum",)}
    assert (
        "sum of iteration 0 starts at cycle 12 and ends at 14; the stages claimed end at 1 x 8 = 8"
        in found[1].message
    )


def test_completion_counts_the_stage_of_an_op_without_latency() -> None:
    # load is streaming (latency 0): at cycle 8 it begins the second stage although it ends there as well.
    case = problem([Node(name="load", uses=(use("tma", 1),), variable=True)])
    schedule = Schedule(
        graph="tiny",
        machine="tiny",
        ii_cycles=8,
        ops=(ScheduledOp(name="load", start_cycle=8, group=0),),
        groups=(Group(name="g0", warps=1, registers_per_thread=0),),
        buffers=(),
    )
    assert {violation.rule for violation in broken(case, schedule, max_stages=1)} == {"completion"}
    assert isinstance(check(case, schedule, max_stages=2), Verified)


def test_an_op_in_a_group_that_does_not_exist() -> None:
    found = broken(FREE, regroup("sum", 2))
    assert ("warp_uniqueness", "sum is in group 2; the groups are numbered 0 to 1") in {
        (violation.rule, violation.message) for violation in found
    }


def test_groups_that_are_too_many_idle_or_too_wide_for_the_block() -> None:
    third = Group(name="idle", warps=4, registers_per_thread=0)
    found = broken(UNLIMITED, replace(SCHEDULE, groups=(*SCHEDULE.groups[:2], third)))
    messages = [violation.message for violation in found if violation.rule == "warp_uniqueness"]
    assert messages == [
        "the group idle holds no op",
        "3 groups are used, 2 allowed",
        "the groups have 12 warps in all, a block has at most 8",
    ]


def test_the_register_file_holds_the_warps_that_fill_up_four() -> None:
    # 4 x 64 + 1 x 24 for the groups and 3 x 24 for the padding: 352 registers per lane, 11,264 in all. A block of
    # 8 warps gets 48 per thread of 12,288 registers, and 40, that is 10,240, of any fewer.
    case = replace(
        problem([Node(name="a", warps=4, latency=1), Node(name="b", latency=1)]),
        groups=Groups(max=2, warps=(1, 4), max_warps=8),
        registers=Registers(per_thread=64, per_sm=12_288),
    )
    schedule = Schedule(
        graph="tiny",
        machine="tiny",
        ii_cycles=1,
        ops=(ScheduledOp(name="a", start_cycle=0, group=0), ScheduledOp(name="b", start_cycle=0, group=1)),
        groups=(
            Group(name="wide", warps=4, registers_per_thread=64),
            Group(name="thin", warps=1, registers_per_thread=24),
        ),
        buffers=(),
    )
    assert isinstance(check(case, schedule), Verified)
    tight = replace(case, registers=Registers(per_thread=64, per_sm=12_287))
    found = broken(tight, schedule)
    assert [violation.rule for violation in found] == ["register_limit"]
    assert "32 x (4 x 64 + 1 x 24 + 3 x 24 for the warps that fill up a warp group) = 11264" in found[0].message


def test_variable_latency_ops_sit_in_group_0_if_there_is_more_than_one() -> None:
    case = problem(
        [Node(name="a", variable=True, latency=1), Node(name="b", latency=1)],
        groups=Groups(max=2, warps=(1, 4), max_warps=8),
    )
    schedule = Schedule(
        graph="tiny",
        machine="tiny",
        ii_cycles=1,
        ops=(ScheduledOp(name="a", start_cycle=0, group=1), ScheduledOp(name="b", start_cycle=0, group=0)),
        groups=(
            Group(name="g0", warps=1, registers_per_thread=0),
            Group(name="g1", warps=1, registers_per_thread=0),
        ),
        buffers=(),
    )
    found = broken(case, schedule)
    assert [(violation.rule, violation.message) for violation in found] == [
        ("variable_latency", "a has a variable latency and sits in group 1, not in group 0")
    ]
    assert isinstance(check(replace(case, rules=RuleOptions(variable_latency="free")), schedule), Verified)
    together = regroup("a", 0, replace(schedule, groups=schedule.groups[:1]))
    assert isinstance(check(case, together), Verified)
    iff = replace(case, rules=RuleOptions(variable_latency="iff"))
    assert [violation.subjects for violation in broken(iff, together)] == [("b",)]
    alone = replace(iff, groups=Groups(max=1, warps=(1, 4), max_warps=8))
    assert isinstance(check(alone, together), Verified)


def test_iff_asks_nothing_where_no_op_has_a_variable_latency() -> None:
    case = problem([Node(name="b", latency=1)], rules=RuleOptions(variable_latency="iff"))
    schedule = Schedule(
        graph="tiny",
        machine="tiny",
        ii_cycles=1,
        ops=(ScheduledOp(name="b", start_cycle=0, group=0),),
        groups=(Group(name="g0", warps=1, registers_per_thread=0),),
        buffers=(),
    )
    assert isinstance(check(case, schedule), Verified)


@pytest.mark.parametrize(("relation", "words"), [("together", "must share a group"), ("apart", "be in different")])
def test_legality(relation: str, words: str) -> None:
    pair = LegalPair(
        rule="tiny_rule",
        relation="together" if relation == "together" else "apart",
        first="load" if relation == "apart" else "mul",
        second="mul" if relation == "apart" else "sum",
    )
    found = broken(replace(PROBLEM, legality=(pair,)), SCHEDULE)
    assert [violation.rule for violation in found] == ["legality"]
    assert found[0].message.startswith("tiny_rule: ")
    assert words in found[0].message


def flying(first: str, second: str, distance: int = 0) -> LegalPair:
    return LegalPair(rule="tiny_pause", relation="pause", first=first, second=second, distance=distance)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        # mul flies from 1 to 9, where exp starts: 8 cycles are no pause in a period of 8.
        ((flying("mul", "exp"),), "a product that software waits for is in flight in group 0: mul from cycle 1 to 9"),
        # load flies from 0 to 1, mul from 1 to 8: the next load is issued as mul is read.
        ((flying("load", "mul"), flying("mul", "load", 1)), "load from cycle 0 to 1, mul from cycle 1 to 8"),
        # exp flies from 9 to 12: in its group 5 cycles are left.
        ((flying("exp", "sum"),), ""),
        # The first of two readers ends the flight: load of the next iteration, one cycle before exp.
        ((flying("mul", "exp"), flying("mul", "load", 1)), ""),
    ],
)
def test_a_group_needs_a_moment_without_a_product_in_flight(pairs: tuple[LegalPair, ...], message: str) -> None:
    found = check(replace(PROBLEM, legality=pairs), SCHEDULE)
    violations = () if isinstance(found, Verified) else found
    assert [violation.rule for violation in violations] == (["legality"] if message else [])
    assert all(violation.message.startswith("tiny_pause: at every moment") for violation in violations)
    assert all(message in violation.message for violation in violations)
    assert faults(replace(PROBLEM, legality=pairs), SCHEDULE) == ({"legality"} if message else set())


def test_the_window_of_the_paper_is_the_unit_s_not_the_issue_s() -> None:
    # mul issues for 1 cycle but holds the tensor unit for 4: add may start at 2 by its issue, at 4 by the paper.
    case = problem(
        [
            Node(name="mul", uses=(use("mma", 4),), issue=1, latency=6),
            Node(name="add", uses=(use("alu", 1),)),
        ],
        [Dep(tail="mul", head="add", distance=1, blocking=True)],
    )
    schedule = Schedule(
        graph="tiny",
        machine="tiny",
        ii_cycles=8,
        ops=(ScheduledOp(name="mul", start_cycle=0, group=0), ScheduledOp(name="add", start_cycle=3, group=0)),
        groups=(Group(name="g0", warps=1, registers_per_thread=0),),
        buffers=(),
    )
    assert isinstance(check(case, schedule), Verified)
    paper = replace(case, rules=RuleOptions(concurrency="paper"))
    found = broken(paper, schedule)
    assert [violation.rule for violation in found] == ["concurrency"]
    assert isinstance(check(paper, move("add", 4, schedule)), Verified)


def test_sources_stand_in_the_messages() -> None:
    case = replace(PROBLEM, ops=tuple(replace(op, source=f"kernel.py:{line}") for line, op in enumerate(PROBLEM.ops)))
    late, overbooked = broken(case, move("sum", 11))
    assert late.message == (
        "sum of iteration 0 (kernel.py:3) starts at cycle 11, but exp of iteration 0 (kernel.py:2) starts at cycle 9 "
        "and its data edge takes 3 cycles, until 12"
    )
    assert overbooked.message == (
        "alu is held 2 times at cycle 19 (slot 3), its capacity is 1: 1 by exp of iteration 1 (kernel.py:2) in "
        "cycles 17 to 20; 1 by sum of iteration 1 (kernel.py:3) in cycles 19 to 21"
    )
