"""What a faster unit does to ops that hold it."""

from __future__ import annotations

import pytest

from problems import Dep, Node, problem, use
from twillgpu.costs.record import Problem
from twillgpu.explain.faster import FINE, faster
from twillgpu.graph.record import Use

# a holds the tensor unit and 5 of 8 shares of the port for 512 cycles; its result is there 32 cycles later.
PAIR = problem(
    [
        Node(name="a", uses=(use("tensor", 512), use("port", 512, amount=5)), latency=544, issue=16),
        Node(name="b", uses=(use("alu", 64),)),
    ],
    [Dep(tail="a", head="b")],
    units={"tensor": 1, "port": 8, "alu": 2},
)


def uses(tiny: Problem, name: str) -> dict[str, Use]:
    return {one.unit: one for op in tiny.ops if op.name == name for one in op.uses}


def test_other_shares_work_in_the_shorter_time() -> None:
    # At 125 %: 512 / 1.25 = 409.6 cycles, 410; 5 x 512 share cycles in 410 are 6.24 shares.
    found = faster(PAIR, "tensor", 125, pace=True)
    held = uses(found, "a")
    assert held["tensor"] == Use(unit="tensor", cycles=410)
    assert held["port"] == Use(unit="port", cycles=410, amount=100)
    assert [unit.capacity for unit in found.units] == [1, 8 * FINE, 2]
    assert -(-5 * FINE * 512 // 410) == 100
    assert (found.ops[0].latency_cycles, found.ops[0].issue_cycles) == (544 - 102, 16)
    assert found.edges[0].latency_cycles == 544 - 102


def test_shares_that_are_all_in_use_limit_the_op() -> None:
    # Twice as fast the tensor unit takes 256 cycles, but all of the port needs 5 x 512 / 8 = 320.
    found = faster(PAIR, "tensor", 200, pace=True)
    held = uses(found, "a")
    assert held["port"] == Use(unit="port", cycles=320, amount=8 * FINE)
    assert held["tensor"] == Use(unit="tensor", cycles=256, amount=2)
    assert found.ops[0].latency_cycles == 544 - (512 - 320)


def test_without_a_new_pace_only_the_unit_is_free_sooner() -> None:
    found = faster(PAIR, "tensor", 125, pace=False)
    assert uses(found, "a")["tensor"].cycles == 410
    assert uses(found, "a")["port"] == uses(PAIR, "a")["port"]
    assert found.edges == PAIR.edges


@pytest.mark.parametrize(("percent", "capacity", "cycles"), [(150, 3, 64), (200, 4, 64), (125, 2, 52)])
def test_instances_are_added_where_they_are_whole(percent: int, capacity: int, cycles: int) -> None:
    # b holds one of two: half as many again are three; a quarter is none, so that 64 / 1.25 = 51.2 cycles are held.
    found = faster(PAIR, "alu", percent, pace=False)
    assert found.units[2].capacity == capacity
    assert uses(found, "b")["alu"].cycles == cycles


def test_one_cycle_cannot_be_halved_but_two_units_take_turns() -> None:
    tiny = problem([Node(name="a", uses=(use("x", 1),))])
    found = faster(tiny, "x", 200, pace=True)
    assert (found.units[0].capacity, uses(found, "a")["x"]) == (2, Use(unit="x", cycles=1))
