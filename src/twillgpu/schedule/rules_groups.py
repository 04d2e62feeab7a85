"""Rules about warp groups: who is where, who may wait when, what crossing costs."""

from __future__ import annotations

from twillgpu.costs.record import PricedEdge, PricedOp
from twillgpu.schedule.core import Core
from twillgpu.schedule.literals import Literal, negate
from twillgpu.schedule.rules_pauses import pauses


def warp_uniqueness(core: Core) -> None:
    """Each op is in one group; equal groups are numbered by their first op (restricted growth)."""
    first = 1 if core.designated else 0
    names = [op.name for op in core.problem.ops if not (first and op.variable_latency)]
    for index, name in enumerate(names):
        for group in range(first + 1, core.group_count):
            earlier = [core.groups[other][group - 1] for other in names[:index]]
            core.clauses.add(negate(core.groups[name][group]), *earlier)
    _block_width(core)


def _block_width(core: Core) -> None:
    """Widths of all groups sum to at most the block's warps; a group is as wide as its widest op needs."""
    core.clauses.at_most(core.width_terms(), core.problem.groups.max_warps)
    if core.question.pure:
        for op in core.problem.ops:
            for other in core.problem.ops:
                if op.warps < other.warps:
                    core.same(op.name, other.name)


def variable_latency(core: Core) -> None:
    """Variable-latency ops are in group 0; with ``iff`` no other op is."""
    if not core.designated:
        return
    for op in core.problem.ops:
        if op.variable_latency:
            core.clauses.add(core.groups[op.name][0])
        elif core.problem.rules.variable_latency == "iff":
            core.clauses.add(negate(core.groups[op.name][0]))


def legality(core: Core) -> None:
    """Named pairs share a group, or do not; groups pause."""
    for pair in core.problem.legality:
        if pair.relation != "pause":
            same = core.same(pair.first, pair.second)
            core.clauses.add(same if pair.relation == "together" else negate(same))
    pauses(core)


def cross_warp_spill(core: Core) -> None:
    """A(u) = A(v), or M(v) + delta I >= M(u) + d + handoff(u, v)."""
    if core.group_count == 1:
        return
    for edge in core.problem.edges:
        if edge.tail != edge.head:
            _crossing(core, edge)


def _crossing(core: Core, edge: PricedEdge) -> None:
    value = core.ops[edge.tail].value
    same = core.same(edge.tail, edge.head)
    if not core.problem.rules.cross_group and edge.kind == "data" and value and value.space == "registers":
        core.clauses.add(same)
        return
    if edge.handoff_cycles == 0:
        return
    gap = edge.latency_cycles + edge.handoff_cycles - edge.distance * core.interval
    tail, head = core.starts[edge.tail], core.starts[edge.head]
    for time in range(tail.first, tail.last + 1):
        core.clauses.add(same, tail.lt(time), head.ge(time + gap))


def concurrency(core: Core) -> None:
    """If v waits, no other op o of its group is issuing when it starts: (M(v) - M(o)) mod I not in [0, window(o))."""
    for waiter in core.problem.ops:
        waits = _waits(core, waiter)
        if waits is False:
            continue
        for other in core.problem.ops:
            if other.name != waiter.name:
                _apart(core, waiter, other, waits)


def window(core: Core, op: PricedOp) -> int:
    """Return how long an op keeps a wait of its group from starting, in slots."""
    if core.problem.rules.concurrency == "issue":
        return op.issue_cycles
    return max((use.offset + use.cycles for use in op.uses), default=op.issue_cycles)


def _waits(core: Core, op: PricedOp) -> Literal:
    """Return a literal that holds if the op has a blocking edge or an edge from another group coming in."""
    incoming = core.incoming[op.name]
    if any(edge.blocking for edge in incoming):
        return True
    if core.group_count == 1 or not any(edge.tail != op.name for edge in incoming):
        return False
    waits = core.clauses.fresh(f"{op.name} waits")
    for tail in sorted({edge.tail for edge in incoming if edge.tail != op.name}):
        core.clauses.add(core.same(tail, op.name), waits)
    return waits


def _apart(core: Core, waiter: PricedOp, other: PricedOp, waits: Literal) -> None:
    # Rounded down, two starts in one slot may still be in the right order in cycles: slot 0 is no conflict.
    first = 1 if core.question.rounding == "down" else 0
    length = min(window(core, other), core.interval + first) - first
    if length <= 0:
        return
    away = [negate(waits), negate(core.same(waiter.name, other.name))]
    if length >= core.interval:
        core.clauses.add(*away)
        return
    busy = core.during(other.name, first, length)
    if any(literal is True for literal in away):
        return
    for slot in range(core.interval):
        core.clauses.add(*away, negate(core.slot(waiter.name, slot)), negate(busy[slot]))
