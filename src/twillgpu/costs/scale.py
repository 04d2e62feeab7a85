"""Time resolution: a problem in slots of several cycles each, rounded so that an answer carries over.

Rounded ``up``: a schedule of the scaled problem, multiplied by the slot, is a schedule in cycles. Rounded
``down``: if the scaled problem has no schedule at n slots, then the problem has none at any interval of more
than ``(n - 1) * slot_cycles`` and at most ``n * slot_cycles`` cycles. For the second, map a start
``k I + r`` (0 <= r < I) to ``k n + floor(r / slot)``: this map keeps every inequality ``y >= x + d`` in the
form ``y' >= x' + floor(d / slot)``, also across the wrap, because ``n >= I / slot``.
"""

from __future__ import annotations

from dataclasses import replace

from twillgpu.costs.record import PricedEdge, PricedOp, Problem, Scale
from twillgpu.graph.record import Use


def scaled(problem: Problem, scale: Scale) -> Problem:
    """Return ``problem`` with every time in slots of ``scale.slot_cycles`` cycles instead of cycles."""
    if scale.slot_cycles == 1:
        return problem
    return replace(
        problem,
        ops=tuple(_op(op, scale) for op in problem.ops),
        edges=tuple(_edge(edge, scale) for edge in problem.edges),
    )


def slots(cycles: int, scale: Scale) -> int:
    """Return a duration of ``cycles`` in slots, rounded as the scale says."""
    return -(-cycles // scale.slot_cycles) if scale.rounding == "up" else cycles // scale.slot_cycles


def _op(op: PricedOp, scale: Scale) -> PricedOp:
    return replace(
        op,
        uses=tuple(use for use in (_use(use, scale) for use in op.uses) if use.cycles > 0),
        issue_cycles=slots(op.issue_cycles, scale),
        latency_cycles=slots(op.latency_cycles, scale),
        real_latency_cycles=slots(op.real_latency_cycles, scale),
        handoff_cycles=_extra(op.latency_cycles, op.handoff_cycles, scale),
    )


def _use(use: Use, scale: Scale) -> Use:
    """Round a run outwards (up: it covers more) or inwards (down: only what it covers wherever it starts)."""
    end = use.offset + use.cycles
    if scale.rounding == "up":
        offset = use.offset // scale.slot_cycles
        return replace(use, offset=offset, cycles=slots(end, scale) - offset)
    offset = -(-use.offset // scale.slot_cycles)
    return replace(use, offset=offset, cycles=max(0, slots(end, scale) - offset))


def _edge(edge: PricedEdge, scale: Scale) -> PricedEdge:
    return replace(
        edge,
        latency_cycles=slots(edge.latency_cycles, scale),
        handoff_cycles=_extra(edge.latency_cycles, edge.handoff_cycles, scale),
        read_cycles=slots(edge.read_cycles, scale),
    )


def _extra(latency: int, handoff: int, scale: Scale) -> int:
    """Return the slots that a hand-off adds to a latency, so that both together are rounded once."""
    return slots(latency + handoff, scale) - slots(latency, scale)
