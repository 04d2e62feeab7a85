"""Better partitions near a known one: ops are moved between groups as long as a schedule follows.

Where the solver cannot prove the secondary objective in time, its solution may hand values over for no good
reason. With the partition given, a schedule is found or refuted quickly; so this tries the moves that lower the
objective, the best first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from twillgpu.costs.record import Problem
from twillgpu.schedule.partition import canonical, cost, designated, needed_warps

Partition = dict[str, int]


def descend(
    problem: Problem,
    groups: Partition,
    order: tuple[str, ...],
    feasible: Callable[[Partition], bool],
    spent: Callable[[], bool],
) -> None:
    """Move to better partitions while ``feasible`` accepts one and the effort is not ``spent``.

    ``feasible`` is asked for each candidate and remembers the schedule that it finds.
    """
    refused: set[tuple[tuple[str, int], ...]] = set()
    while True:
        present = cost(problem, groups, order)
        better = sorted(
            ((cost(problem, moved, order), tuple(moved.items())) for moved in _neighbours(problem, groups)),
        )
        for price, items in better:
            if price >= present or spent():
                return
            if items not in refused and feasible(dict(items)):
                groups = dict(items)
                break
            refused.add(items)
        else:
            return


def _neighbours(problem: Problem, groups: Partition) -> Iterator[Partition]:
    """Yield the partitions one move away: a cluster, or two that exchange a value, to another or a new group."""
    clusters = _clusters(problem)
    joined = [clusters[edge.tail] | clusters[edge.head] for edge in problem.edges if edge.kind == "data"]
    last = min(problem.groups.max, len(set(groups.values())) + 1)
    for moving in sorted({*clusters.values(), *joined}, key=sorted):
        for group in range(last):
            moved = {name: group if name in moving else old for name, old in groups.items()}
            if moved != groups and _legal(problem, moved):
                yield canonical(problem, moved)


def _clusters(problem: Problem) -> dict[str, frozenset[str]]:
    """Return, for each op, the ops that legality keeps with it."""
    cluster = {op.name: frozenset({op.name}) for op in problem.ops}
    for pair in problem.legality:
        if pair.relation == "together":
            union = cluster[pair.first] | cluster[pair.second]
            cluster |= dict.fromkeys(union, union)
    return cluster


def _legal(problem: Problem, groups: Partition) -> bool:
    needs = needed_warps(problem, groups)
    widest = problem.groups.warps[-1]
    if any(need > widest for need in needs):
        return False
    if any(pair.relation == "apart" and groups[pair.first] == groups[pair.second] for pair in problem.legality):
        return False
    loads = [op for op in problem.ops if op.variable_latency]
    if designated(problem) and any(groups[op.name] != 0 for op in loads):
        return False
    iff = problem.rules.variable_latency == "iff" and designated(problem)
    return not (iff and any(groups[op.name] == 0 for op in problem.ops if not op.variable_latency))
