"""Orders of issue as dependences: what a hand-made schedule fixes, in the terms of the problem itself.

A body of the pipelined loop holds, for each op, the instance of some later iteration: *ahead* iterations later than
that of the ops with 0. So op v of iteration 0 is issued in body ``-ahead(v)``, at ``M(v) + ahead(v) I`` of body 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, pairwise, product

from twillgpu.baselines.record import Plan
from twillgpu.costs.record import LegalPair, PricedEdge, PricedOp, Problem
from twillgpu.schedule.polish import wait_window

Body = Sequence[tuple[str, int]]
"""Ops in the order in which one body of the loop issues them, each with the iterations that it is ahead."""

RULE = "baseline"
"""Name of the legality pairs that fix a partition."""


def restricted(problem: Problem, plan: Plan) -> Problem:
    """Return ``problem`` with what the plan decides as further edges and legality pairs: its schedules are those
    schedules of ``problem`` that follow the plan.
    """
    ops = {op.name: op for op in problem.ops}
    capacity = {unit.name: unit.capacity for unit in problem.units}
    orders = tuple(_serving(edge, ops, capacity) for edge in plan.orders)
    return replace(problem, edges=problem.edges + orders, legality=problem.legality + tuple(_partition(plan.groups)))


def _serving(edge: PricedEdge, ops: Mapping[str, PricedOp], capacity: Mapping[str, int]) -> PricedEdge:
    """Return an order between two ops with the time for which the first holds a unit that cannot serve both.

    The order has the second come later, so that it has the unit later, too: all schedules stay, and circuits of
    dependences then tell what the order of two products on the tensor core costs.
    """
    latency = edge.latency_cycles
    for use, later in product(ops[edge.tail].uses, ops[edge.head].uses):
        crowded = use.unit == later.unit and use.amount + later.amount > capacity[use.unit]
        behind = edge.latency_cycles + later.offset + later.cycles > use.offset
        if crowded and behind and edge.tail != edge.head:
            latency = max(latency, use.offset + use.cycles - later.offset)
    return replace(edge, latency_cycles=latency)


def issue_order(problem: Problem, body: Body) -> list[PricedEdge]:
    """Return the edges that have the ops of ``body`` issued one after the other, body after body.

    ``M(next) + ahead(next) I >= M(op) + ahead(op) I + issue(op)``; after the last op comes the first one of the next
    body.
    """
    ops = {op.name: op for op in problem.ops}
    if len(body) < 2:
        return []
    steps = [(tail, head, 0) for tail, head in pairwise(body)] + [(body[-1], body[0], 1)]
    return [
        _order(tail, head, _window(problem, ops[tail]), ahead_head - ahead_tail + turn)
        for (tail, ahead_tail), (head, ahead_head), turn in steps
    ]


def _window(problem: Problem, op: PricedOp) -> int:
    """Return how long an op keeps the next one of its group from being issued."""
    return op.issue_cycles if problem.rules.concurrency == "issue" else max(op.issue_cycles, wait_window(problem, op))


def exposed(problem: Problem, loads: Iterable[str]) -> list[PricedEdge]:
    """Return the edges that have the readers of ``loads`` wait for the real latency, which a model in which loads
    run ahead freely leaves out.
    """
    ops = {op.name: op for op in problem.ops}
    wanted = set(loads)
    return [
        _order(edge.tail, edge.head, ops[edge.tail].real_latency_cycles, edge.distance)
        for edge in problem.edges
        if edge.tail in wanted and edge.kind == "data" and edge.tail != edge.head
    ]


def ring(problem: Problem, loads: Iterable[str], copies: int) -> list[PricedEdge]:
    """Return the edges that have the load of ``copies`` iterations later wait until the buffer has been read."""
    wanted = set(loads)
    return [
        _order(edge.head, edge.tail, edge.read_cycles, copies - edge.distance)
        for edge in problem.edges
        if edge.tail in wanted and edge.kind == "data" and edge.tail != edge.head
    ]


def contradictory(problem: Problem) -> bool:
    """Return whether some circuit forbids every interval: positive latency, and a distance of 0 or less."""
    horizon = 1 + sum(max(0, edge.latency_cycles) for edge in problem.edges)
    late = dict.fromkeys((op.name for op in problem.ops), 0)
    for _ in range(len(late) + 1):
        changed = False
        for edge in problem.edges:
            ready = late[edge.tail] + edge.latency_cycles - edge.distance * horizon
            if ready > late[edge.head]:
                late[edge.head], changed = ready, True
        if not changed:
            return False
    return True


def _order(tail: str, head: str, latency: int, distance: int) -> PricedEdge:
    return PricedEdge(
        tail=tail,
        head=head,
        latency_cycles=latency,
        distance=distance,
        kind="order",
        blocking=False,
        handoff_cycles=0,
        read_cycles=0,
    )


def _partition(groups: tuple[tuple[str, int], ...]) -> Iterable[LegalPair]:
    """Yield the pairs that fix the partition: every op with the first of its group, first ops apart."""
    firsts: dict[int, str] = {}
    for name, group in groups:
        first = firsts.setdefault(group, name)
        if first != name:
            yield LegalPair(rule=RULE, relation="together", first=first, second=name)
    for one, other in combinations(firsts.values(), 2):
        yield LegalPair(rule=RULE, relation="apart", first=one, second=other)
