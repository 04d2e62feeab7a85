"""What the target cannot express, as named pairs of ops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from twillgpu.costs.pauses import is_product, wgmma_pause
from twillgpu.costs.pricing import Price
from twillgpu.costs.record import LegalityRelation, LegalPair
from twillgpu.errors import InputError, nearest
from twillgpu.graph.record import DepGraph, Edge, Op

_Pairs = Iterator[tuple[str, str, int]]


def legal_pairs(
    graph: DepGraph, prices: Mapping[str, Price], rules: Iterable[str], lift: Iterable[str]
) -> tuple[LegalPair, ...]:
    """Return the pairs that the graph lists or, where it has no list, those of every rule of the machine, each once;
    in both cases without those of the rules that are lifted.

    Raises:
        InputError: a rule to lift that does not exist, with the nearest name.
    """
    listed = graph.legality or ()
    known = {*LEGALITY, *(pair.rule for pair in listed)}
    for name in lift:
        if name not in known:
            raise InputError("lift", f"no legality rule {name!r}", nearest(name, sorted(known)))
    if graph.legality is not None:
        return tuple(pair for pair in listed if pair.rule not in lift)
    return _derived(graph, prices, (rule for rule in rules if rule not in lift))


def _derived(graph: DepGraph, prices: Mapping[str, Price], rules: Iterable[str]) -> tuple[LegalPair, ...]:
    found: dict[tuple[str, str, str, int], LegalPair] = {}
    for rule in rules:
        relation, pairs = LEGALITY[rule]
        for first, second, distance in pairs(graph, prices):
            pair = LegalPair(rule=rule, relation=relation, first=first, second=second, distance=distance)
            low, high = (first, second) if relation == "pause" else sorted((first, second))
            found.setdefault((rule, low, high, distance), pair)
    return tuple(found.values())


def _wgmma_accumulator(graph: DepGraph, prices: Mapping[str, Price]) -> _Pairs:
    """Tensor core ops whose register results share one storage: wgmma adds to registers of its own warps."""
    first: dict[str, str] = {}
    for op in graph.ops:
        alias = _alias(op)
        if alias is None or not is_product(op, prices):
            continue
        if alias in first:
            yield first[alias], op.name, 0
        first.setdefault(alias, op.name)


def _alias(op: Op) -> str | None:
    return op.result.alias if op.result is not None and op.result.space == "registers" else None


def _carried_registers(graph: DepGraph, _prices: Mapping[str, Price]) -> _Pairs:
    """Both ends of a data edge that carries a register value into a later iteration."""
    ops = {op.name: op for op in graph.ops}
    for edge in graph.edges:
        result = ops[edge.tail].result
        carried = edge.kind == "data" and edge.distance > 0 and edge.tail != edge.head
        if carried and result is not None and result.space == "registers":
            yield edge.tail, edge.head, 0


def _tmem_warps(_graph: DepGraph, _prices: Mapping[str, Price]) -> _Pairs:
    """Nothing to pair: TMEM loads and stores need whole warpgroups by their ``warps``."""
    return iter(())


def _mma_reader(graph: DepGraph, prices: Mapping[str, Price]) -> _Pairs:
    """A tensor core op that one thread issues, and whatever else than a tensor core op reads its result in TMEM:
    four warps that wait for a result cannot have one of their threads issue the next product.
    """
    ops = {op.name: op for op in graph.ops}
    for edge in graph.edges:
        if _software_reads(edge, ops, prices):
            yield edge.tail, edge.head, 0


def _software_reads(edge: Edge, ops: Mapping[str, Op], prices: Mapping[str, Price]) -> bool:
    tail, head = ops[edge.tail], ops[edge.head]
    in_tmem = tail.result is not None and tail.result.space == "tmem"
    return edge.kind == "data" and in_tmem and is_product(tail, prices) and not is_product(head, prices)


LEGALITY: dict[str, tuple[LegalityRelation, Callable[[DepGraph, Mapping[str, Price]], _Pairs]]] = {
    "wgmma_accumulator": ("together", _wgmma_accumulator),
    "wgmma_pause": ("pause", wgmma_pause),
    "carried_registers": ("together", _carried_registers),
    "tmem_warps": ("together", _tmem_warps),
    "mma_reader": ("apart", _mma_reader),
}
"""Every legality sub-rule: its relation and the function that lists its pairs."""
