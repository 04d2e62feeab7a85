"""Schedules that follow from the order of the program: sequential, loads ahead, producer and consumer warps."""

from __future__ import annotations

from collections.abc import Mapping

from twillgpu.baselines.orders import Body, exposed, issue_order, ring
from twillgpu.baselines.partition import Groups, grouped, merged
from twillgpu.baselines.record import Plan, Unsuited, Way
from twillgpu.baselines.roles import Roles, part_of, program_order, roles
from twillgpu.costs.record import PricedEdge, Problem

SEQUENTIAL = Way(
    name="sequential",
    says="one iteration after the other, each warp group in program order, loads waited for where they stand",
    source="what a compiler without pipelining emits (num_stages=1)",
)


def buffers_way(copies: int) -> Way:
    """Return the way that pipelines loads alone, with ``copies`` buffers."""
    return Way(
        name=f"load pipelining, {copies} buffers",
        says=f"loads run {copies - 1} iteration{'s' if copies > 2 else ''} ahead, the rest in program order",
        source="Huang et al., ALCOP, MLSys 2023; Triton's num_stages",
    )


def consumers_way(depth: int) -> Way:
    """Return the way with a load group and consumer groups whose first products are ``depth`` deep."""
    ahead = (
        "each iteration in program order" if depth == 1 else "products that wait for loads alone one iteration ahead"
    )
    return Way(
        name=f"producer/consumer, depth {depth}",
        says=f"a load group, and consumer groups by sub-tile: {ahead}",
        source="Chen et al., Tawa, arXiv 2510.14719, 2025; Wang et al., TileLang, arXiv 2504.17577, 2025",
    )


def sequential(problem: Problem) -> Plan | Unsuited:
    """Return the plan of ``SEQUENTIAL``: all of an iteration within one interval."""
    found = roles(problem)
    groups = grouped(problem, merged(found, problem, loads=None, products="mma"))
    orders = [edge for stream in _streams(problem, found) for edge in issue_order(problem, [(n, 0) for n in stream])]
    return _plan(groups, orders + exposed(problem, found.loads), max_stages=1)


def load_pipelining(problem: Problem, copies: int) -> Plan | Unsuited:
    """Return the plan with loads ``copies - 1`` iterations ahead, at the top of the body, in ``copies`` buffers."""
    found = roles(problem)
    if not found.loads:
        return Unsuited(reason="the loop has no load of variable latency (TMA, cp.async) that could run ahead")
    groups = grouped(problem, merged(found, problem, loads=None, products="mma"))
    orders = exposed(problem, found.loads) + ring(problem, found.loads, copies)
    for stream in _streams(problem, found):
        loads = [(name, copies - 1) for name in stream if name in found.loads]
        orders += issue_order(problem, loads + [(name, 0) for name in stream if name not in found.loads])
    return _plan(groups, orders)


def producer_consumer(problem: Problem, depth: int) -> Plan | Unsuited:
    """Return the plan with loads in their own group, as far ahead as memory allows, and consumers in order.

    In a group that issues them, products whose operands come from loads alone are ``depth - 1`` iterations ahead.
    """
    found = roles(problem)
    if not found.loads:
        return Unsuited(reason="the loop has no load of variable latency (TMA, cp.async) for a producer")
    leading = _leading(problem, found)
    if depth > 1 and not leading:
        return Unsuited(reason="no product of the loop waits for loads alone")
    groups = grouped(problem, merged(found, problem, loads="load", products="mma"))
    orders: list[PricedEdge] = []
    for group in sorted(set(groups.values())):
        names = [name for name in program_order(problem) if groups[name] == group and name not in found.loads]
        orders += issue_order(problem, _ahead(names, leading, depth - 1))
    return _plan(groups, orders)


def _ahead(names: list[str], leading: frozenset[str], iterations: int) -> Body:
    first = [(name, iterations) for name in names if name in leading]
    return first + [(name, 0) for name in names if name not in leading]


def _leading(problem: Problem, found: Roles) -> frozenset[str]:
    """Return the tensor ops that need nothing of their iteration but loads."""
    tensor = {op.name for op in problem.ops if op.kind == "mma"}
    fed = {
        edge.head
        for edge in problem.edges
        if edge.kind == "data" and edge.distance == 0 and edge.tail not in found.loads
    }
    return frozenset(tensor - fed)


def _streams(problem: Problem, found: Roles) -> list[list[str]]:
    """Return one stream of instructions per part, in program order, with the loads in the first one.

    Products that one thread issues belong to the stream of the part that uses them: without warp specialization
    its warps come to them in program order.
    """
    home: Mapping[str, int] = {
        **{name: part_of(problem, found.parts, name) for name in found.products},
        **dict.fromkeys(found.loads, 0),
        **{name: index for index, part in enumerate(found.parts) for name in part},
    }
    return [
        [name for name in program_order(problem) if home[name] == index] for index in range(max(1, len(found.parts)))
    ]


def _plan(groups: Groups, orders: list[PricedEdge], max_stages: int | None = None) -> Plan:
    return Plan(groups=tuple(groups.items()), orders=tuple(orders), max_stages=max_stages)
