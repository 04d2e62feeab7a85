"""Checks of a whole graph that no single op or edge can make; errors carry the path inside a graph file."""

from __future__ import annotations

import graphlib

from twillgpu.errors import InputError, nearest
from twillgpu.graph.record import DepGraph
from twillgpu.machine.record import Machine


def check_graph(graph: DepGraph, where: str) -> None:
    """Raise ``InputError`` unless names are unique, edges, residents and legality pairs speak of known ops, aliases
    keep to one space, and every cycle has a positive total distance.
    """
    if not graph.ops:
        raise InputError(f"{where}: ops", "the graph has no ops", "add at least one op")
    _check_names(graph, where)
    _check_references(graph, where)
    _check_aliases(graph, where)
    check_cycles(graph, where)
    if isinstance(graph.machine, Machine):
        check_units(graph, graph.machine, where)


def check_units(graph: DepGraph, machine: Machine, where: str) -> None:
    """Raise ``InputError`` for the first use of a unit that ``machine`` does not have."""
    units = {unit.name for unit in machine.units}
    for index, op in enumerate(graph.ops):
        for number, use in enumerate(op.cost.uses if op.cost else ()):
            if use.unit not in units:
                raise InputError(
                    f"{where}: ops[{index}].uses[{number}].unit",
                    f"machine {machine.name!r} has no unit {use.unit!r}",
                    nearest(use.unit, units),
                )


def check_cycles(graph: DepGraph, where: str) -> None:
    """Raise ``InputError`` that lists the ops of a cycle whose edges all have distance 0."""
    sorter: graphlib.TopologicalSorter[str] = graphlib.TopologicalSorter()
    for edge in graph.edges:
        if edge.distance == 0:
            sorter.add(edge.head, edge.tail)
    try:
        sorter.prepare()
    except graphlib.CycleError as error:
        cycle = " -> ".join(error.args[1])
        raise InputError(
            f"{where}: edges",
            f"the edges {cycle} make a cycle of total distance 0: no op of it could start first",
            "give the edge that comes from an earlier iteration a distance of at least 1",
        ) from None


def _check_names(graph: DepGraph, where: str) -> None:
    seen: dict[str, int] = {}
    for index, op in enumerate(graph.ops):
        if op.name in seen:
            what = f"the name {op.name!r} is already that of ops[{seen[op.name]}]"
            raise InputError(f"{where}: ops[{index}].name", what, "give every op a name of its own")
        seen[op.name] = index


def _check_references(graph: DepGraph, where: str) -> None:
    names = {op.name for op in graph.ops}
    places = [
        (f"edges[{index}].{end}", name)
        for index, edge in enumerate(graph.edges)
        for end, name in (("from", edge.tail), ("to", edge.head))
    ]
    places += [
        (f"residents[{index}].users[{number}]", name)
        for index, resident in enumerate(graph.residents)
        for number, name in enumerate(resident.users)
    ]
    pairs = graph.legality or ()
    places += [
        (f"legality[{index}].{end}", name)
        for index, pair in enumerate(pairs)
        for end, name in (("first", pair.first), ("second", pair.second))
    ]
    for path, name in places:
        if name not in names:
            raise InputError(f"{where}: {path}", f"there is no op {name!r}", nearest(name, names))
    for index, pair in enumerate(pairs):
        if pair.first == pair.second:
            what = f"an op always shares a group with itself, and both are {pair.first!r}"
            raise InputError(f"{where}: legality[{index}].second", what, "name two ops")


def _check_aliases(graph: DepGraph, where: str) -> None:
    spaces: dict[str, tuple[str, int]] = {}
    for index, op in enumerate(graph.ops):
        if op.result is None or op.result.alias is None:
            continue
        space, first = spaces.setdefault(op.result.alias, (op.result.space, index))
        if space != op.result.space:
            what = f"{op.result.alias!r} is in {op.result.space} here, but in {space} in ops[{first}]"
            raise InputError(f"{where}: ops[{index}].result.alias", what, "one storage is in one space")
