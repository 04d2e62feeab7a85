"""Rules about time: every op starts once, in time, after what it depends on, on units that are free."""

from __future__ import annotations

from twillgpu.graph.record import Use
from twillgpu.schedule.core import Core
from twillgpu.schedule.literals import Literal


def uniqueness(core: Core) -> None:
    """M(v) is one integer: at most one slot holds v. Implied by the order encoding; the cliques help."""
    for name in core.ops:
        slots = [core.slot(name, slot) for slot in range(core.interval)]
        kept = [literal for literal in slots if not isinstance(literal, bool)]
        if not any(literal is True for literal in slots) and len(kept) > 1:
            core.clauses.exactly_one(kept)


def consistency(core: Core) -> None:
    """Iteration i is iteration 0 moved by i I; so it may be rotated: the anchor begins in slot 0."""
    core.clauses.add(core.slot(core.anchor, 0))


def completion(core: Core) -> None:
    """Base <= M(v), M(v) < base + S I and M(v) + latency(v) <= base + S I."""
    length = core.question.stages * core.interval
    for op in core.problem.ops:
        start = core.starts[op.name]
        for base in range(core.interval):
            core.clauses.add(core.base.lt(base), start.ge(base))
            core.clauses.add(core.base.ge(base + 1), start.lt(base + length - max(1, op.latency_cycles) + 1))


def dependence(core: Core) -> None:
    """M(v) + delta I >= M(u) + d."""
    for edge in core.problem.edges:
        gap = edge.latency_cycles - edge.distance * core.interval
        _after(core, edge.tail, edge.head, gap, [])


def _after(core: Core, tail: str, head: str, gap: int, unless: list[Literal]) -> None:
    """Add M(head) >= M(tail) + gap unless one of the literals holds."""
    if tail == head:
        if gap > 0:
            core.clauses.add(*unless)
        return
    first, second = core.starts[tail], core.starts[head]
    for time in range(first.first, first.last + 1):
        core.clauses.add(*unless, first.lt(time), second.ge(time + gap))


def capacity(core: Core) -> None:
    """Sum over v and cycles c of v with (M(v) + c) mod I = r of the amount held <= cap(f), for all f and r."""
    for unit in core.problem.units:
        runs = [(op.name, use) for op in core.problem.ops for use in op.uses if use.unit == unit.name and use.amount]
        full = sum(use.amount * use.cycles for _, use in runs) == unit.capacity * core.interval
        for slot in range(core.interval) if runs else ():
            holders = _holders(core, runs, slot)
            core.clauses.at_most(holders, unit.capacity)
            if full and unit.capacity == 1:
                core.clauses.add(*(literal for _, literal in holders))


def _holders(core: Core, runs: list[tuple[str, Use]], slot: int) -> list[tuple[int, Literal]]:
    """Return the weighted literals of the runs that hold their unit in ``slot``; whole turns hold it always."""
    terms: list[tuple[int, Literal]] = []
    for name, use in runs:
        turns, rest = divmod(use.cycles, core.interval)
        if turns:
            terms.append((turns * use.amount, True))
        if rest:
            terms.append((use.amount, core.during(name, use.offset, rest)[slot]))
    return terms
