"""Rounding up, a schedule in slots is one in cycles; rounding down, a schedule in cycles is one in slots."""

from __future__ import annotations

from dataclasses import replace

import pytest
from embedding import admits, question, solvable
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from searching import EXACT, searched
from stretching import stretched

from problems import Dep, Node, in_memory, in_registers, problem, use
from twillgpu.costs.record import LegalPair, Problem, RuleOptions, Scale
from twillgpu.costs.scale import scaled, slots
from twillgpu.graph.record import Use
from twillgpu.machine.record import Groups, Memory
from twillgpu.schedule.assemble import assemble
from twillgpu.schedule.model import answer, build
from twillgpu.schedule.polish import Draft
from twillgpu.schedule.record import Group, Schedule, ScheduledOp, SearchOptions
from twillgpu.schedule.solved import Effort
from twillgpu.verify import Verified, check

UP, DOWN = Scale(slot_cycles=4, rounding="up"), Scale(slot_cycles=4, rounding="down")
STAGES = 2


def test_durations_are_rounded_as_asked() -> None:
    assert [slots(cycles, UP) for cycles in (0, 1, 4, 5)] == [0, 1, 1, 2]
    assert [slots(cycles, DOWN) for cycles in (0, 3, 4, 7)] == [0, 0, 1, 1]


def test_one_cycle_per_slot_changes_nothing() -> None:
    tiny = problem([Node(name="a", uses=(use(cycles=3),))])
    assert scaled(tiny, Scale(slot_cycles=1, rounding="up")) is tiny


@pytest.mark.parametrize(
    ("run", "up", "down"),
    [
        # Cycles 3 to 9 touch slots 0, 1 and 2 of four cycles; a late run is not placed for sure, rounded down.
        (use(cycles=6, offset=3), (0, 3), None),
        (use(cycles=4, offset=4), (1, 1), None),
        # Cycles 0 to 6 touch two slots and cover one.
        (use(cycles=6), (0, 2), (0, 1)),
        # Too short to cover a slot.
        (use(cycles=3), (0, 1), None),
    ],
)
def test_uses_are_rounded_outwards_and_inwards(run: Use, up: tuple[int, int], down: tuple[int, int] | None) -> None:
    tiny = problem([Node(name="a", uses=(run,))])
    (outwards,) = scaled(tiny, UP).ops[0].uses
    inwards = scaled(tiny, DOWN).ops[0].uses
    assert (outwards.offset, outwards.cycles) == up
    assert [(item.offset, item.cycles) for item in inwards if item.amount] == ([down] if down else [])


def test_latency_and_hand_off_are_rounded_together() -> None:
    # 3 + 3 cycles are two slots up and one down, although each alone is one up and none down.
    tiny = problem([Node(name="a", latency=3, handoff=3), Node(name="b")], [Dep(tail="a", head="b")])
    for scale, latency, handoff in ((UP, 1, 1), (DOWN, 0, 1)):
        small = scaled(tiny, scale)
        assert (small.edges[0].latency_cycles, small.edges[0].handoff_cycles) == (latency, handoff)
        assert (small.ops[0].latency_cycles, small.ops[0].handoff_cycles) == (latency, handoff)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(stretched(factor=4), st.integers(min_value=2, max_value=4))
def test_a_schedule_rounded_up_holds_in_cycles(tiny: Problem, slot: int) -> None:
    scale = Scale(slot_cycles=slot, rounding="up")
    for interval in range(1, 12):
        reply = answer(question(tiny, interval, STAGES, scale), (), Effort(work=1.0, seconds=30.0))
        if reply.starts:
            assert times_hold(tiny, reply.starts, reply.groups, interval, slot)
            return


def times_hold(tiny: Problem, starts: dict[str, int], groups: dict[str, int], interval: int, slot: int) -> bool:
    """Return whether all rules but those on registers and places hold in cycles."""
    unlimited = replace(tiny, registers=None, memories=())
    cycles = {name: start * slot for name, start in starts.items()}
    schedule = assemble(unlimited, Draft(ii_cycles=interval * slot, starts=cycles, groups=groups))
    assert schedule is not None
    return isinstance(check(unlimited, schedule, max_stages=STAGES), Verified)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(stretched(factor=4), st.integers(min_value=2, max_value=5))
def test_a_schedule_in_cycles_holds_rounded_down(tiny: Problem, slot: int) -> None:
    schedule = searched(tiny, SearchOptions(resolution=EXACT, max_stages=STAGES)).schedule
    assume(schedule is not None)
    assert schedule is not None
    assert admits(tiny, schedule, STAGES, slot)


def test_a_late_use_may_wrap_around_more_often_than_its_slots_do() -> None:
    """A use far behind its op's start drifts by the part of a slot that every period lacks.

    Before: with offsets rounded up alone, the model in slots refuted this schedule. b's use, at 3 + 4 = 7 = 2
    modulo 5, meets a's at 0 to 2 in slots of two cycles (1 + 2 = 3 = 0 modulo 3) but not in cycles.
    """
    tiny = problem([Node(name="a", uses=(use(cycles=2),)), Node(name="b", uses=(use(cycles=2, offset=4),))])
    schedule = plan(5, a=0, b=3)
    assert isinstance(check(tiny, schedule), Verified)
    assert admits(tiny, schedule, stages=3, slot=2)


def test_no_late_uses_refute_an_interval_that_is_possible() -> None:
    """Before: 7 cycles were refuted in slots of two, although a at 0 and b at 3 is a schedule.

    x: a 0 to 2, b 13 to 17, that is 6 to 10 = 6, 0 to 3 modulo 7: they would meet; so b starts elsewhere. The
    search in cycles finds a place, and what is possible in cycles must not be refuted in slots.
    """
    tiny = problem(
        [
            Node(name="a", uses=(use("x", 2), use("y", 4, offset=10)), latency=2),
            Node(name="b", uses=(use("x", 4, offset=10), use("y", 2, offset=2)), latency=3),
        ]
    )
    result = searched(tiny, SearchOptions(resolution=EXACT, max_stages=3))
    assert result.schedule is not None
    assert result.schedule.ii_cycles == 7
    core = build(question(tiny, 4, 3, Scale(slot_cycles=2, rounding="down")), ())
    assert core is not None
    assert solvable(core)


def test_a_use_too_short_for_a_slot_keeps_no_wait_away_for_as_long_as_its_op_issues() -> None:
    """Before: by the paper's rule, the window of an op whose use is shorter than a slot was its issue time.

    busy's use ends after 1 of its 10 cycles of issue, so w may wait at 5, which is slot 1 of 4 cycles.
    """
    tiny = problem(
        [
            Node(name="busy", uses=(use(cycles=1),), issue=10, latency=10),
            Node(name="f", latency=1),
            Node(name="w", latency=1),
        ],
        [Dep(tail="f", head="w", blocking=True)],
        rules=RuleOptions(concurrency="paper"),
    )
    schedule = plan(12, busy=0, f=0, w=5)
    assert isinstance(check(tiny, schedule), Verified)
    assert admits(tiny, schedule, stages=2, slot=4)


def test_a_staging_copy_begins_no_earlier_in_slots_than_in_cycles() -> None:
    """Before: the copy's begin was rounded down with the latency, which made it a slot long instead of a cycle.

    Room for one copy: c's 4 cycles and two staging copies of 1 cycle each fit 6 cycles. In slots of 2, c has 2
    of 3 slots, so the staging copies must not both take a whole one.
    """
    tiny = tight_staging()
    schedule = searched(tiny, SearchOptions(resolution=EXACT, max_stages=STAGES)).schedule
    assert schedule is not None
    assert schedule.ii_cycles == 6
    assert admits(tiny, schedule, STAGES, slot=2)


def test_a_staging_copy_is_no_shorter_in_slots_than_in_cycles() -> None:
    """Before: rounded up with the latency, its begin came too late; what fitted in slots did not in cycles.

    The search then ended without a schedule. In cycles: 20 times 6.
    """
    for resolution in (2, 3, 4, 34):
        result = searched(tight_staging(20), SearchOptions(resolution=resolution, max_stages=STAGES))
        assert result.schedule is not None
        assert result.schedule.ii_cycles == 120


def tight_staging(factor: int = 1) -> Problem:
    def sender(name: str) -> Node:
        return Node(name=name, latency=factor, value=in_registers(8), handoff=factor, staging=4)

    return problem(
        [
            Node(name="c", latency=4 * factor, value=in_memory(4)),
            sender("u"),
            Node(name="v", latency=1),
            sender("x"),
            Node(name="y", latency=1),
        ],
        [Dep(tail="u", head="v"), Dep(tail="x", head="y")],
        memories=(Memory(name="smem", capacity_bytes=4, alignment_bytes=4),),
        groups=Groups(max=2, warps=(1, 4), max_warps=8),
        legality=tuple(
            LegalPair(rule="tiny_rule", relation="apart", first=first, second=second)
            for first, second in (("u", "v"), ("x", "y"))
        ),
    )


def plan(interval: int, **starts: int) -> Schedule:
    """Return a schedule of one group without buffers."""
    return Schedule(
        graph="tiny",
        machine="tiny",
        ii_cycles=interval,
        ops=tuple(ScheduledOp(name=name, start_cycle=start, group=0) for name, start in starts.items()),
        groups=(Group(name="all", warps=1, registers_per_thread=0),),
        buffers=(),
    )
