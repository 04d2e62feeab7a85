"""What lives outside the loop and takes room in it: resident register tiles, and bytes of SMEM and TMEM."""

from __future__ import annotations

from collections.abc import Iterator

from twillgpu.frontend.kernel import KernelOp, TileType
from twillgpu.graph.body import Body, tensor_memory_bytes, tile_bytes
from twillgpu.graph.flow import Storages, root_of
from twillgpu.graph.kinds import ALLOCS, VIEWS
from twillgpu.graph.nodes import Node, data_operands
from twillgpu.graph.scratch import scratch_bytes

BARRIER_BYTES = 1024
"""SMEM set aside for mbarriers of 8 bytes and the alignment of what follows."""


def resident_tiles(body: Body, nodes: tuple[Node, ...]) -> dict[str, tuple[TileType, tuple[str, ...]]]:
    """Return the register tiles made before the loop that ops of the loop read: type and names of the readers.

    Constants and scalars spread over a tile need no registers of their own; views are counted as what they view.
    """
    found: dict[str, tuple[TileType, dict[str, None]]] = {}
    for node in nodes:
        for op in node.members:
            for operand in data_operands(op):
                for root in _outer_roots(operand, body):
                    found.setdefault(root, (body.types[root], {}))[1][node.name] = None
    return {root: (kind, tuple(users)) for root, (kind, users) in found.items()}


def _outer_roots(value: str, body: Body) -> Iterator[str]:
    """Yield the tiles from before the loop that ``value`` is, seen through views."""
    kind = body.types[value]
    if kind.space != "registers" or value in body.carried:
        return
    inner, outer = body.inner.get(value), body.outer.get(value)
    if inner is not None:
        if inner.opcode in VIEWS or inner.opcode == "ttg.convert_layout":
            yield from _operand_roots(inner, body)
    elif outer is not None and outer.opcode in VIEWS:
        yield from _operand_roots(outer, body)
    elif outer is not None:
        yield value


def _operand_roots(op: KernelOp, body: Body) -> Iterator[str]:
    for operand in op.operands:
        yield from _outer_roots(operand, body)


def fixed_bytes(body: Body, storages: Storages, nodes: tuple[Node, ...]) -> tuple[tuple[str, int], ...]:
    """Return the bytes per memory of tiles allocated before the loop and used in it or after it, and the SMEM for
    barriers and for the scratch of the compiler. Tiles that the loop itself writes are values of the loop, not fixed.
    """
    total = {"smem": BARRIER_BYTES + scratch_bytes(body.kernel, ((node.kind, node.members) for node in nodes))}
    kernel = body.kernel
    used = {operand for op in (*kernel.loop.body, *kernel.after) for operand in op.operands}
    roots = {root_of(value, body) for value in used if value in body.types}
    for op in kernel.before:
        if op.opcode in ALLOCS and op.results[0].name in roots - set(storages):
            kind = op.results[0].type
            size = tensor_memory_bytes(kind) if kind.space == "tmem" else tile_bytes(kind)
            total[kind.space] = total.get(kind.space, 0) + size
    return tuple(sorted(total.items()))
