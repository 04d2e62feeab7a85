"""Latency, hand-off, read time and blocking of a dependence."""

from __future__ import annotations

from collections.abc import Mapping

from twillgpu.costs.pricing import Price, whole
from twillgpu.costs.record import PricedEdge, PricedOp
from twillgpu.graph.record import Edge
from twillgpu.machine.record import Handoff

TENSOR = "tensor"
"""The unit of tensor core ops."""


def price_edge(edge: Edge, ops: Mapping[str, PricedOp], prices: Mapping[str, Price], handoff: Handoff) -> PricedEdge:
    """Return the edge in cycles: ``M(head) + distance I >= M(tail) + latency`` (``+ handoff`` across groups)."""
    tail, head = ops[edge.tail], ops[edge.head]
    chained = _chained(edge, tail, head, prices)
    latency = _follows(tail, head) if chained else _latency(edge, tail, head)
    return PricedEdge(
        tail=edge.tail,
        head=edge.head,
        latency_cycles=latency,
        distance=edge.distance,
        kind=edge.kind,
        blocking=_blocking(edge, tail, chained=chained, worked=prices[tail.name].worked),
        handoff_cycles=_handoff(edge, tail, latency, chained=chained, barrier=whole(handoff.barrier_cycles)),
        read_cycles=_read(edge, tail, head, whole(handoff.barrier_cycles)),
    )


def _chained(edge: Edge, tail: PricedOp, head: PricedOp, prices: Mapping[str, Price]) -> bool:
    """Two tensor core ops that add to one accumulator: the hardware pipelines the second behind the first."""
    if edge.kind != "data" or edge.latency_cycles is not None or tail.value is None or head.value is None:
        return False
    if not (prices[tail.name].accumulates and prices[head.name].accumulates):
        return False
    return tail.value.alias is not None and tail.value.alias == head.value.alias


def _follows(tail: PricedOp, head: PricedOp) -> int:
    """Return when the head may start so that its tensor core part begins where that of the tail ends."""
    end = max((use.offset + use.cycles for use in tail.uses if use.unit == TENSOR), default=tail.real_latency_cycles)
    start = min((use.offset for use in head.uses if use.unit == TENSOR), default=0)
    return max(0, min(end, tail.real_latency_cycles) - start)


def _latency(edge: Edge, tail: PricedOp, head: PricedOp) -> int:
    """``data``, ``output``, ``memory``: the tail must have completed. ``anti``: it must have read. ``order``,
    ``token``: it must have started. A streaming tail never delays anything.
    """
    if tail.streaming:
        return 0
    if edge.latency_cycles is not None:
        return edge.latency_cycles
    if edge.kind == "anti":
        return 0 if _reads_at_once(tail, head) else tail.latency_cycles
    return 0 if edge.kind in ("order", "token") else tail.latency_cycles


def _reads_at_once(tail: PricedOp, head: PricedOp) -> bool:
    """In-order issue protects registers from a later write of the same warps; an asynchronous unit and a
    memory are read until the tail has completed.
    """
    in_registers = head.value is not None and head.value.space == "registers"
    return in_registers and not tail.asynchronous


def _blocking(edge: Edge, tail: PricedOp, *, chained: bool, worked: bool) -> bool:
    """Whoever needs an asynchronous result waits for it; a graph file says itself which edges block."""
    if chained:
        return False
    waits = worked and tail.asynchronous and edge.kind not in ("order", "token")
    return edge.blocking or waits


def _handoff(edge: Edge, tail: PricedOp, latency: int, *, chained: bool, barrier: int) -> int:
    """Extra cycles across groups, if the graph does not say them: the value's hand-off for ``data``; for the other
    kinds one barrier hop, or nothing where the tail itself signals that it has completed. A chained accumulator
    loses its pipelining.
    """
    if edge.handoff_cycles is not None:
        return edge.handoff_cycles
    if chained:
        return tail.real_latency_cycles - latency + tail.handoff_cycles
    if edge.kind == "data":
        return tail.handoff_cycles
    return completion_hop(tail, barrier) if edge.kind in ("anti", "output", "memory") else barrier


def completion_hop(tail: PricedOp, barrier: int) -> int:
    """Return what another group pays to learn that ``tail`` has completed: ``barrier`` cycles, or nothing where its
    unit itself arrives on the barrier.
    """
    in_memory = tail.value is not None and tail.value.space != "registers"
    return 0 if tail.asynchronous and in_memory else barrier


def _read(edge: Edge, tail: PricedOp, head: PricedOp, barrier: int) -> int:
    """How long after its start the head still reads the tail's value (``docs/formulation.md``, read time)."""
    if edge.kind != "data" or tail.value is None:
        return 0
    if edge.read_cycles is not None:
        return edge.read_cycles
    if tail.value.space != "registers":
        return head.real_latency_cycles + barrier
    return head.real_latency_cycles if head.asynchronous else 0
