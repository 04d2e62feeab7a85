"""TMEM operands kept in the columns of the product that they are made from (P over S of attention).

Many hand-written kernels fix this: software reads a product S of the tensor core, makes P from it, and writes P into
the first columns of S, where the next product reads it. S of the next iteration may then only be written when P has
been read. The search needs no such rule: it shares columns wherever lifetimes allow. What the rule costs is shown
beside the optimum.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

from twillgpu.costs.bounds import bounds
from twillgpu.costs.edges import completion_hop
from twillgpu.costs.pricing import whole
from twillgpu.costs.record import Bounds, PricedEdge, PricedOp, Problem

MMA = "mma"
"""Kind of tensor core ops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """The value of op ``value`` in the columns of the product of op ``product``."""

    value: str
    product: str

    @property
    def alias(self) -> str:
        """Name of the storage of both."""
        return f"{self.product}+{self.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedColumns:
    """What keeping operands in the columns of their products would mean: which, and lower bounds on the interval."""

    shared: tuple[Shared, ...]
    bounds: Bounds


def fixed_columns(problem: Problem) -> FixedColumns | None:
    """Return the bounds of ``problem`` with fixed columns, ``None`` where there is no operand to fix, or it is fixed.

    The bounds hold for every schedule of the changed problem; the recurrence bound names the circuit.
    """
    shared = shareable(problem)
    return FixedColumns(shared=shared, bounds=bounds(_fixed(problem, shared))) if shared else None


def with_fixed_columns(problem: Problem) -> Problem:
    """Return ``problem`` with every operand that can be in the columns of its product, one copy of both.

    Operand P and product S are one storage. Whoever reads S has read it when P is written (an ``anti`` edge where the
    dependences do not say so), and whoever reads P has read it when S of the next iteration is written: an ``anti``
    edge of distance 1. The next writer of the columns is a tensor core op: no barrier hop tells software that P's
    slot is free, and so the read time of P is without it.
    """
    return _fixed(problem, shareable(problem))


def fixed_in(problem: Problem) -> tuple[Shared, ...]:
    """Return what ``with_fixed_columns`` has fixed in ``problem``."""
    aliases = {op.value.alias for op in problem.ops if op.value is not None}
    tensor = [op.name for op in problem.ops if op.kind == MMA]
    pairs = (Shared(value=op.name, product=product) for op in problem.ops for product in tensor)
    return tuple(pair for pair in pairs if pair.alias in aliases)


def shareable(problem: Problem) -> tuple[Shared, ...]:
    """Return the TMEM values stored by software for a tensor core op, each with the nearest product that it is made
    from in the same iteration; a product takes one value, and one that is not larger.
    """
    view = _View(problem)
    taken: set[str] = set()
    found = []
    for op in problem.ops:
        product = view.product_of(op) if view.is_operand(op) else None
        if product is not None and product.name not in taken and view.fits(op, product):
            taken.add(product.name)
            found.append(Shared(value=op.name, product=product.name))
    return tuple(found)


class _View:
    """The dependences of a problem, by op."""

    def __init__(self, problem: Problem) -> None:
        self.ops = {op.name: op for op in problem.ops}
        self.into: dict[str, list[PricedEdge]] = defaultdict(list)
        self.out_of: dict[str, list[PricedEdge]] = defaultdict(list)
        for edge in problem.edges:
            self.into[edge.head].append(edge)
            self.out_of[edge.tail].append(edge)

    def is_operand(self, op: PricedOp) -> bool:
        """Return whether software stores the value in TMEM of its own, for tensor core ops of this iteration."""
        readers = self.readers(op.name)
        return (
            op.kind != MMA
            and _has_own_columns(op)
            and any(self.ops[edge.head].kind == MMA for edge in readers)
            and all(edge.distance == 0 for edge in readers)
        )

    def product_of(self, op: PricedOp) -> PricedOp | None:
        """Return the nearest product in TMEM that software reads on the way to ``op``, the first in program order."""
        level, seen = {op.name}, {op.name}
        while level:
            before = {edge.tail for name in level for edge in self.into[name] if _flows(edge)} - seen
            products = [self.ops[name] for name in self.ops if name in before and self.ops[name].kind == MMA]
            found = next((product for product in products if _space(product) == "tmem"), None)
            if found is not None:
                return found
            level = {name for name in before if self.ops[name].kind != MMA}
            seen |= before
        return None

    def fits(self, op: PricedOp, product: PricedOp) -> bool:
        """Return whether the product's columns can take the value: large enough, and read before it is written, or by
        the op that writes it, in place.
        """
        after = self.reached_from(op.name) - {op.name}
        return (
            _has_own_columns(product)
            and _bytes(op) <= _bytes(product)
            and all(edge.distance == 0 and edge.head not in after for edge in self.readers(product.name))
        )

    def readers(self, name: str) -> list[PricedEdge]:
        """Return the data edges that leave an op."""
        return [edge for edge in self.out_of[name] if edge.kind == "data"]

    def reached_from(self, name: str) -> set[str]:
        """Return the op and whatever waits for it within the iteration."""
        reached, waiting = {name}, [name]
        while waiting:
            following = {edge.head for edge in self.out_of[waiting.pop()] if edge.distance == 0} - reached
            reached |= following
            waiting += following
        return reached

    def has_read(self, edge: PricedEdge, name: str) -> bool:
        """Return whether the dependences alone have the head of ``edge`` read its value before op ``name`` starts."""
        return any(
            onward.distance == 0
            and onward.latency_cycles >= self.read(edge)
            and name in self.reached_from(onward.head)
            for onward in self.out_of[edge.head]
        )

    def read(self, edge: PricedEdge) -> int:
        """Return for how long the head of a data edge reads: without the hop that says so to software."""
        return min(edge.read_cycles, self.ops[edge.head].real_latency_cycles)


def _fixed(problem: Problem, shared: tuple[Shared, ...]) -> Problem:
    view = _View(problem)
    alias = {name: pair.alias for pair in shared for name in (pair.value, pair.product)}
    added = tuple(edge for pair in shared for edge in _orders(pair, view, whole(problem.handoff.barrier_cycles)))
    return replace(
        problem,
        ops=tuple(_with_alias(op, alias[op.name]) if op.name in alias else op for op in problem.ops),
        edges=(
            *(
                replace(edge, read_cycles=view.read(edge)) if edge.tail in alias and edge.kind == "data" else edge
                for edge in problem.edges
            ),
            *added,
        ),
    )


def _orders(pair: Shared, view: _View, barrier: int) -> Iterator[PricedEdge]:
    """Yield the ``anti`` edges: from readers of the product to the value, and from those of the value to the product
    of the next iteration.
    """
    for edge in view.readers(pair.product):
        if edge.head != pair.value and not view.has_read(edge, pair.value):
            yield _anti(edge, pair.value, 0, view, barrier)
    for edge in view.readers(pair.value):
        yield _anti(edge, pair.product, 1, view, barrier)


def _anti(read: PricedEdge, head: str, distance: int, view: _View, barrier: int) -> PricedEdge:
    """Return the edge from the reader of ``read`` to the op ``head`` that overwrites what it reads."""
    return PricedEdge(
        tail=read.head,
        head=head,
        latency_cycles=view.read(read),
        distance=distance,
        kind="anti",
        blocking=False,
        handoff_cycles=completion_hop(view.ops[read.head], barrier),
        read_cycles=0,
    )


def _with_alias(op: PricedOp, alias: str) -> PricedOp:
    return op if op.value is None else replace(op, value=replace(op.value, alias=alias))


def _flows(edge: PricedEdge) -> bool:
    return edge.kind == "data" and edge.distance == 0


def _space(op: PricedOp) -> str:
    return op.value.space if op.value is not None else ""


def _bytes(op: PricedOp) -> int:
    return op.value.bytes if op.value is not None else 0


def _has_own_columns(op: PricedOp) -> bool:
    """Return whether the value is in TMEM, and no other value shares its storage."""
    return op.value is not None and op.value.space == "tmem" and op.value.alias is None
