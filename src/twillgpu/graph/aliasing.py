"""Dependences through global memory.

Two ops may touch the same address if they reach it through the same pointer or descriptor argument of the kernel;
different arguments are taken not to overlap, as Triton itself takes them.
"""

from __future__ import annotations

from collections.abc import Iterator

from twillgpu.frontend.kernel import KernelOp
from twillgpu.graph.body import Body
from twillgpu.graph.kinds import GLOBAL_OPCODES
from twillgpu.graph.nodes import Node
from twillgpu.graph.record import Edge

_WRITING = ("store", "tma_store", "tma_reduce", "atomic")
_COMMUTING = ("tma_reduce", "atomic")
_BASES = ("global", "descriptor")


def memory_edges(body: Body, nodes: tuple[Node, ...]) -> tuple[Edge, ...]:
    """Return edges between ops that may touch the same global address and of which one writes.

    In program order with distance 0, and back with distance 1. Reductions and atomics whose old value nobody reads
    commute with each other. An op needs no edge to itself: its instances run in order.
    """
    touching = [(node, _bases(node, body)) for node in nodes]
    touching = [(node, bases) for node, bases in touching if bases]
    found = []
    for index, (first, first_bases) in enumerate(touching):
        for second, second_bases in touching[index + 1 :]:
            if first_bases & second_bases and _ordered(first, second, body):
                found.append(Edge(tail=first.name, head=second.name, kind="memory"))
                found.append(Edge(tail=second.name, head=first.name, distance=1, kind="memory"))
    return tuple(found)


def _ordered(first: Node, second: Node, body: Body) -> bool:
    if first.kind not in _WRITING and second.kind not in _WRITING:
        return False
    return not (_commutes(first, body) and _commutes(second, body))


def _commutes(node: Node, body: Body) -> bool:
    read = any(body.users.get(value) or value in body.kept for value in node.defines)
    return node.kind in _COMMUTING and not read


def _bases(node: Node, body: Body) -> frozenset[str]:
    """Return the arguments through which a node reaches global memory."""
    bases: set[str] = set()
    for op in node.members:
        if op.opcode in GLOBAL_OPCODES:
            bases.update(_bases_of(op.operands[0], body, set()))
    return frozenset(bases)


def _bases_of(value: str, body: Body, seen: set[str]) -> Iterator[str]:
    """Yield the pointer and descriptor arguments that ``value`` is computed from; a pointer that comes from elsewhere
    (read from memory) stands for itself.
    """
    if value in seen:
        return
    seen.add(value)
    op = body.inner.get(value) or body.outer.get(value)
    if value in body.carried:
        carried = body.carried[value]
        yield from _bases_of(carried.initial, body, seen)
        yield from _bases_of(carried.yielded, body, seen)
    elif op is None:
        if body.types[value].space in _BASES:
            yield value
    elif op.opcode in GLOBAL_OPCODES:
        yield value
    else:
        yield from _operand_bases(op, body, seen)


def _operand_bases(op: KernelOp, body: Body, seen: set[str]) -> Iterator[str]:
    for operand in op.operands:
        kind = body.types[operand]
        if kind.space in _BASES or kind.dtype.startswith("ptr") or op.opcode == "tt.int_to_ptr":
            yield from _bases_of(operand, body, seen)
