"""Bounds derived anew: they hold where they should, and nothing is derived for one cycle more."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from problems import Dep, Node, problem, problems, use
from twillgpu.certify.analytic import derive
from twillgpu.costs.bounds import bounds
from twillgpu.costs.record import Problem

UNITS = problem(
    [Node(name="a", uses=(use("alu", 3, amount=2),)), Node(name="b", uses=(use("alu", 3),))], units={"alu": 2}
)
CIRCUIT = problem(
    [Node(name="a", latency=5), Node(name="b", latency=4)],
    [Dep(tail="a", head="b"), Dep(tail="b", head="a", distance=2)],
)


def test_a_unit_that_is_held_too_long() -> None:
    # 2 x 3 + 3 of 2 shares: 4.5 cycles.
    assert derive(UNITS, "alu", 5) == "alu is held for 9 unit-cycles, an interval of 4 has 2 x 4"
    assert derive(UNITS, "alu", 6) == ""


def test_a_circuit_that_takes_too_long() -> None:
    assert derive(CIRCUIT, "recurrence", 5) in {
        "a -> b takes 9 cycles over 2 iterations, 2 x 4 are too few",
        "b -> a takes 9 cycles over 2 iterations, 2 x 4 are too few",
    }
    assert derive(CIRCUIT, "recurrence", 6) == ""


@pytest.mark.parametrize("name", ["registers", "smem", "no such bound"])
def test_what_has_no_second_derivation_stays_open(name: str) -> None:
    assert derive(UNITS, name, 5) == ""
    assert derive(UNITS, name, 1) == "an interval is at least 1 cycle"


@settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(problems(max_ops=4))
def test_every_bound_is_derived_and_no_larger_one(tiny: Problem) -> None:
    recurrence = max((bound.cycles for bound in bounds(tiny).bounds if bound.name == "recurrence"), default=1)
    for bound in bounds(tiny).bounds:
        if bound.name == "consistency":
            continue
        assert derive(tiny, bound.name, bound.cycles)
        assert derive(tiny, bound.name, bound.cycles + 1) == "" or bound.cycles < recurrence
