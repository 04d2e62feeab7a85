"""Rules about warps, from the paper's Figure 6: who is where, what crossing costs, who may wait when."""

from __future__ import annotations

from twillgpu.costs.record import PricedEdge, PricedOp
from twillgpu.schedule.paper.program import Program
from twillgpu.schedule.paper.rules_pauses import pauses
from twillgpu.schedule.paper.rules_time import after
from twillgpu.schedule.paper.smt import FALSE, TRUE, Terms, disjunction, negation


def warp_uniqueness(program: Program) -> None:
    """sum_w opw[v, w] = 1; and, for warp groups, their widths fit in the block, and equal groups are numbered."""
    if program.groups > 1:
        for name in program.ops:
            program.script.clause(*(program.inside(name, group) for group in range(program.groups)))
            program.script.at_most([(1, program.inside(name, group)) for group in range(program.groups)], 1)
    if program.question.warps == "groups":
        program.script.at_most(width_terms(program), program.problem.groups.max_warps)
    if not program.literal:
        _numbered(program)


def _numbered(program: Program) -> None:
    """Equal groups are numbered by their first op."""
    first = 1 if program.designated else 0
    names = [op.name for op in program.problem.ops if not (first and op.variable_latency)]
    for index, name in enumerate(names):
        for group in range(first + 1, program.groups):
            earlier = (program.inside(other, group - 1) for other in names[:index])
            program.script.clause(negation(program.inside(name, group)), *earlier)


def wide(program: Program, group: int, width: int) -> str:
    """Return "the group is ``width`` warps wide or wider" (widths ascending)."""
    narrower = max((other for other in program.problem.groups.warps if other < width), default=0)
    return disjunction(program.inside(op.name, group) for op in program.problem.ops if op.warps > narrower)


def width_terms(program: Program) -> Terms:
    """Return weighted formulas that sum to the warps of all groups."""
    terms: Terms = []
    for group in range(program.groups):
        previous = 0
        for width in program.problem.groups.warps:
            terms.append((width - previous, wide(program, group, width)))
            previous = width
    return terms


def variable_latency(program: Program) -> None:
    """State that v has a variable latency iff opw[v, W_vl]; only the first half where the option asks for no more."""
    if not program.designated:
        return
    for op in program.problem.ops:
        if op.variable_latency:
            program.script.require(program.inside(op.name, 0))
        elif program.problem.rules.variable_latency == "iff":
            program.script.require(negation(program.inside(op.name, 0)))


def legality(program: Program) -> None:
    """Named pairs share a group, or do not; groups pause. The paper has no such rule."""
    if program.literal:
        return
    for pair in program.problem.legality:
        if pair.relation != "pause":
            same = program.same(pair.first, pair.second)
            program.script.require(same if pair.relation == "together" else negation(same))
    pauses(program)


def cross_warp_spill(program: Program) -> None:
    """op[u, i, t] on w and v on w' imply not op[v, i + delta, t + d + s] for s < spillcost(u)."""
    if program.groups == 1:
        return
    for edge in program.problem.edges:
        if edge.tail == edge.head or not _spills(program, edge):
            continue
        same = program.same(edge.tail, edge.head)
        if not program.problem.rules.cross_group and not program.literal and _in_registers(program, edge):
            program.script.require(same)
        elif edge.handoff_cycles:
            latency = edge.latency_cycles + edge.handoff_cycles
            after(program, edge.tail, edge.head, latency, edge.distance, unless=same)


def _in_registers(program: Program, edge: PricedEdge) -> bool:
    value = program.ops[edge.tail].value
    return edge.kind == "data" and value is not None and value.space == "registers"


def _spills(program: Program, edge: PricedEdge) -> bool:
    """Return whether an edge that crosses costs anything: in the paper only a value in registers is spilled."""
    return not program.literal or _in_registers(program, edge)


def concurrency(program: Program) -> None:
    """op[v, i, t] on w with a blocking edge coming in: no other op o runs on w: not op[o, i', t'] for
    t - cycles(o) < t' <= t.
    """
    for waiter in program.problem.ops:
        waits = _waits(program, waiter)
        if waits == FALSE:
            continue
        for other in program.problem.ops:
            if other.name != waiter.name:
                _apart(program, waiter, other, waits)


def _waits(program: Program, op: PricedOp) -> str:
    """Return "the op has a blocking edge, or one from another group, coming in"."""
    incoming = program.incoming[op.name]
    if any(edge.blocking for edge in incoming):
        return TRUE
    crossing = [edge for edge in incoming if edge.tail != op.name and _spills(program, edge)]
    if program.groups == 1 or not crossing:
        return FALSE
    waits = program.script.boolean(f"waits {op.name}")
    for tail in sorted({edge.tail for edge in crossing}):
        program.script.clause(program.same(tail, op.name), waits)
    return waits


def window(program: Program, op: PricedOp) -> int:
    """Return how long an op keeps a wait of its group from starting."""
    if program.problem.rules.concurrency == "issue":
        return op.issue_cycles
    return max((use.offset + use.cycles for use in op.uses), default=op.issue_cycles)


def _apart(program: Program, waiter: PricedOp, other: PricedOp, waits: str) -> None:
    """Keep the starts of ``waiter`` out of the windows of ``other``, in every slot of the period.

    Copies are moved by multiples of the interval, and every op ends by L: so one period says it for all of Q.
    """
    length = window(program, other)
    if length <= 0:
        return
    apart = (negation(waits), negation(program.same(waiter.name, other.name)))
    if length >= program.interval:
        program.script.clause(*apart)
        return
    for slot in range(program.interval):
        busy = program.in_slot(other.name, slot, length)
        program.script.clause(*apart, negation(program.in_slot(waiter.name, slot, 1)), negation(busy))
