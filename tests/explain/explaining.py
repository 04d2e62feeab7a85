"""Explanations for tests: every one keeps what all must keep."""

from __future__ import annotations

from pathlib import Path

from twillgpu.costs.price import price
from twillgpu.costs.record import Problem
from twillgpu.explain.explain import explain
from twillgpu.explain.record import ExplainOptions, Explanation, Family, Relaxed
from twillgpu.graph.jsonform import read_graph
from twillgpu.machine.record import Machine
from twillgpu.schedule.record import SearchOptions
from twillgpu.schedule.search import search

GRAPHS = Path(__file__).parent.parent / "graph" / "data"
EXACT = 10**6
"""A resolution of so many slots per iteration: every slot is a cycle."""

PATIENT = ExplainOptions(time_budget_seconds=300.0)


def handed(name: str) -> Problem:
    """Return a handed graph, priced for the machine that it carries."""
    file = GRAPHS / f"{name}.json"
    graph = read_graph(file.read_text(encoding="utf-8"), file.name)
    assert isinstance(graph.machine, Machine)
    return price(graph, graph.machine)


def explained(problem: Problem, options: ExplainOptions = PATIENT, stages: int | None = None) -> Explanation:
    """Search and explain; check that ranges follow each other and that no relaxation makes the interval larger."""
    result = search(problem, SearchOptions(resolution=EXACT, max_stages=stages))
    explanation = explain(problem, result, options)
    following = 1
    for forced in explanation.forced:
        assert forced.first_cycles == following
        following = forced.last_cycles + 1
    assert following == result.lower_bound_cycles
    interval = result.schedule.ii_cycles if result.schedule is not None else None
    for row in explanation.rows:
        _never_worse([cell for cell in row.cells if cell is not None], interval)
    return explanation


def _never_worse(cells: list[Relaxed], interval: int | None) -> None:
    limits = [interval, *(cell.upper_cycles for cell in cells)]
    known = [limit for limit in limits if limit is not None]
    assert known == sorted(known, reverse=True)
    for cell in cells:
        assert cell.upper_cycles is None or cell.lower_cycles <= cell.upper_cycles


def named(families: tuple[Family, ...]) -> tuple[str, ...]:
    """Return the families of a set as ``kind`` or ``kind name``."""
    return tuple(f"{family.kind} {family.name}".rstrip() for family in families)


def last_sets(explanation: Explanation) -> list[tuple[str, ...]]:
    """Return the smallest sets of the largest refuted intervals."""
    return [named(one) for one in explanation.forced[-1].sets]


def helping(explanation: Explanation) -> dict[tuple[str, ...], tuple[int | None, int | None]]:
    """Return, for each way that helps, the amount (of its first family) and the interval."""
    found = {}
    for way in explanation.ways:
        if way.least is not None:
            found[named(way.families)] = (way.least.changes[0].after, way.least.upper_cycles)
    return found
