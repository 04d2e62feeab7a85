"""Windows hold every start of every schedule, and an empty one refutes the interval."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from exhaustive import brute_force
from problems import Dep, Node, problem, problems, use
from twillgpu.costs.record import Problem
from twillgpu.schedule.windows import Windows, windows


def found(tiny: Problem, interval: int, stages: int) -> Windows:
    result = windows(tiny, interval, stages)
    assert result is not None
    return result


def test_a_chain_leaves_each_op_what_the_others_do_not_need() -> None:
    # a 3, b 2, c 1 in a row, 2 stages of 4 cycles: a starts in 0..2, b in 3..5, c in 5..7; one period less a
    # cycle is added at the end, since the anchor may begin anywhere in the first period.
    chain = problem(
        [Node(name="a", latency=3), Node(name="b", latency=2), Node(name="c", latency=1)],
        [Dep(tail="a", head="b"), Dep(tail="b", head="c")],
    )
    assert found(chain, 4, 2).of == {"a": (0, 2 + 3), "b": (3, 5 + 3), "c": (5, 7 + 3)}


def test_an_edge_to_a_later_iteration_asks_for_less() -> None:
    # b of iteration i reads a of iteration i - 1: M(b) + 4 >= M(a) + 6, so b may start 2 after a.
    carried = problem([Node(name="a", latency=6), Node(name="b", latency=1)], [Dep(tail="a", head="b", distance=1)])
    assert found(carried, 4, 2).of["b"][0] == 2
    assert found(carried, 6, 2).of["b"][0] == 0


def test_too_few_stages_are_refuted() -> None:
    # 3 + 2 cycles take two stages of 4.
    chain = problem([Node(name="a", latency=3), Node(name="b", latency=2)], [Dep(tail="a", head="b")])
    assert windows(chain, 4, 1) is None
    assert windows(chain, 4, 2) is not None


def test_a_circuit_longer_than_its_iterations_is_refuted() -> None:
    # 5 cycles around a circuit of one iteration.
    circuit = problem(
        [Node(name="a", latency=3), Node(name="b", latency=2)],
        [Dep(tail="a", head="b"), Dep(tail="b", head="a", distance=1)],
    )
    assert windows(circuit, 4, 9) is None
    assert windows(circuit, 5, 9) is not None


def test_an_op_without_latency_still_has_to_start_within_its_stages() -> None:
    alone = problem([Node(name="a", latency=0)])
    assert found(alone, 3, 1).of["a"] == (0, 2 + 2)


def test_the_anchor_is_the_longest_use_of_a_unit_that_serves_one() -> None:
    nodes = [
        Node(name="a", uses=(use("wide", 9),)),
        Node(name="b", uses=(use("narrow", 2),)),
        Node(name="c", uses=(use("narrow", 3),)),
        Node(name="d", uses=(use("narrow", 3),)),
    ]
    assert found(problem(nodes, units={"wide": 2, "narrow": 1}), 9, 1).anchor == "c"
    # Without such a unit, the first op.
    assert found(problem(nodes, units={"wide": 2, "narrow": 3}), 9, 1).anchor == "a"


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(problems(max_ops=3))
def test_every_schedule_of_brute_force_is_within_its_windows(tiny: Problem) -> None:
    smallest = brute_force(tiny, 2)
    if smallest is None:
        return
    interval, schedule = smallest
    span = found(tiny, interval, 2)
    turned = -schedule.start(span.anchor) % interval
    for op in schedule.ops:
        first, last = span.of[op.name]
        assert first <= op.start_cycle + turned <= last
