"""The busiest unit and the slowest circuit, by source line."""

from __future__ import annotations

from collections import defaultdict

from twillgpu.costs.circuits import arcs, worst_circuit
from twillgpu.costs.record import Problem
from twillgpu.explain.record import CircuitStep, CriticalCircuit, CriticalUnit, Share


def critical_unit(problem: Problem) -> CriticalUnit | None:
    """Return the unit with the largest bound, ``None`` where no op uses any."""
    found = [_unit(problem, unit.name, unit.capacity) for unit in problem.units]
    busy = [unit for unit in found if unit.shares]
    return max(busy, key=lambda unit: unit.bound_cycles, default=None)


def _unit(problem: Problem, name: str, capacity: int) -> CriticalUnit:
    held: dict[str, int] = defaultdict(int)
    ops: dict[str, list[str]] = defaultdict(list)
    for op in problem.ops:
        cycles = sum(use.cycles * use.amount for use in op.uses if use.unit == name)
        if cycles:
            place = op.source or op.name
            held[place] += cycles
            ops[place].append(op.name)
    shares = (Share(source=place, ops=tuple(ops[place]), cycles=held[place]) for place in held)
    return CriticalUnit(
        unit=name,
        capacity=capacity,
        bound_cycles=-(-sum(held.values()) // capacity),
        shares=tuple(sorted(shares, key=lambda share: -share.cycles)),
    )


def critical_circuit(problem: Problem) -> CriticalCircuit | None:
    """Return the circuit of largest ratio of latency to distance, ``None`` where none takes time."""
    circuit = worst_circuit(problem)
    if circuit is None or circuit.latency_cycles <= 0:
        return None
    sources = {op.name: op.source for op in problem.ops}
    index = {op.name: number for number, op in enumerate(problem.ops)}
    known = arcs(problem)
    steps = []
    for tail, head in zip(circuit.ops, (*circuit.ops[1:], circuit.ops[0]), strict=True):
        between = [arc.latency_cycles for arc in known if (arc.tail, arc.head) == (index[tail], index[head])]
        steps.append(CircuitStep(op=tail, source=sources[tail], latency_cycles=max(between)))
    return CriticalCircuit(
        steps=tuple(steps),
        latency_cycles=circuit.latency_cycles,
        distance=circuit.distance,
        bound_cycles=-(-circuit.latency_cycles // circuit.distance),
    )
