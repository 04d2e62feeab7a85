"""Searches for tests: whatever comes out has passed the verifier, and its claims fit together."""

from __future__ import annotations

from pathlib import Path

from twillgpu.costs.price import price
from twillgpu.costs.record import Problem
from twillgpu.graph.jsonform import read_graph
from twillgpu.machine.record import Machine
from twillgpu.schedule.record import Schedule, SearchOptions, SearchResult
from twillgpu.schedule.search import search
from twillgpu.verify import Verified, check

GRAPHS = Path(__file__).parent.parent / "graph" / "data"

EXACT = 10**6
"""A resolution of so many slots per iteration: every slot is a cycle."""


def handed(name: str) -> Problem:
    """Return a handed graph, priced for the machine that it carries."""
    file = GRAPHS / f"{name}.json"
    graph = read_graph(file.read_text(encoding="utf-8"), file.name)
    assert isinstance(graph.machine, Machine)
    return price(graph, graph.machine)


def searched(problem: Problem, options: SearchOptions | None = None) -> SearchResult:
    """Search, and check everything that every result must keep."""
    options = options or SearchOptions(resolution=EXACT)
    result = search(problem, options)
    assert result.options == options
    assert result.lower_bound_cycles >= result.bounds.binding.cycles
    if result.schedule is not None:
        verdict = check(problem, result.schedule, max_stages=result.max_stages)
        assert isinstance(verdict, Verified), verdict
        assert result.lower_bound_cycles <= result.schedule.ii_cycles
        assert (result.status == "optimal") == (result.lower_bound_cycles == result.schedule.ii_cycles)
    assert (result.schedule is None) == (result.status in ("infeasible", "limit"))
    _refuted_ranges_are_in_a_row(result)
    return result


def _refuted_ranges_are_in_a_row(result: SearchResult) -> None:
    """Check that what is refuted reaches from 1 to the bound without a gap."""
    following = 1
    for refuted in result.refuted:
        assert refuted.first_cycles == following
        assert refuted.last_cycles >= refuted.first_cycles
        following = refuted.last_cycles + 1
    assert following == result.lower_bound_cycles


def optimal(problem: Problem, options: SearchOptions | None = None) -> Schedule:
    """Return the schedule of a search that must prove its interval."""
    result = searched(problem, options)
    assert result.status == "optimal", result.bound_reason
    assert result.schedule is not None
    return result.schedule


def minimum(problem: Problem, options: SearchOptions | None = None) -> int:
    """Return the proved smallest interval."""
    return optimal(problem, options).ii_cycles


def groups(schedule: Schedule) -> dict[str, int]:
    return {op.name: op.group for op in schedule.ops}


def starts(schedule: Schedule) -> dict[str, int]:
    return {op.name: op.start_cycle for op in schedule.ops}
