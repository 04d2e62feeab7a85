"""The secondary objectives after the interval, as weighted literals, in lexicographic order."""

from __future__ import annotations

from collections.abc import Callable

from twillgpu.schedule.core import Core
from twillgpu.schedule.literals import Term

Terms = list[Term]


def mixed(core: Core) -> Terms:
    """One for each fixed-latency op in the variable-latency ops' group, and for each op in a wider group.

    A wait of a load group must not hold up arithmetic, and an elected thread makes its warps diverge.
    """
    terms: Terms = []
    if core.designated:
        terms += [(1, core.groups[op.name][0]) for op in core.problem.ops if not op.variable_latency]
    for op in core.problem.ops:
        wider = [other.name for other in core.problem.ops if other.warps > op.warps]
        same = [core.same(op.name, other) for other in wider]
        terms.append((1, core.any_of(f"{op.name} in a wider group", same)))
    return terms


def handoff(core: Core) -> Terms:
    """Hand-off cost of every value (and order) that a group receives from another, once per receiving group."""
    costs = {
        op.name: max((edge.handoff_cycles for edge in core.outgoing[op.name]), default=0) for op in core.problem.ops
    }
    return [
        (cost, core.received(name, group))
        for name, cost in costs.items()
        if cost
        for group in range(core.group_count)
    ]


def barriers(core: Core) -> Terms:
    """Number of (op, receiving group) pairs: barriers that an iteration waits on."""
    senders = [op.name for op in core.problem.ops if any(edge.head != op.name for edge in core.outgoing[op.name])]
    return [(1, core.received(name, group)) for name in senders for group in range(core.group_count)]


def warps(core: Core) -> Terms:
    """Warps of all groups."""
    return core.width_terms()


def groups(core: Core) -> Terms:
    """Number of groups."""
    narrowest = core.problem.groups.warps[0]
    return [(1, core.at_least_as_wide(group, narrowest)) for group in range(core.group_count)]


def stages(core: Core) -> Terms:
    """Stages beyond the first: ceil(L / I) - 1."""
    terms: Terms = []
    for stage in range(1, core.question.stages):
        longer = core.clauses.fresh(f"more than {stage} stages")
        for op in core.problem.ops:
            start = core.starts[op.name]
            for base in range(core.interval):
                fits = start.lt(base + stage * core.interval - max(1, op.latency_cycles) + 1)
                core.clauses.add(core.base.ge(base + 1), fits, longer)
        terms.append((1, longer))
    return terms


def lifetimes(core: Core) -> Terms:
    """Registers times slots from every op to its consumers, up to a constant: sum of weight x (M(v) - M(u))."""
    weights = dict.fromkeys(core.ops, 0)
    for edge in core.problem.edges:
        value = core.ops[edge.tail].value
        if edge.kind == "data" and edge.tail != edge.head and value is not None:
            weight = 1 + value.registers_per_thread // 8
            weights[edge.head] += weight
            weights[edge.tail] -= weight
    return [
        (weight, core.starts[name].ge(t))
        for name, weight in weights.items()
        if weight
        for t in range(core.starts[name].first + 1, core.starts[name].last + 1)
    ]


OBJECTIVES: dict[str, Callable[[Core], Terms]] = {
    "mixed": mixed,
    "handoff": handoff,
    "barriers": barriers,
    "warps": warps,
    "groups": groups,
    "stages": stages,
    "lifetimes": lifetimes,
}
"""Objectives that the clausal model decides; the polish decides ``registers`` and ``length``."""


def add_objective(core: Core, order: tuple[str, ...]) -> None:
    """Minimise the objectives of ``order`` lexicographically (as one weighted sum)."""
    core.clauses.rule = "objective"
    total: Terms = []
    scale = 1
    for name in reversed([name for name in order if name in OBJECTIVES]):
        terms = [(weight, literal) for weight, literal in OBJECTIVES[name](core) if weight]
        total += [(scale * weight, literal) for weight, literal in terms]
        scale *= sum(abs(weight) for weight, _ in terms) + 1
    if total:
        core.clauses.minimize(total)
