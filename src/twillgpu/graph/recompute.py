"""Index tiles that every reader computes for itself.

A tile of column numbers, ``start + tl.arange(0, N)``, follows from the loop counter and from what is known before the
loop: any warp has what it takes to compute it, for a few instructions. As a node it would be computed in one warp
group and handed to the others through SMEM, which no compiler does. So it is no node where that is possible: its work
is added to each node that reads it, and addresses and masks of memory ops take it for nothing, as they do all address
arithmetic (``kinds.address_ops``).
"""

from __future__ import annotations

from dataclasses import replace

from twillgpu.graph.body import tile_elements
from twillgpu.graph.flow import Flow, Sources
from twillgpu.graph.fuse import Fused, few
from twillgpu.graph.kinds import COMPUTE, kind_of
from twillgpu.graph.nodes import Node, data_operands

_CHEAP = frozenset(
    f"arith.{name}"
    for name in (
        "addi", "andi", "cmpi", "extsi", "extui", "index_cast", "maxsi", "maxui", "minsi", "minui", "muli", "ori",
        "shli", "shrsi", "shrui", "subi", "trunci", "xori",
    )
)  # fmt: skip
"""Integer arithmetic of a few instructions; division and remainder are not."""


def recompute(fused: Fused, sources: Sources, threads: int) -> Fused:
    """Return the state with each index tile computed by its readers instead of by a node of its own.

    An index tile is made by integer arithmetic, comparisons and conversions of the element type from nothing that
    another node makes, other index tiles excepted; it does not outlive the iteration. It is computed again only where
    it has a few elements a thread or fewer elements than the tile of a reader: a mask of a whole tile stays a node.
    Readers that are no arithmetic (a store of the tile itself) keep the node. ``threads`` hold each tile.
    """
    state = fused
    # Backwards: a tile that another one is made from then goes where that one went.
    for name in reversed(_index_tiles(fused)):
        node = next(one for one in state.nodes if one.name == name)
        if few(node, threads) or _smaller_than_a_reader(node, state):
            state = _into_readers(state, node, sources)
    return state


def _index_tiles(state: Fused) -> tuple[str, ...]:
    """Return the nodes that make index tiles, in program order."""
    found: dict[str, None] = {}
    for node in state.nodes:
        cheap = all(op.opcode in _CHEAP or kind_of(op) == "convert" for op in node.members)
        into = [flow for flow in state.flows if flow.head == node.name]
        known = all(flow.tail in found and flow.distance == 0 for flow in into)
        if node.kind in COMPUTE and node.name not in state.kept and cheap and known:
            found[node.name] = None
    return tuple(found)


def _smaller_than_a_reader(node: Node, state: Fused) -> bool:
    heads = {flow.head for flow in state.flows if flow.tail == node.name}
    return any(_elements(reader) > _elements(node) for reader in state.nodes if reader.name in heads)


def _elements(node: Node) -> int:
    """Return the elements of the largest tile that a node works on."""
    return max(tile_elements(kind) for work in node.work for kind in (*work.operands, *work.results))


def _into_readers(state: Fused, node: Node, sources: Sources) -> Fused:
    """Return the state with ``node`` inside its readers, and gone if they all take it."""
    heads = dict.fromkeys(flow.head for flow in state.flows if flow.tail == node.name)
    readers = [one for one in state.nodes if one.name in heads]
    taken = {one.name: _with(node, one) for one in readers if one.kind in COMPUTE}
    taken |= {one.name: one for one in readers if one.kind not in COMPUTE and not _as_data(node, one, sources)}
    if not taken:
        return state
    gone = len(taken) == len(readers)
    return Fused(
        nodes=tuple(taken.get(one.name, one) for one in state.nodes if not (gone and one.name == node.name)),
        flows=tuple(dict.fromkeys(flow for one in state.flows for flow in _moved(one, node, taken, gone=gone))),
        kept=state.kept,
    )


def _with(node: Node, reader: Node) -> Node:
    return replace(
        reader,
        members=(*node.members, *reader.members),
        work=(*node.work, *reader.work),
        reads=(*node.reads, *reader.reads),
    )


def _as_data(node: Node, reader: Node, sources: Sources) -> bool:
    """Return whether a memory op reads the tile as more than its address or mask."""
    data = tuple(value for op in reader.members for value in data_operands(op))
    values = data if reader.members else reader.reads
    return any(name == node.name for value in values for name, _ in sources.of(value))


def _moved(flow: Flow, node: Node, taken: dict[str, Node], *, gone: bool) -> tuple[Flow, ...]:
    """Return what becomes of a flow: the readers that took ``node`` read its operands instead of it."""
    if flow.tail == node.name:
        return () if flow.head in taken else (flow,)
    if flow.head != node.name:
        return (flow,)
    return (*(() if gone else (flow,)), *(replace(flow, head=name) for name in taken))
