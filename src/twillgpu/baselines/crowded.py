"""What a plan breaks at every interval: by its orders, values are alive, or products in flight, for whole periods."""

from __future__ import annotations

from collections.abc import Mapping

from twillgpu.costs.record import Problem
from twillgpu.schedule.lifetimes import Lifetime, buffer_lifetimes
from twillgpu.schedule.rules_pauses import flights


def crowded(problem: Problem) -> str:
    """Return why no interval suffices for the memories, empty where that is not known.

    ``M(v) >= M(u) + w + k I`` along a path of dependences with w >= 0 keeps u's value alive for k periods, and so k
    copies of it all the time. No groups are needed: staging is left out.
    """
    lifetimes = buffer_lifetimes(problem, dict.fromkeys((op.name for op in problem.ops), 0))
    for memory in problem.memories:
        fixed = dict(problem.fixed_bytes).get(memory.name, 0)
        room = memory.capacity_bytes - fixed
        mine = [life for life in lifetimes if life.holder == memory.name]
        always = {life.name: (_copies(problem, life), life.weight) for life in mine}
        taken = sum(copies * size for copies, size in always.values())
        if taken > room:
            named = ", ".join(f"{copies} of {name}" for name, (copies, _) in always.items() if copies)
            return f"{memory.name} holds at all times, in this order, {named}: {taken} bytes of {room} left"
    return ""


def restless(problem: Problem) -> str:
    """Return which product, by the orders, is in flight all the time where its group needs a pause; else nothing.

    Its flight ends with the earliest of its readers; where each of them comes a period later, or more, there is no
    moment without it.
    """
    for rule, products in flights(problem).items():
        for name, pairs in products.items():
            reached = _periods(problem, name)
            if all(reached.get(pair.second, -pair.distance) + pair.distance >= 1 for pair in pairs):
                readers = " and ".join(dict.fromkeys(pair.second for pair in pairs))
                return (
                    f"{rule}: {name} is waited for (by {readers}) an iteration or more after its issue, in this order"
                )
    return ""


def _copies(problem: Problem, life: Lifetime) -> int:
    """Return how many copies of a value are live all the time."""
    if life.pinned:
        return 1
    found = 0
    for first in life.begins:
        reached = _periods(problem, first.op)
        for last in life.ends:
            if last.op in reached:
                found = max(found, reached[last.op] + last.turns - first.turns)
    return found


def _periods(problem: Problem, source: str) -> Mapping[str, int]:
    """Return, for every op, the most whole periods by which it comes after ``source``, over edges of latency >= 0.

    Weights are compared at an interval longer than any path, so that periods count first.
    """
    edges = [edge for edge in problem.edges if edge.latency_cycles >= 0]
    horizon = 1 + sum(edge.latency_cycles for edge in edges)
    late = {source: 0}
    for _ in problem.ops:
        for edge in edges:
            if edge.tail in late:
                ready = late[edge.tail] + edge.latency_cycles - edge.distance * horizon
                late[edge.head] = max(late.get(edge.head, ready), ready)
    return {name: cycles // horizon for name, cycles in late.items()}
