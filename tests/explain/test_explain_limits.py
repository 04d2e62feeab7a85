"""Explanations at the edges: nothing to relax, no schedule, no time; and what is known without solving."""

from __future__ import annotations

from dataclasses import replace

import pytest
from explaining import explained, handed, helping, last_sets, named

from problems import Node, problem, use
from twillgpu.explain.critical import critical_circuit, critical_unit
from twillgpu.explain.record import ExplainOptions, Share

TWO_USES = problem([Node(name="a", uses=(use("x", 3),)), Node(name="b", uses=(use("x", 2), use("y", 1)))])


def test_what_the_bound_leaves_alone_is_not_asked() -> None:
    # x is held for 5 cycles; y and the stages cannot matter, and no solver is asked about them.
    explanation = explained(TWO_USES)
    cells = {named((row.family,)): [cell for cell in row.cells if cell] for row in explanation.rows}
    for name in (("unit y",), ("stages",)):
        assert [(cell.lower_cycles, cell.upper_cycles, cell.solved) for cell in cells[name]] == [(5, 5, False)] * 3
    # x at 125 %: 2.4 and 1.6 cycles are 3 + 2; at 150 %: 2 + 2; halves would be 2 + 1, two of x take ceil(5 / 2).
    assert [cell.upper_cycles for cell in cells["unit x",]] == [5, 4, 3]


def test_rules_outside_every_set_are_not_asked_either() -> None:
    explanation = explained(handed("register_limited"))
    rows = {named((row.family,)): row for row in explanation.rows}
    assert [cell.solved for cell in rows["register_file",].cells if cell] == [False] * 3
    assert [cell.upper_cycles for cell in rows["registers",].cells if cell] == [6, 6, 3]


def test_an_interval_of_one_cycle_has_nothing_to_explain() -> None:
    explanation = explained(problem([Node(name="a", latency=1)]))
    assert (explanation.forced, explanation.ways) == ((), ())
    assert (explanation.unit, explanation.circuit) == (None, None)


def test_bounds_that_bind_together_are_relaxed_together() -> None:
    # x and y both need 4 cycles: each alone changes nothing; both at 125 % take ceil(3.2) = 4, at 150 % 3 (2.7).
    tiny = problem([Node(name="a", uses=(use("x", 4),)), Node(name="b", uses=(use("y", 4),))])
    explanation = explained(tiny)
    assert last_sets(explanation) == [("unit x",), ("unit y",)]
    assert helping(explanation) == {("unit x", "unit y"): (150, 3)}


def test_no_schedule_at_all_is_explained_by_what_gives_one() -> None:
    # In one stage A and B live together, 40 + 20 registers, however large the interval: 40 are too few, 60 are
    # enough, and 64 is the next quota. A 2, B 4 and C 2 cycles in a row are an interval of 8.
    limited = handed("register_limited")
    assert limited.registers is not None
    tiny = replace(limited, registers=replace(limited.registers, per_thread=40))
    explanation = explained(tiny, stages=1)
    assert explanation.result.status == "infeasible"
    assert last_sets(explanation) == [("registers",)]
    assert helping(explanation) == {("registers",): (64, 8)}
    stages = next(row for row in explanation.rows if row.family.kind == "register_file")
    assert all(cell is not None and cell.infeasible for cell in stages.cells)


@pytest.mark.parametrize("seconds", [1e-9])
def test_without_time_everything_open_is_marked(seconds: float) -> None:
    explanation = explained(TWO_USES, ExplainOptions(time_budget_seconds=seconds))
    assert not explanation.complete
    assert [(way.least, way.answered) for way in explanation.ways] == [(None, False)]
    rows = {named((row.family,)): row.cells for row in explanation.rows}
    # That 125 % change nothing is known from the bound.
    assert [cell is None for cell in rows["unit x",]] == [False, True, True]
    assert all(cell is not None for cell in rows["unit y",])


def test_the_critical_unit_by_source_line_or_op() -> None:
    unit = critical_unit(TWO_USES)
    assert unit is not None
    assert (unit.unit, unit.bound_cycles) == ("x", 5)
    assert unit.shares == (Share(source="a", ops=("a",), cycles=3), Share(source="b", ops=("b",), cycles=2))


def test_the_critical_circuit_with_its_latencies() -> None:
    circuit = critical_circuit(handed("recurrence"))
    assert circuit is not None
    assert [(step.op, step.latency_cycles) for step in circuit.steps] == [("A", 3), ("B", 4)]
    assert (circuit.latency_cycles, circuit.distance, circuit.bound_cycles) == (7, 2, 4)
