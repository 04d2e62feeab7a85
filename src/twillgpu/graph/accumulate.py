"""Storage that is updated in place: accumulators of the tensor core in registers and TMEM.

Members of one class share one storage (``Value.alias``). A buffer that is written anew in every iteration is no such
storage: how many copies it has is for the search to decide.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from twillgpu.graph.body import tile_bytes
from twillgpu.graph.flow import Access, Flow, Storages, last_write
from twillgpu.graph.nodes import Node
from twillgpu.graph.record import Edge


@dataclass(frozen=True, slots=True, kw_only=True)
class InPlace:
    """``alias`` of each member, and the anti edges that keep readers ahead of the next write."""

    alias: dict[str, str]
    anti: tuple[Edge, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """``head`` overwrites in place what ``tail`` made ``distance`` iterations before."""

    tail: str
    head: str
    distance: int


def in_place(nodes: tuple[Node, ...], flows: tuple[Flow, ...], storages: Storages) -> InPlace:
    """Return the classes of storage updated in place, named after their last member in program order.

    In memory: the writes of one tile that continue each other. In registers: a tensor core op, the op that made its
    accumulator if nothing else reads that, and so on through elementwise ops back to a tensor core op.
    """
    updates = [*_register_updates(nodes, flows), *_memory_updates(nodes, storages)]
    order = {node.name: at for at, node in enumerate(nodes)}
    alias: dict[str, str] = {}
    for members in _classes(updates):
        last = max(members, key=order.__getitem__)
        alias |= dict.fromkeys(members, last)
    return InPlace(alias=alias, anti=tuple(_anti(updates, flows)))


def _register_updates(nodes: tuple[Node, ...], flows: tuple[Flow, ...]) -> Iterator[Update]:
    named = {node.name: node for node in nodes}
    for node in nodes:
        if node.kind == "mma" and node.result is not None and node.result.space == "registers":
            sources = [flow for flow in flows if flow.head == node.name and flow.accumulates]
            for flow in sources:
                yield from _chain(flow, node.name, named, flows)


def _chain(flow: Flow, goal: str, named: dict[str, Node], flows: tuple[Flow, ...]) -> tuple[Update, ...]:
    """Return the updates from ``flow`` backwards, through elementwise ops to a tensor core op, best to ``goal``.

    An op has one operand whose storage it takes over; without a tensor core op behind it, it has its own.
    """
    tail, head = named[flow.tail], named[flow.head]
    if not _same_tile(tail, head) or not _may_overwrite(tail, flow, flows):
        return ()
    update = Update(tail=tail.name, head=head.name, distance=flow.distance)
    if tail.kind == "mma":
        return (update,)
    chains = [_chain(other, goal, named, flows) for other in flows if other.head == tail.name]
    ends = [chain for chain in chains if chain and named[chain[-1].tail].kind == "mma"]
    best = sorted(ends, key=lambda chain: chain[-1].tail != goal)
    return (update, *best[0]) if best else (update,)


def _same_tile(tail: Node, head: Node) -> bool:
    if tail.result is None or head.result is None or tail.kind not in ("mma", "elementwise"):
        return False
    same = tail.result.shape == head.result.shape and tile_bytes(tail.result) == tile_bytes(head.result)
    return same and tail.result.space == head.result.space == "registers"


def _may_overwrite(tail: Node, flow: Flow, flows: tuple[Flow, ...]) -> bool:
    """An elementwise result must have no other reader. A tensor core op's may have, if each reads it no later than
    it is overwritten.
    """
    others = [other for other in flows if other.tail == tail.name and other != flow]
    if tail.kind == "elementwise":
        return not others
    return all(
        other.distance < flow.distance
        or (other.distance == flow.distance and not _implied(flow.head, other.head, 0, flows))
        for other in others
    )


def _memory_updates(nodes: tuple[Node, ...], storages: Storages) -> Iterator[Update]:
    """Yield the updates of memory tiles; where a tile is carried into the next iteration, the write that starts
    the next iteration also overwrites the last one of this.
    """
    known = {node.name for node in nodes}
    for accesses in storages.values():
        writes = [access for access in accesses if access.mode != "read" and access.node in known]
        chained = any(access.mode == "update" for access in writes)
        if not chained:
            continue
        for index, access in enumerate(accesses):
            if access.mode == "update":
                writer, distance = last_write(accesses, index)
                yield Update(tail=accesses[writer].node, head=access.node, distance=distance)
        if _carried(accesses) and writes[0].mode == "write":
            yield Update(tail=writes[-1].node, head=writes[0].node, distance=1)


def _carried(accesses: tuple[Access, ...]) -> bool:
    """Return whether something reads what the iteration before wrote."""
    return any(
        access.mode != "write" and last_write(accesses, index)[1] == 1 for index, access in enumerate(accesses)
    )


def _classes(updates: list[Update]) -> tuple[frozenset[str], ...]:
    """Return the sets of nodes that updates connect."""
    place: dict[str, set[str]] = {}
    for update in updates:
        joined = place.get(update.tail, {update.tail}) | place.get(update.head, {update.head})
        place |= dict.fromkeys(joined, joined)
    return tuple(dict.fromkeys(frozenset(members) for members in place.values()))


def _anti(updates: list[Update], flows: tuple[Flow, ...]) -> Iterator[Edge]:
    """Yield an edge from each reader of a member to the op that overwrites it, unless other flows imply it."""
    for update in updates:
        for flow in flows:
            distance = update.distance - flow.distance
            if flow.tail != update.tail or flow.head == update.head or distance < 0:
                continue
            if not _implied(flow.head, update.head, distance, flows):
                yield Edge(tail=flow.head, head=update.head, distance=distance, kind="anti")


def _implied(start: str, end: str, distance: int, flows: tuple[Flow, ...]) -> bool:
    """Return whether flows of at most ``distance`` in all lead from ``start`` to ``end``."""
    best = {start: 0}
    pending = [start]
    while pending:
        name = pending.pop()
        for flow in flows:
            total = best[name] + flow.distance
            if flow.tail == name and total <= distance and total < best.get(flow.head, distance + 1):
                best[flow.head] = total
                if flow.head == end:
                    return True
                pending.append(flow.head)
    return False
