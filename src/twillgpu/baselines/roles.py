"""Who does what in a loop body: loads, tensor ops that one thread issues, parts that do the same on other rows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from twillgpu.costs.record import PricedOp, Problem

INDEXED = re.compile(r"(.+)_(\d+)")
"""A name with the index that cutting a tile into sub-tiles appends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """Every op of the loop, once; each tuple in program order.

    Attributes:
        loads: ops of variable latency.
        products: tensor ops with results in TMEM: one thread issues them, apart from those who read the results.
        parts: the other ops, by sub-tile; where there are none, by connected components of register values.
    """

    loads: tuple[str, ...]
    products: tuple[str, ...]
    parts: tuple[tuple[str, ...], ...]


def roles(problem: Problem) -> Roles:
    """Return the roles of the ops of ``problem``."""
    loads = tuple(op.name for op in problem.ops if op.variable_latency)
    products = tuple(op.name for op in problem.ops if _is_product(op))
    rest = [op.name for op in problem.ops if op.name not in loads and op.name not in products]
    return Roles(loads=loads, products=products, parts=_by_index(problem, rest) or _components(problem, rest))


def program_order(problem: Problem) -> tuple[str, ...]:
    """Return the ops in program order, save that an op whose result takes fewer registers than an operand comes
    right after the operand's other readers: no compiler keeps a tile in its wide form for longer than it must.
    """
    ops = {op.name: op for op in problem.ops}
    before: dict[str, set[str]] = {name: set() for name in ops}
    readers: dict[str, set[str]] = {name: set() for name in ops}
    for edge in problem.edges:
        if edge.distance == 0 and edge.tail != edge.head:
            before[edge.head].add(edge.tail)
            readers[edge.tail].add(edge.head)
    order: list[str] = []
    for name, op in ops.items():
        wide = [tail for tail in before[name] if _registers(ops[tail]) > _registers(op) > 0]
        waits = before[name].union(*(readers[tail] for tail in wide))
        ready = 1 + max((order.index(other) for other in waits if other in order), default=-1)
        order.insert(ready if wide else len(order), name)
    return tuple(order)


def part_of(problem: Problem, parts: tuple[tuple[str, ...], ...], name: str) -> int:
    """Return the part that an op outside of all parts exchanges data with: the first one in program order."""
    neighbours = {edge.head for edge in problem.edges if edge.tail == name and edge.kind == "data"}
    neighbours |= {edge.tail for edge in problem.edges if edge.head == name and edge.kind == "data"}
    return next((index for index, part in enumerate(parts) if neighbours.intersection(part)), 0)


def _registers(op: PricedOp) -> int:
    return op.value.registers_per_thread if op.value is not None else 0


def _is_product(op: PricedOp) -> bool:
    return op.kind == "mma" and not op.variable_latency and op.value is not None and op.value.space == "tmem"


def _by_index(problem: Problem, names: list[str]) -> tuple[tuple[str, ...], ...]:
    """Return the sub-tiles, or nothing where names carry no indices 0, 1, ...; shared ops go to a neighbour's."""
    indices: dict[str, list[int]] = {}
    for name in names:
        match = INDEXED.fullmatch(name)
        if match:
            indices.setdefault(match[1], []).append(int(match[2]))
    count = max((len(found) for found in indices.values()), default=0)
    complete = [base for base, found in indices.items() if sorted(found) == list(range(count))]
    if count < 2:
        return ()
    parts: list[list[str]] = [[f"{base}_{index}" for base in complete] for index in range(count)]
    indexed = {name for part in parts for name in part}
    for name in [name for name in names if name not in indexed]:
        parts[part_of(problem, tuple(map(tuple, parts)), name)].append(name)
    return tuple(_in_program_order(problem, part) for part in parts)


def _components(problem: Problem, names: list[str]) -> tuple[tuple[str, ...], ...]:
    """Return the connected components of register values and of pairs that must share a group."""
    ops = {op.name: op for op in problem.ops}
    links = [(pair.first, pair.second) for pair in problem.legality if pair.relation == "together"]
    for edge in problem.edges:
        value = ops[edge.tail].value
        if edge.kind == "data" and value is not None and value.space == "registers":
            links.append((edge.tail, edge.head))
    component = {name: {name} for name in names}
    for first, second in links:
        if first in component and second in component:
            union = component[first] | component[second]
            component |= dict.fromkeys(union, union)
    found = dict.fromkeys(_in_program_order(problem, component[name]) for name in names)
    return tuple(found)


def _in_program_order(problem: Problem, names: Iterable[str]) -> tuple[str, ...]:
    wanted = set(names)
    return tuple(op.name for op in problem.ops if op.name in wanted)
