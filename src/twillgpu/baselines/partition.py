"""From labels to groups: ops of one label share a group as far as the rules on groups allow."""

from __future__ import annotations

from collections.abc import Mapping

from twillgpu.baselines.roles import Roles
from twillgpu.costs.record import Problem
from twillgpu.schedule.partition import canonical, designated

Groups = dict[str, int]


def grouped(problem: Problem, labels: Mapping[str, str]) -> Groups:
    """Return a group for every op: one per label, in order of appearance.

    Ops that legality keeps together follow the first of them. Where two of them must be apart, or an op may not be
    with the loads, it goes to the next group that allows it, or to a new one. Loads have the first group where the
    rules set it apart; so the result may still break a rule where there are too few groups.
    """
    numbers: dict[str, int] = {}
    if designated(problem):
        numbers = {labels[op.name]: 0 for op in problem.ops if op.variable_latency}
    groups: Groups = {}
    for cluster in _clusters(problem):
        label = labels[cluster[0]]
        wanted = numbers.setdefault(label, max((*numbers.values(), *groups.values()), default=-1) + 1)
        groups |= dict.fromkeys(cluster, _allowed(problem, groups, cluster, wanted))
    return canonical(problem, _without_gaps(problem, groups))


def merged(roles: Roles, problem: Problem, *, loads: str | None, products: str) -> dict[str, str]:
    """Return labels with one group per part, as far as there are groups; loads and products as named.

    ``loads`` is ``None`` where the first part issues them.
    """
    taken = (1 if loads is not None and roles.loads else 0) + (1 if roles.products else 0)
    room = max(1, problem.groups.max - taken)
    labels = {name: f"part {index % room}" for index, part in enumerate(roles.parts) for name in part}
    labels |= dict.fromkeys(roles.products, products)
    return labels | dict.fromkeys(roles.loads, loads or ("part 0" if roles.parts else products))


def _clusters(problem: Problem) -> list[tuple[str, ...]]:
    """Return the ops in sets that must share a group, in program order of their first ops."""
    cluster = {op.name: {op.name} for op in problem.ops}
    for pair in problem.legality:
        if pair.relation == "together":
            union = cluster[pair.first] | cluster[pair.second]
            cluster |= dict.fromkeys(union, union)
    if designated(problem):
        union = {name for op in problem.ops if op.variable_latency for name in cluster[op.name]}
        cluster |= dict.fromkeys(union, union)
    return list(
        dict.fromkeys(tuple(op.name for op in problem.ops if op.name in cluster[n.name]) for n in problem.ops)
    )


def _allowed(problem: Problem, groups: Groups, cluster: tuple[str, ...], wanted: int) -> int:
    last = max([-1, *groups.values()]) + 1
    candidates: list[int] = [wanted, *range(last + 1)]
    for group in candidates:
        if not _clash(problem, groups, cluster, group):
            return group
    return last + 1


def _clash(problem: Problem, groups: Groups, cluster: tuple[str, ...], group: int) -> bool:
    """Return whether an op of ``cluster`` may not be in ``group``, by ``legality`` or ``variable_latency``."""
    for pair in problem.legality:
        first, second = pair.first in cluster, pair.second in cluster
        other = groups.get(pair.second if first else pair.first)
        if pair.relation == "apart" and first != second and other == group:
            return True
    if not designated(problem):
        return False
    variable = any(op.variable_latency for op in problem.ops if op.name in cluster)
    alone = problem.rules.variable_latency == "iff"
    return group != 0 if variable else group == 0 and alone


def _without_gaps(problem: Problem, groups: Groups) -> Groups:
    first = [0] if designated(problem) else []
    numbers = {group: index for index, group in enumerate(dict.fromkeys([*first, *sorted(set(groups.values()))]))}
    return {op.name: numbers[groups[op.name]] for op in problem.ops}
