"""Brute force with the verifier as its judge finds the stated minimum of every handed graph."""

from __future__ import annotations

from pathlib import Path

import pytest

from exhaustive import brute_force
from slow_oracle import faults
from twillgpu.costs.price import price
from twillgpu.graph.jsonform import read_graph
from twillgpu.machine.record import Machine

GRAPHS = Path(__file__).parent.parent / "graph" / "data"

MINIMA = [
    # The tensor unit is used twice per iteration.
    ("paper_figure_1", 2),
    # Latency 7 around a circuit of distance 2.
    ("recurrence", 4),
    # One op holds a unit at offsets 0 and 3: at 1 and 3 it meets itself.
    ("not_monotone_free", 2),
    # The same with a recurrence of 3, which rules out 2 as well.
    ("not_monotone", 4),
    # EXP issues for 3 cycles, ADD waits and needs a cycle in which EXP does not issue.
    ("blocking_one_group", 4),
    ("blocking_two_groups", 3),
    # One iteration lasts 8 cycles: 4 stages.
    ("register_free", 2),
    # A's 40 registers live 6 cycles; two of them do not fit 64.
    ("register_limited", 6),
]


@pytest.mark.parametrize(("name", "interval"), MINIMA)
def test_minimum(name: str, interval: int) -> None:
    file = GRAPHS / f"{name}.json"
    graph = read_graph(file.read_text(encoding="utf-8"), file.name)
    assert isinstance(graph.machine, Machine)
    problem = price(graph, graph.machine)
    found = brute_force(problem, 4)
    assert found is not None
    assert found[0] == interval
    assert faults(problem, found[1]) == set()
