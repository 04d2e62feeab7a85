"""What the tests of the paper's method share: handed graphs, and questions with some starts and groups given."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from twillgpu.costs.price import price
from twillgpu.costs.record import Problem
from twillgpu.graph.jsonform import read_graph
from twillgpu.machine.record import Machine
from twillgpu.schedule.paper.joint import build
from twillgpu.schedule.paper.record import JointQuestion
from twillgpu.schedule.paper.solve import run_yices

GRAPHS = Path(__file__).parent.parent.parent / "graph" / "data"

MINIMA = {
    "paper_figure_1": 2,
    "recurrence": 4,
    "not_monotone_free": 2,
    "not_monotone": 4,
    "blocking_one_group": 4,
    "blocking_two_groups": 3,
    "register_free": 2,
    "register_limited": 6,
}
"""Smallest interval of each handed graph; tests/schedule/test_search_cases.py derives them."""

SECONDS = 60.0


def handed(name: str) -> Problem:
    """Return a handed graph, priced for the machine that it carries."""
    file = GRAPHS / f"{name}.json"
    graph = read_graph(file.read_text(encoding="utf-8"), file.name)
    assert isinstance(graph.machine, Machine)
    return price(graph, graph.machine)


def outcome(
    question: JointQuestion, starts: dict[str, int], groups: dict[str, int] | None = None, also: Iterable[str] = ()
) -> str:
    """Return what Yices says where ops start at given cycles in given groups."""
    program = build(question)
    for name, start in starts.items():
        program.script.require(program.op(name, 0, start))
    for name, group in (groups or {}).items():
        program.script.require(program.inside(name, group))
    for term in also:
        program.script.require(term)
    return run_yices(program.script.text(), SECONDS).outcome
