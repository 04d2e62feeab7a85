"""The heuristic for one group: whatever it finds is a schedule, and what is easy it finds."""

from __future__ import annotations

from hypothesis import given, settings

from problems import Dep, Node, problem, problems, use
from twillgpu.costs.record import Problem
from twillgpu.schedule.assemble import assemble
from twillgpu.schedule.iterative import iterative_schedule
from twillgpu.schedule.polish import Draft
from twillgpu.verify import Verified, check


def chain(cycles: int) -> Problem:
    """Three ops in a row on one unit, each holding it for ``cycles``."""
    nodes = [Node(name=name, uses=(use(cycles=cycles),), latency=5) for name in "abc"]
    return problem(nodes, [Dep(tail="a", head="b"), Dep(tail="b", head="c")], units={"alu": 1})


def test_a_chain_at_its_bound() -> None:
    starts = iterative_schedule(chain(2), 6, 4)
    assert starts is not None
    assert starts["b"] >= starts["a"] + 5
    assert starts["c"] >= starts["b"] + 5
    slots = sorted((start + cycle) % 6 for start in starts.values() for cycle in range(2))
    assert slots == list(range(6))


def test_nothing_below_the_bound() -> None:
    assert iterative_schedule(chain(2), 5, 9) is None


def test_an_op_longer_than_the_interval_does_not_fit() -> None:
    assert iterative_schedule(problem([Node(name="a", uses=(use(cycles=3),))]), 2, 9) is None


def test_no_more_stages_than_allowed() -> None:
    assert iterative_schedule(chain(1), 3, 5) is not None
    assert iterative_schedule(chain(1), 3, 4) is None


def test_a_circuit_too_long_is_no_schedule() -> None:
    loop = problem([Node(name="a", latency=4)], [Dep(tail="a", head="a", distance=1)])
    assert iterative_schedule(loop, 3, 9) is None
    assert iterative_schedule(loop, 4, 9) == {"a": 0}


def test_an_op_that_stands_in_the_way_is_taken_out() -> None:
    # The long op is placed first and fills slots 0 to 3; the circuit of the others leaves them no choice but 0 and 2.
    nodes = [
        Node(name="long", uses=(use("wide", cycles=4),), latency=9),
        Node(name="a", uses=(use(),), latency=2),
        Node(name="b", uses=(use(),), latency=2),
    ]
    deps = [Dep(tail="a", head="b"), Dep(tail="b", head="a", distance=1)]
    starts = iterative_schedule(problem(nodes, deps, units={"alu": 1, "wide": 1}), 4, 4)
    assert starts is not None
    assert (starts["b"] - starts["a"]) % 4 == 2


@settings(max_examples=60)
@given(problems())
def test_what_it_finds_passes_the_verifier(tiny: Problem) -> None:
    if tiny.groups.max > 1 or tiny.registers is not None or tiny.legality:
        return
    for interval in range(1, 8):
        starts = iterative_schedule(tiny, interval, 3)
        if starts is not None:
            schedule = assemble(tiny, Draft(ii_cycles=interval, starts=starts, groups=dict.fromkeys(starts, 0)))
            if schedule is not None:
                assert isinstance(check(tiny, schedule, max_stages=3), Verified)
