"""The dependence graph with what a schedule makes of it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from twillgpu.costs.circuits import Circuit, worst_circuit
from twillgpu.costs.record import PricedEdge, Problem
from twillgpu.schedule.record import Schedule
from twillgpu.view.layers import Layout, layout


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """An op: its place in the layout (``x`` in widths of a node, 0 in the middle; ``y`` in layers), and its group."""

    op: str
    source: str
    group: int
    start_cycle: int
    x: float
    y: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """All dependences from ``tail`` to ``head`` of one distance.

    Attributes:
        kinds: their kinds, ``data`` first.
        latency_cycles: the longest of their latencies, hand-off included where it crosses groups.
        crosses: the two ops are in different groups.
        critical: it is part of the circuit that limits the interval most.
        bends: where the line passes between the ops of the layers that it crosses, from tail to head.
    """

    tail: str
    head: str
    distance: int
    kinds: tuple[str, ...]
    latency_cycles: int
    crosses: bool
    critical: bool
    bends: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """The graph as it is drawn; ``circuit`` is the circuit that limits the interval most, where there is one."""

    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    circuit: Circuit | None


def network(problem: Problem, schedule: Schedule) -> Network:
    """Return the dependence graph of a problem under a schedule."""
    circuit = worst_circuit(problem)
    group = {op.name: op.group for op in schedule.ops}
    placed = layout(
        tuple(op.name for op in problem.ops),
        tuple((edge.tail, edge.head, edge.distance) for edge in problem.edges),
    )
    nodes = tuple(
        Node(
            op=op.name,
            source=op.source,
            group=group[op.name],
            start_cycle=schedule.start(op.name),
            x=placed.nodes[op.name][0],
            y=placed.nodes[op.name][1],
        )
        for op in problem.ops
    )
    return Network(nodes=nodes, links=_links(problem, group, circuit, placed), circuit=circuit)


def _links(problem: Problem, group: dict[str, int], circuit: Circuit | None, placed: Layout) -> tuple[Link, ...]:
    bundles: dict[tuple[str, str, int], list[PricedEdge]] = defaultdict(list)
    for edge in problem.edges:
        bundles[edge.tail, edge.head, edge.distance].append(edge)
    critical = _critical(problem, circuit)
    return tuple(
        Link(
            tail=tail,
            head=head,
            distance=distance,
            kinds=tuple(sorted({edge.kind for edge in edges}, key=lambda kind: (kind != "data", kind))),
            latency_cycles=max(_latency(edge, group) for edge in edges),
            crosses=group[tail] != group[head],
            critical=(tail, head, distance) in critical,
            bends=placed.bends.get((tail, head, distance), ()),
        )
        for (tail, head, distance), edges in bundles.items()
    )


def _latency(edge: PricedEdge, group: dict[str, int]) -> int:
    return edge.latency_cycles + (edge.handoff_cycles if group[edge.tail] != group[edge.head] else 0)


def _critical(problem: Problem, circuit: Circuit | None) -> set[tuple[str, str, int]]:
    """Return the edges of the circuit; of parallel ones that with the largest weight, which made it the circuit."""
    if circuit is None:
        return set()
    found = set()
    for tail, head in zip(circuit.ops, (*circuit.ops[1:], circuit.ops[0]), strict=True):
        parallel = [edge for edge in problem.edges if (edge.tail, edge.head) == (tail, head)]
        best = max(
            parallel, key=lambda edge: edge.latency_cycles * circuit.distance - edge.distance * circuit.latency_cycles
        )
        found.add((tail, head, best.distance))
    return found
