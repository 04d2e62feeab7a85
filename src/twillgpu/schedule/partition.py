"""Partitions of ops into groups: what they cost apart from time, and their canonical numbering."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from twillgpu.costs.record import PricedEdge, Problem

Groups = Mapping[str, int]


def designated(problem: Problem) -> bool:
    """Return whether group 0 is set apart for variable-latency ops."""
    apart = problem.groups.max > 1 and problem.rules.variable_latency != "free"
    return apart and any(op.variable_latency for op in problem.ops)


def needed_warps(problem: Problem, groups: Groups) -> list[int]:
    """Return, per group, the warps of its widest op."""
    needs = [0] * (max(groups.values()) + 1)
    for op in problem.ops:
        needs[groups[op.name]] = max(needs[groups[op.name]], op.warps)
    return needs


def widths(problem: Problem, groups: Groups) -> list[int]:
    """Return the width of every group: the smallest of the machine's that its ops fit in, 0 for an empty one."""
    needs = needed_warps(problem, groups)
    return [min(width for width in problem.groups.warps if width >= need) if need else 0 for need in needs]


def crossings(problem: Problem, groups: Groups) -> dict[tuple[str, int], list[PricedEdge]]:
    """Return the edges that leave an op for another group, by op and receiving group."""
    found: dict[tuple[str, int], list[PricedEdge]] = {}
    for edge in problem.edges:
        if groups[edge.tail] != groups[edge.head]:
            found.setdefault((edge.tail, groups[edge.head]), []).append(edge)
    return found


def mixed(problem: Problem, groups: Groups) -> int:
    """Return the number of fixed-latency ops in the variable-latency ops' group, and of ops in a wider group."""
    strangers = 0
    if designated(problem):
        strangers = sum(1 for op in problem.ops if groups[op.name] == 0 and not op.variable_latency)
    needs = needed_warps(problem, groups)
    return strangers + sum(1 for op in problem.ops if needs[groups[op.name]] > op.warps)


def handoff(problem: Problem, groups: Groups) -> int:
    """Return the cycles of hand-off per iteration, once per op and receiving group."""
    costs: dict[str, int] = {}
    for edge in problem.edges:
        costs[edge.tail] = max(costs.get(edge.tail, 0), edge.handoff_cycles)
    return sum(costs[name] for name, _ in crossings(problem, groups))


def barriers(problem: Problem, groups: Groups) -> int:
    """Return the number of (op, receiving group) pairs."""
    return len(crossings(problem, groups))


COSTS: dict[str, Callable[[Problem, Groups], int]] = {
    "mixed": mixed,
    "handoff": handoff,
    "barriers": barriers,
    "warps": lambda problem, groups: sum(widths(problem, groups)),
    "groups": lambda _, groups: len(set(groups.values())),
}
"""Secondary objectives that the partition alone decides."""


def cost(problem: Problem, groups: Groups, order: tuple[str, ...]) -> tuple[int, ...]:
    """Return the objectives of ``order`` that the partition decides, in that order."""
    return tuple(COSTS[name](problem, groups) for name in order if name in COSTS)


def canonical(problem: Problem, groups: Groups) -> dict[str, int]:
    """Return the same partition with groups numbered by their first op, the designated one staying 0."""
    first = 1 if designated(problem) else 0
    numbers: dict[int, int] = {0: 0} if first else {}
    for op in problem.ops:
        if not (first and op.variable_latency):
            numbers.setdefault(groups[op.name], len(numbers))
    return {op.name: numbers[groups[op.name]] for op in problem.ops}
