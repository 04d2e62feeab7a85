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
    uses = _covering(op.uses, scale) if scale.rounding == "up" else _contained(op.uses, scale)
    return replace(
        op,
        uses=uses,
        issue_cycles=slots(op.issue_cycles, scale),
        latency_cycles=slots(op.latency_cycles, scale),
        real_latency_cycles=slots(op.real_latency_cycles, scale),
        handoff_cycles=_extra(op.latency_cycles, op.handoff_cycles, scale),
    )


def _covering(uses: tuple[Use, ...], scale: Scale) -> tuple[Use, ...]:
    """Return, for each unit, runs of slots that hold what the op holds at most at any cycle of the slot.

    Runs of one op that share a slot but no cycle do not add up: the op starts at the beginning of a slot, so where
    its runs lie within their slots is known.
    """
    result: list[Use] = []
    for unit in dict.fromkeys(use.unit for use in uses):
        runs = [use for use in uses if use.unit == unit]
        last = max(use.offset + use.cycles for use in runs)
        levels = [_most(runs, slot * scale.slot_cycles, scale.slot_cycles) for slot in range(slots(last, scale))]
        result += _runs(unit, levels)
    return tuple(result)


def _most(runs: list[Use], first: int, length: int) -> int:
    """Return the largest amount held at once during [first, first + length)."""
    changes = {first, *(use.offset for use in runs if first < use.offset < first + length)}
    held = (sum(use.amount for use in runs if use.offset <= at < use.offset + use.cycles) for at in changes)
    return max(held)


def _runs(unit: str, levels: list[int]) -> list[Use]:
    """Return the runs of equal, positive amounts in ``levels`` (one per slot)."""
    runs: list[Use] = []
    for slot, level in enumerate(levels):
        before = runs[-1] if runs else None
        if level and before and before.amount == level and before.offset + before.cycles == slot:
            runs[-1] = replace(before, cycles=before.cycles + 1)
        elif level:
            runs.append(Use(unit=unit, offset=slot, cycles=1, amount=level))
    return runs


def _contained(uses: tuple[Use, ...], scale: Scale) -> tuple[Use, ...]:
    """Return the runs that begin with their op, rounded down; later ones are left out.

    Where a later run begins in slots is not known: every end of a period that lies between adds up to one slot,
    since n slots are longer than I. How long the op holds units at all, the window of the paper's rule on
    concurrency, is kept as a use of no instance.
    """
    rounded = [replace(use, cycles=slots(use.cycles, scale)) for use in uses if use.offset == 0]
    ends = [replace(use, offset=0, cycles=slots(use.offset + use.cycles, scale), amount=0) for use in uses]
    longest = sorted(ends, key=lambda use: use.cycles)[-1:]
    return (*(use for use in rounded if use.cycles), *longest)


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
