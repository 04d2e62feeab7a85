"""Problems whose durations are several cycles, no multiples of one slot, so that a coarse search must round."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hypothesis import strategies as st

from problems import problems
from twillgpu.costs.record import PricedEdge, PricedOp, Problem
from twillgpu.graph.record import Use

Duration = Callable[[int], int]


@st.composite
def stretched(draw: st.DrawFn, *, max_ops: int = 3, factor: int = 6) -> Problem:
    """Draw a small problem with every duration times ``factor`` at most, and some cycles less.

    Alias classes rest on edges that are exactly as long as what they wait for, so there nothing is taken off.
    """
    problem = draw(problems(max_ops=max_ops))
    times = draw(st.integers(min_value=2, max_value=factor))
    rough = not any(op.value is not None and op.value.alias is not None for op in problem.ops)

    def longer(cycles: int) -> int:
        less = draw(st.integers(min_value=0, max_value=times - 1)) if rough and cycles else 0
        return cycles * times - less

    def shift() -> int:
        return draw(st.sampled_from((0, 0, 0, 3, 9)))

    ops = {op.name: _op(op, longer, later=shift(), busier=shift()) for op in problem.ops}
    edges = tuple(_edge(edge, ops[edge.tail], longer) for edge in problem.edges)
    return replace(problem, ops=tuple(ops.values()), edges=edges)


def _op(op: PricedOp, longer: Duration, *, later: int, busier: int) -> PricedOp:
    """Return the op with longer durations, its uses moved ``later`` within it; it issues ``busier`` cycles more."""
    uses = tuple(_use(use, longer, later) for use in op.uses)
    real = longer(op.real_latency_cycles)
    return replace(
        op,
        uses=uses,
        issue_cycles=longer(op.issue_cycles) + busier,
        latency_cycles=0 if op.streaming else real,
        real_latency_cycles=real,
        handoff_cycles=longer(op.handoff_cycles),
    )


def _use(use: Use, longer: Duration, later: int) -> Use:
    return replace(use, offset=longer(use.offset) + later, cycles=longer(use.cycles))


def _edge(edge: PricedEdge, tail: PricedOp, longer: Duration) -> PricedEdge:
    data = edge.kind == "data"
    return replace(
        edge,
        latency_cycles=tail.latency_cycles if data else longer(edge.latency_cycles),
        handoff_cycles=tail.handoff_cycles if data else longer(edge.handoff_cycles),
        read_cycles=longer(edge.read_cycles),
    )
