"""Swing modulo scheduling.

J. Llosa, A. Gonzalez, E. Ayguade, M. Valero, "Swing modulo scheduling: a lifetime-sensitive approach", PACT 1996: ops
are ordered so that each has only predecessors or only successors before it (critical recurrences first), then each is
placed as near to those as it can be. Nothing is ever evicted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from twillgpu.baselines.paths import Step, longest, steps
from twillgpu.baselines.reservations import Reservations
from twillgpu.costs.record import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class _Graph:
    """The graph at one interval: depth and height (longest paths), mobility, neighbours."""

    depth: dict[str, int]
    height: dict[str, int]
    mobility: dict[str, int]
    before: dict[str, set[str]]
    after: dict[str, set[str]]


def swing(problem: Problem, groups: Mapping[str, int], interval: int) -> dict[str, int] | None:
    """Return a start for every op at ``interval`` (some may be negative), or ``None`` where an op finds no slot.

    ``problem`` has the hand-offs of ``groups`` in its edges.
    """
    known = steps(problem, interval)
    graph = _graph(problem, known)
    if graph is None:
        return None
    table = Reservations(problem, groups, interval)
    for name in _order(problem, graph):
        start = _slot(table, known, graph, name)
        if start is None:
            return None
        table.place(name, start)
    return table.starts


def _graph(problem: Problem, known: tuple[Step, ...]) -> _Graph | None:
    depth, height = longest(problem, known), longest(problem, known, backward=True)
    if depth is None or height is None:
        return None
    length = max(depth[name] + height[name] for name in depth)
    before: dict[str, set[str]] = {name: set() for name in depth}
    after: dict[str, set[str]] = {name: set() for name in depth}
    for edge in problem.edges:
        if edge.tail != edge.head:
            before[edge.head].add(edge.tail)
            after[edge.tail].add(edge.head)
    mobility = {name: length - depth[name] - height[name] for name in depth}
    return _Graph(depth=depth, height=height, mobility=mobility, before=before, after=after)


def _order(problem: Problem, graph: _Graph) -> list[str]:
    """Return the ops in the order of scheduling: set by set, swinging between upward and downward."""
    order: list[str] = []
    for members in _sets(problem, graph):
        while members - set(order):
            _sweep(graph, members, order)
    return order


def _sweep(graph: _Graph, members: set[str], order: list[str]) -> None:
    done = set(order)
    left = members - done
    upward = {name for name in left if graph.after[name] & done}
    downward = {name for name in left if graph.before[name] & done}
    ready, up = (upward, True) if upward else (downward, False)
    if not ready:
        ready, up = {max(sorted(left), key=lambda name: graph.depth[name])}, True
    while ready:
        key = graph.depth if up else graph.height
        while ready:
            name = max(sorted(ready), key=lambda name: (key[name], -graph.mobility[name]))
            order.append(name)
            near = graph.before[name] if up else graph.after[name]
            ready = (ready | (near & members)) - set(order)
        up = not up
        neighbours = graph.after if up else graph.before
        ready = {name for name in members - set(order) if neighbours[name] & set(order)}


def _sets(problem: Problem, graph: _Graph) -> list[set[str]]:
    """Return the recurrences, that of least mobility first, each with what lies on paths to those before; then the
    other ops; at last streaming loads, which have no latency here: between two readers they would only be in the way.
    """
    names = [op.name for op in problem.ops]
    later = {name: _reached(graph.after, {name}) for name in names}
    circuits = {frozenset(other for other in later[name] if name in later[other]) for name in names}
    found: list[set[str]] = []
    seen: set[str] = set()
    worth = {circuit: min(graph.mobility[name] for name in circuit) for circuit in circuits if circuit}
    for circuit in sorted(worth, key=lambda circuit: (worth[circuit], sorted(circuit))):
        between = {n for n in names if seen & later[n] and _later_of(later, circuit) & {n}}
        between |= {n for n in names if circuit & later[n] and _later_of(later, seen) & {n}}
        found.append((set(circuit) | between) - seen)
        seen |= found[-1]
    streaming = {op.name for op in problem.ops if op.streaming}
    return [*(members - streaming for members in found), set(names) - seen - streaming, streaming]


def _later_of(later: Mapping[str, set[str]], names: frozenset[str] | set[str]) -> set[str]:
    """Return what paths from ``names`` lead to."""
    return set().union(*(later[name] for name in names))


def _reached(after: Mapping[str, set[str]], names: set[str]) -> set[str]:
    """Return the ops at the end of paths of one edge or more."""
    found: set[str] = set()
    front = names
    while front:
        front = set().union(*(after[name] for name in front)) - found
        found |= front
    return found


def _slot(table: Reservations, known: tuple[Step, ...], graph: _Graph, name: str) -> int | None:
    starts, interval = table.starts, table.interval
    early = [starts[step.tail] + step.cycles for step in known if step.head == name and step.tail in starts]
    late = [starts[step.head] - step.cycles for step in known if step.tail == name and step.head in starts]
    if late and not early:
        last = min(late)
        candidates = table.backward(name, last - interval + 1, last)
    else:
        first = max(early) if early else graph.depth[name]
        candidates = table.candidates(name, first, min([first + interval - 1, *late]))
    return next((start for start in candidates if table.free(name, start)), None)
