"""A layered layout of a graph, after Sugiyama, Tagawa and Toda (1981).

Layers are longest paths from the sources; an edge over several layers gets a bend in each of those between, so that
it does not run under an op; a few sweeps of barycentres order the layers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

SWEEPS = 12
BEND = 0.35
"""Width that a bend takes, in widths of a node."""

Edge = tuple[str, str, int]
"""Tail, head, distance: edges of distance 0 make the layers, the others may run upwards."""
Item = str | tuple[Edge, int]
"""A node, or the bend of an edge in a layer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Places (x, layer) of the nodes, 0 in the middle of x; and the bends of edges, in order."""

    nodes: Mapping[str, tuple[float, int]]
    bends: Mapping[Edge, tuple[tuple[float, float], ...]]


def layout(names: tuple[str, ...], edges: tuple[Edge, ...]) -> Layout:
    """Return where to draw the nodes ``names`` and the ``edges`` between them; the same for the same input."""
    edges = tuple(dict.fromkeys(edge for edge in edges if edge[0] != edge[1]))
    layer = _layers(names, tuple((tail, head) for tail, head, distance in edges if distance == 0))
    rows: dict[int, list[Item]] = defaultdict(list)
    for name in names:
        rows[layer[name]].append(name)
    bends = {edge: _between(edge, layer) for edge in edges}
    neighbours: dict[Item, list[Item]] = defaultdict(list)
    for edge, inner in bends.items():
        for index, bend in inner:
            rows[index].append(bend)
        for one, other in pairwise((edge[0], *(bend for _, bend in inner), edge[1])):
            neighbours[one].append(other)
            neighbours[other].append(one)
    place = _ordered([rows[index] for index in sorted(rows)], neighbours)
    return Layout(
        nodes={name: (place[name], layer[name]) for name in names},
        bends={edge: tuple((place[bend], float(index)) for index, bend in inner) for edge, inner in bends.items()},
    )


def _layers(names: tuple[str, ...], edges: tuple[tuple[str, str], ...]) -> dict[str, int]:
    """Return the longest path to each node in edges; a circuit ends it after as many rounds as there are nodes."""
    layer = dict.fromkeys(names, 0)
    for _ in names:
        changed = False
        for tail, head in edges:
            if layer[head] <= layer[tail] < len(names) - 1:
                layer[head], changed = layer[tail] + 1, True
        if not changed:
            break
    return layer


def _between(edge: Edge, layer: Mapping[str, int]) -> tuple[tuple[int, Item], ...]:
    """Return the layers that an edge passes, from tail to head, with its bend in each."""
    first, last = layer[edge[0]], layer[edge[1]]
    step = 1 if first < last else -1
    return tuple((index, (edge, index)) for index in range(first + step, last, step))


def _ordered(rows: list[list[Item]], neighbours: Mapping[Item, list[Item]]) -> dict[Item, float]:
    """Order every layer by the mean place of its items' neighbours, a few times down and up."""
    place: dict[Item, float] = {}
    for row in rows:
        _spread(row, place)
    for sweep in range(SWEEPS):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            means = {item: _mean(item, neighbours, place) for item in row}
            row.sort(key=means.__getitem__)
            _spread(row, place)
    return place


def _mean(item: Item, neighbours: Mapping[Item, list[Item]], place: Mapping[Item, float]) -> float:
    found = [place[other] for other in neighbours.get(item, ())]
    return sum(found) / len(found) if found else place[item]


def _spread(row: list[Item], place: dict[Item, float]) -> None:
    """Place a layer's items side by side around the middle."""
    widths = [1.0 if isinstance(item, str) else BEND for item in row]
    at = -sum(widths) / 2
    for item, width in zip(row, widths, strict=True):
        place[item] = round(at + width / 2, 4)
        at += width
