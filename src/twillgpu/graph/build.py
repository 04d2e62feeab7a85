"""From a kernel's loop body to its dependence graph.

``docs/formats.md`` says what becomes a node and what becomes an edge. In short: nodes are ops that do work, fused
where no decision is lost (``fuse``), index tiles inside each of their readers (``recompute``); ``data`` edges are
flow through registers, SMEM and TMEM, with the distance in iterations; ``anti`` edges exist only where storage is
updated in place; ``memory`` edges where two ops may touch one global address.
"""

from __future__ import annotations

from math import prod

from twillgpu.errors import UnsupportedError
from twillgpu.frontend.kernel import Kernel, KernelOp, TileType
from twillgpu.graph.accumulate import InPlace, in_place
from twillgpu.graph.aliasing import memory_edges
from twillgpu.graph.body import Body, body_of, element_bits, registers_per_thread, tensor_memory_bytes, tile_bytes
from twillgpu.graph.checks import check_graph
from twillgpu.graph.digest import with_digest
from twillgpu.graph.flow import Flow, Sources, flows_of, storages_of
from twillgpu.graph.fuse import fuse
from twillgpu.graph.kinds import ASYNCHRONOUS, VARIABLE
from twillgpu.graph.layout import elements_per_thread
from twillgpu.graph.nodes import Node, nodes_of
from twillgpu.graph.outside import fixed_bytes, resident_tiles
from twillgpu.graph.recompute import recompute
from twillgpu.graph.record import DepGraph, Edge, Op, Resident, Value


def build(kernel: Kernel) -> DepGraph:
    """Return the dependence graph of the kernel's loop; ops carry ``work`` and no cost yet.

    Opcodes that are not known become nodes of kind ``op``; pricing says what to do about them. Raises
    ``UnsupportedError`` for a loop without work.
    """
    body = body_of(kernel)
    formed = nodes_of(body)
    if not formed:
        raise UnsupportedError(
            kernel.loop.source or f"loop {kernel.loop.name}",
            "the loop does nothing that could be scheduled",
            "choose another loop (--loop)",
        )
    storages = storages_of(body, formed)
    sources = Sources(body, formed, storages)
    threads = 32 * kernel.num_warps
    fused = fuse(formed, flows_of(body, formed, sources), sources.kept(), threads)
    fused = recompute(fused, sources, threads)
    shared = in_place(fused.nodes, fused.flows, storages)
    graph = DepGraph(
        name=kernel.name,
        ops=tuple(_op(node, kernel, shared) for node in fused.nodes),
        edges=_edges(fused.nodes, fused.flows, shared) + memory_edges(body, fused.nodes),
        trip_count=kernel.loop.trip_count,
        fixed_bytes=fixed_bytes(body, storages, fused.nodes),
        residents=_residents(body, fused.nodes, kernel),
        flop_per_iteration=sum(_flop(node, body) for node in fused.nodes),
    )
    check_graph(graph, kernel.name)
    return with_digest(graph)


def _op(node: Node, kernel: Kernel, shared: InPlace) -> Op:
    warps = _warps(node, kernel)
    return Op(
        name=node.name,
        kind=node.kind,
        source=node.source,
        warps=warps,
        variable_latency=node.kind in VARIABLE,
        result=None if node.result is None else _value(node, node.result, warps, shared),
        work=node.work,
        members=tuple(member.name for member in node.members),
    )


def _warps(node: Node, kernel: Kernel) -> int:
    """Return the warps that a node needs: those that hold its tiles. Any warps can copy to SMEM: one warpgroup does,
    where warp groups are specialised.
    """
    if node.one_warp:
        return 1
    specialised = kernel.target != "sm_80"
    return min(4, kernel.num_warps) if node.kind == "async_copy" and specialised else kernel.num_warps


def _value(node: Node, kind: TileType, warps: int, shared: InPlace) -> Value:
    alias = shared.alias.get(node.name)
    if kind.space == "smem":
        return Value(space="smem", bytes=tile_bytes(kind), alias=alias)
    if kind.space == "tmem":
        return Value(space="tmem", bytes=tensor_memory_bytes(kind), alias=alias)
    return Value(space="registers", bytes=tile_bytes(kind), registers_per_thread=_registers(kind, warps), alias=alias)


def _registers(kind: TileType, warps: int) -> int:
    """Return registers per thread, with the copies that the layout holds; from the bytes where it is not known."""
    elements = elements_per_thread(kind)
    if elements is None:
        return registers_per_thread(kind, warps)
    return -(-elements * element_bits(kind.dtype) // 32)


def _edges(nodes: tuple[Node, ...], flows: tuple[Flow, ...], shared: InPlace) -> tuple[Edge, ...]:
    named = {node.name: node for node in nodes}
    found: dict[tuple[str, str, int], bool] = {}
    for flow in flows:
        key = (flow.tail, flow.head, flow.distance)
        found[key] = found.get(key, False) or _blocks(flow, named, shared)
    data = tuple(
        Edge(tail=tail, head=head, distance=distance, blocking=blocking)
        for (tail, head, distance), blocking in found.items()
    )
    return data + shared.anti


def _blocks(flow: Flow, named: dict[str, Node], shared: InPlace) -> bool:
    """Return whether the reader waits: the result is asynchronous, and not the accumulator that a tensor core op
    passes to the next one on the same storage, in order.
    """
    tail, head = named[flow.tail], named[flow.head]
    if tail.kind == "mma" and not tail.asynchronous_mma:
        return False
    same = shared.alias.get(tail.name) is not None and shared.alias.get(tail.name) == shared.alias.get(head.name)
    chained = flow.accumulates and tail.kind == head.kind == "mma" and same
    return tail.kind in ASYNCHRONOUS and not chained


def _residents(body: Body, nodes: tuple[Node, ...], kernel: Kernel) -> tuple[Resident, ...]:
    return tuple(
        Resident(name=name, registers_per_thread=_registers(kind, kernel.num_warps), users=users)
        for name, (kind, users) in resident_tiles(body, nodes).items()
    )


def _flop(node: Node, body: Body) -> int:
    return sum(_product_flop(op, body) for op in node.members) if node.kind == "mma" else 0


def _product_flop(op: KernelOp, body: Body) -> int:
    """Return 2 M N K (times the batch) of a matrix product."""
    return 2 * prod(body.types[op.operands[0]].shape) * body.types[op.operands[1]].shape[-1]
