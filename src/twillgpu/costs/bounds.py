"""Lower bounds on the initiation interval, one function for each kind of resource, the binding one first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from twillgpu.costs.circuits import Circuit, worst_circuit
from twillgpu.costs.record import Bound, Bounds, Problem
from twillgpu.costs.storage import impossible_storages, storage_bounds, storages_of

SHOWN = 6
"""Ops named in a reason; the others are counted."""


def bounds(problem: Problem) -> Bounds:
    """Return every lower bound on the interval of ``problem``, largest first (ties by name).

    Bounds are integers in cycles and hold for every schedule that the rules allow. Each unit, the circuits of
    the graph, each memory and the registers give at most one; ``consistency`` (one cycle) is always there.

    Raises:
        InputError: a circuit of distance 0 with a positive latency: no schedule at any interval.
    """
    found = [*_unit_bounds(problem), *_recurrence(problem)]
    storages = tuple(storages_of(problem))
    found += storage_bounds(storages)
    found.append(Bound(name="consistency", cycles=1, reason="an interval is at least 1 cycle", ops=()))
    ordered = sorted(found, key=lambda bound: (-bound.cycles, bound.name))
    return Bounds(bounds=tuple(ordered), impossible=impossible_storages(storages))


def _unit_bounds(problem: Problem) -> Iterator[Bound]:
    """For each unit: ceil(sum of cycles x amount / capacity) (ResMII of modulo scheduling)."""
    held: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for op in problem.ops:
        for use in op.uses:
            held[use.unit][op.name] += use.cycles * use.amount
    for unit in problem.units:
        ops = {name: cycles for name, cycles in held[unit.name].items() if cycles}
        if ops:
            yield _unit_bound(unit.name, unit.capacity, ops)


def _unit_bound(name: str, capacity: int, ops: dict[str, int]) -> Bound:
    total = sum(ops.values())
    cycles = -(-total // capacity)
    terms = listed(ops)
    reason = f"{name}: {terms} = {_cycles(cycles)}"
    if capacity > 1:
        reason = f"{name}: ({terms}) / {capacity} shares = {_cycles(cycles)}"
    return Bound(name=name, cycles=cycles, reason=reason, ops=tuple(ops))


def listed(terms: dict[str, int]) -> str:
    """Return ``a 5 + b 3``, the largest first, those after the sixth counted."""
    ordered = sorted(terms.items(), key=lambda item: -item[1])
    text = " + ".join(f"{name} {amount}" for name, amount in ordered[:SHOWN])
    rest = [amount for _, amount in ordered[SHOWN:]]
    more = "1 more op" if len(rest) == 1 else f"{len(rest)} more ops"
    return f"{text} + {more} {sum(rest)}" if rest else text


def _recurrence(problem: Problem) -> Iterator[Bound]:
    """ceil(sum of latencies / sum of distances) of the worst circuit (RecMII of modulo scheduling)."""
    circuit = worst_circuit(problem)
    if circuit is not None and circuit.latency_cycles > 0:
        yield _circuit_bound(circuit)


def _circuit_bound(circuit: Circuit) -> Bound:
    cycles = -(-circuit.latency_cycles // circuit.distance)
    path = " -> ".join((*circuit.ops, circuit.ops[0]))
    reason = f"recurrence: {path}: {_cycles(circuit.latency_cycles)}"
    if circuit.distance > 1:
        reason += f" over {circuit.distance} iterations = {_cycles(cycles)}"
    return Bound(name="recurrence", cycles=cycles, reason=reason, ops=circuit.ops)


def _cycles(count: int) -> str:
    return "1 cycle" if count == 1 else f"{count} cycles"
