"""Which products of the asynchronous tensor core software waits for in the loop, and who ends the wait.

The assembler gives up the asynchrony of wgmma (C7514: "non wgmma instructions reading accumulator registers of a
wgmma between start and end of the pipeline stage") where a product is issued in one iteration of the machine code's
loop and drained in the next by a wait that leaves a newer one in flight, and software touches its accumulator.
Within one iteration it follows every such wait. Measured with the assemblers of Triton 3.6.0 and 3.9.0
(docs/emission.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from twillgpu.costs.pricing import Price
from twillgpu.graph.record import DepGraph, Op


def wgmma_pause(graph: DepGraph, prices: Mapping[str, Price]) -> Iterator[tuple[str, str, int]]:
    """Yield each product into registers with every op that reads it as no part of its accumulation, and the
    iterations between the two. A product whose accumulator only products touch is none of them.
    """
    ops = {op.name: op for op in graph.ops}
    for op in graph.ops:
        if _drained(op, prices):
            yield from ((op.name, head, distance) for head, distance in _readers(graph, ops, prices, op))


def is_product(op: Op, prices: Mapping[str, Price]) -> bool:
    """Return whether an op is one of the tensor core."""
    return prices[op.name].accumulates or op.kind == "mma"


def _drained(op: Op, prices: Mapping[str, Price]) -> bool:
    """Return whether software has to wait for an op's result in registers."""
    in_registers = op.result is not None and op.result.space == "registers"
    return in_registers and is_product(op, prices) and prices[op.name].asynchronous


def _readers(
    graph: DepGraph, ops: Mapping[str, Op], prices: Mapping[str, Price], product: Op
) -> dict[tuple[str, int], None]:
    """Return the readers of a product and of those that add to its accumulator after it."""
    found: dict[tuple[str, int], None] = {}
    seen = {product.name}
    waiting = [(product.name, 0)]
    for name, passed in waiting:
        for edge in graph.edges:
            if edge.tail != name or edge.kind != "data":
                continue
            if not _adds(ops[name], ops[edge.head], prices):
                found[edge.head, passed + edge.distance] = None
            elif edge.head not in seen:
                seen.add(edge.head)
                waiting.append((edge.head, passed + edge.distance))
    return found


def _adds(tail: Op, head: Op, prices: Mapping[str, Price]) -> bool:
    """Return whether ``head`` is a product that adds to the accumulator of ``tail``."""
    if tail.result is None or head.result is None or not is_product(head, prices):
        return False
    return tail.result.alias is not None and tail.result.alias == head.result.alias
