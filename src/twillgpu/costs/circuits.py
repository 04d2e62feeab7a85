"""The circuit of a dependence graph that limits the interval most, exactly, in integers.

For an interval I, every circuit needs ``sum(latency) <= I sum(distance)``. Start with the ratio 0; while some
circuit is longer than the ratio allows (a positive circuit with weights ``q latency - p distance`` for a ratio
p / q), take the ratio of that circuit. Each step is strictly larger and is the ratio of a simple circuit, so the
last one is the maximum cycle ratio (the scheme of Lawler and of Burns for maximum cycle means).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from twillgpu.costs.record import PricedEdge, Problem
from twillgpu.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Circuit:
    """A simple circuit: its ops in order, and its sums. ``Arc`` weights are those of the problem's edges."""

    ops: tuple[str, ...]
    latency_cycles: int
    distance: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Arc:
    """One dependence between ops by index."""

    tail: int
    head: int
    latency_cycles: int
    distance: int


def arcs(problem: Problem) -> tuple[Arc, ...]:
    """Return the dependences of ``problem``. An edge between ops that must be apart always pays its hand-off."""
    index = {op.name: number for number, op in enumerate(problem.ops)}
    apart = {frozenset((pair.first, pair.second)) for pair in problem.legality if pair.relation == "apart"}
    return tuple(
        Arc(
            tail=index[edge.tail],
            head=index[edge.head],
            latency_cycles=least_latency(edge, crosses=frozenset((edge.tail, edge.head)) in apart),
            distance=edge.distance,
        )
        for edge in problem.edges
    )


def least_latency(edge: PricedEdge, *, crosses: bool) -> int:
    """Return the latency of ``edge``, with its hand-off if it always crosses groups."""
    return edge.latency_cycles + (edge.handoff_cycles if crosses else 0)


def worst_circuit(problem: Problem) -> Circuit | None:
    """Return a circuit of maximum ratio latency / distance, or ``None`` where there is no circuit.

    Raises:
        InputError: a circuit of distance 0 and positive latency.
    """
    known = arcs(problem)
    names = tuple(op.name for op in problem.ops)
    best = _over(known, names, Fraction(-1))
    while best is not None:
        if best.distance == 0:
            raise _impossible(best)
        better = _over(known, names, Fraction(best.latency_cycles, best.distance))
        if better is None:
            return best
        best = better
    return None


def _impossible(circuit: Circuit) -> InputError:
    path = " -> ".join((*circuit.ops, circuit.ops[0]))
    return InputError(
        "edges",
        f"the circuit {path} takes {circuit.latency_cycles} cycles and has distance 0: it waits for itself",
        "give the edge that comes from an earlier iteration a distance of at least 1",
    )


def _over(known: Sequence[Arc], names: Sequence[str], ratio: Fraction) -> Circuit | None:
    """Return a circuit whose latency exceeds ``ratio`` times its distance, by Bellman and Ford's method."""
    weights = [ratio.denominator * arc.latency_cycles - ratio.numerator * arc.distance for arc in known]
    length = [0] * len(names)
    into = [-1] * len(names)
    last: int | None = None
    for _ in range(len(names) + 1):
        last = None
        for number, arc in enumerate(known):
            if length[arc.tail] + weights[number] > length[arc.head]:
                length[arc.head] = length[arc.tail] + weights[number]
                into[arc.head] = number
                last = arc.head
        if last is None:
            return None
    return None if last is None else _trace(known, names, into, last)


def _trace(known: Sequence[Arc], names: Sequence[str], into: Sequence[int], start: int) -> Circuit:
    """Walk back over the last improvements until an op repeats: that is a positive circuit.

    An improvement in round n + 1 ends a walk of more than n arcs, so that every op on the way has an arc into it.
    """
    seen: dict[int, int] = {}
    path: list[Arc] = []
    node = start
    while node not in seen:
        seen[node] = len(path)
        arc = known[into[node]]
        path.append(arc)
        node = arc.tail
    around = path[seen[node] :][::-1]
    return Circuit(
        ops=tuple(names[arc.tail] for arc in around),
        latency_cycles=sum(arc.latency_cycles for arc in around),
        distance=sum(arc.distance for arc in around),
    )
