"""The polish never makes a draft worse, keeps what the draft decided, and what it gives holds in cycles."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from searching import groups, starts

from exhaustive import brute_force, schedules
from problems import Dep, Node, in_memory, in_registers, problem, problems, use
from twillgpu.costs.record import Problem, RuleOptions
from twillgpu.machine.record import Groups, Memory
from twillgpu.schedule.assemble import assemble
from twillgpu.schedule.polish import Draft, polish, wait_window
from twillgpu.schedule.record import Schedule
from twillgpu.verify import Verified, check

STAGES = 2
MANY = settings(max_examples=80, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def draft(interval: int, /, *, where: dict[str, int] | None = None, **at: int) -> Draft:
    return Draft(ii_cycles=interval, starts=at, groups=where or dict.fromkeys(at, 0))


BOTH = frozenset({"registers", "buffers"})


def polished(tiny: Problem, first: Draft, *, keep: frozenset[str] = frozenset(), stages: int = 3) -> Draft:
    found = polish(tiny, first, lower=1, stages=stages, keep=keep)
    assert found is not None
    return found


def test_slack_is_taken_out() -> None:
    # Two uses of one unit, 3 and 2 cycles, far apart in a period of 20: 5 cycles remain.
    pair = problem([Node(name="a", uses=(use(cycles=3),)), Node(name="b", uses=(use(cycles=2),))])
    assert polished(pair, draft(20, a=0, b=11)) == draft(5, a=0, b=3)


def test_the_order_on_a_unit_is_kept() -> None:
    # c waits 4 cycles for a. With c between a and b of the next period, 3 cycles would do; in this order, 5.
    three = problem(
        [Node(name=name, uses=(use(cycles=1),), latency=latency) for name, latency in (("a", 4), ("b", 1), ("c", 1))],
        [Dep(tail="a", head="c")],
    )
    assert polished(three, draft(9, a=0, b=2, c=7)) == draft(5, a=0, b=1, c=4)


def test_the_interval_is_not_below_the_bound() -> None:
    alone = problem([Node(name="a", uses=(use(cycles=3),))])
    found = polish(alone, draft(9, a=0), lower=7, stages=1, keep=frozenset())
    assert found is not None
    assert found.ii_cycles == 7


def test_a_use_longer_than_the_new_interval_counts_twice() -> None:
    """Before: a unit that sufficed for all uses at the draft's interval was forgotten at the shorter one.

    Capacity 2: a's 11 cycles and b's 2, each one of two. At 12 they may meet; below 11 a meets itself, and then
    b has to be in the 2 I - 11 cycles in which it does not. So 11 + 2 <= 2 I: I = 7, b beside one a only.
    """
    pair = problem([Node(name="a", uses=(use(cycles=11),)), Node(name="b", uses=(use(cycles=2),))], units={"alu": 2})
    found = polished(pair, draft(12, a=0, b=0))
    schedule = assemble(pair, found)
    assert schedule is not None
    assert isinstance(check(pair, schedule), Verified)


def test_a_wait_stays_clear_of_the_ops_around_it() -> None:
    # b waits for a; c issues for 3 cycles before it in the draft and goes on doing so.
    waiting = problem(
        [Node(name="a", latency=1), Node(name="b"), Node(name="c", uses=(use(cycles=3),))],
        [Dep(tail="a", head="b", blocking=True)],
    )
    found = polished(waiting, draft(12, a=0, c=3, b=8))
    assert found.ii_cycles == 4
    assert (found.starts["b"] - found.starts["c"]) % 4 == 3


def test_no_draft_becomes_none() -> None:
    # b starts a cycle before a's result is there.
    chain = problem([Node(name="a", latency=3), Node(name="b")], [Dep(tail="a", head="b", distance=1)])
    assert polish(chain, draft(2, a=0, b=0), lower=1, stages=1, keep=frozenset()) is None


def test_lifetimes_that_take_turns_go_on_taking_turns() -> None:
    # One place for two values of 3 and 4 cycles: 7 cycles. Without keeping them apart, only b's recurrence of 5.
    memory = (Memory(name="smem", capacity_bytes=4, alignment_bytes=4),)
    pair = problem(
        [Node(name="a", latency=3, value=in_memory(4)), Node(name="b", latency=4, value=in_memory(4))],
        [Dep(tail="b", head="b", distance=1, kind="order", latency=5)],
        memories=memory,
    )
    first = draft(12, a=0, b=5)
    assert polished(pair, first, keep=BOTH).ii_cycles == 7
    assert polished(pair, first).ii_cycles == 5


def test_values_are_made_late_and_read_early() -> None:
    # Interval fixed by the unit of 10 cycles. a's register value waits for b, which c's latency holds up to 6.
    late = problem(
        [
            Node(name="m", uses=(use("mma", 10),)),
            Node(name="a", latency=1, value=in_registers(8)),
            Node(name="c", latency=6),
            Node(name="b", latency=1),
        ],
        [Dep(tail="a", head="b"), Dep(tail="c", head="b", kind="order", latency=6)],
    )
    found = polished(late, draft(10, m=0, a=0, c=0, b=8))
    assert found.starts["b"] - found.starts["a"] == 1


def test_shorter_lifetimes_do_not_cost_a_stage() -> None:
    """Before: the polish moved b from 0 to 3, where a of the next iteration reads it at once, into a second stage.

    Stages come before lifetimes in the objective, and the solver had found the fewest: so b begins at 2 at most.
    """
    tiny = problem(
        [Node(name="a", latency=2), Node(name="b", uses=(use("mma", 3),), value=in_registers(24), variable=True)],
        [Dep(tail="b", head="a", distance=1)],
    )
    assert polished(tiny, draft(3, a=0, b=0)).starts == {"a": 0, "b": 2}


def test_the_window_of_a_wait() -> None:
    asynchronous = problem([Node(name="a", uses=(use("mma", 4, offset=1),), issue=2), Node(name="b", issue=3)])
    paper = replace(asynchronous, rules=RuleOptions(concurrency="paper"))
    assert [wait_window(asynchronous, op) for op in asynchronous.ops] == [2, 3]
    assert [wait_window(paper, op) for op in paper.ops] == [5, 3]


def draft_of(schedule: Schedule) -> Draft:
    return Draft(ii_cycles=schedule.ii_cycles, starts=starts(schedule), groups=groups(schedule))


@MANY
@given(problems(max_ops=3), st.integers(min_value=0, max_value=3), st.integers(min_value=0, max_value=9))
def test_a_draft_that_holds_becomes_no_worse(tiny: Problem, more: int, skipped: int) -> None:
    smallest = brute_force(tiny, STAGES)
    if smallest is None:
        return
    for schedule in islice(schedules(tiny, smallest[0] + more, STAGES), skipped, skipped + 1):
        for keep in (frozenset(), BOTH):
            found = polish(tiny, draft_of(schedule), lower=1, stages=STAGES, keep=keep)
            assert found is not None
            assert found.ii_cycles <= schedule.ii_cycles
            assert found.groups == groups(schedule)
            assert min(found.starts.values()) == 0
            holds(tiny if keep else replace(tiny, registers=None, memories=()), found)


def holds(tiny: Problem, found: Draft) -> None:
    """Check with the verifier. Places may be missing even where lifetimes are kept: rings are laid out anew."""
    schedule = assemble(tiny, found)
    if schedule is None:
        assert tiny.memories
        return
    verdict = check(tiny, schedule, max_stages=STAGES)
    assert isinstance(verdict, Verified), verdict


def test_two_groups_keep_their_hand_off() -> None:
    pair = problem(
        [Node(name="a", latency=2, value=in_registers(8), handoff=3), Node(name="b")],
        [Dep(tail="a", head="b")],
        groups=Groups(max=2, warps=(1, 4), max_warps=8),
    )
    apart = polished(pair, draft(9, a=0, b=8, where={"a": 0, "b": 1}))
    assert apart.starts["b"] == 5
    assert polished(pair, draft(9, a=0, b=8)).starts["b"] == 2
