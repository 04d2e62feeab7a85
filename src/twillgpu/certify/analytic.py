"""Lower bounds derived anew from the problem: why no interval below a bound can do, without ``costs/bounds.py``."""

from __future__ import annotations

from twillgpu.certify.storage import apart_pairs, least_latency, storage_is_short
from twillgpu.costs.record import PricedEdge, Problem

Why = str
"""An inequality in numbers; empty where it does not hold."""


def derive(problem: Problem, name: str, cycles: int) -> Why:
    """Return why every interval below ``cycles`` is too small for the resource ``name``, or an empty text.

    Units and circuits: the inequality that fails at ``cycles - 1`` fails at every smaller interval. Memories and
    registers are looked at interval by interval.
    """
    if cycles <= 1:
        return "an interval is at least 1 cycle"
    if any(unit.name == name for unit in problem.units):
        return _unit(problem, name, cycles - 1)
    return _recurrence(problem, cycles - 1) if name == "recurrence" else storage_is_short(problem, name, cycles)


def _unit(problem: Problem, name: str, interval: int) -> Why:
    """One iteration holds the unit for more than capacity x interval."""
    capacity = next(unit.capacity for unit in problem.units if unit.name == name)
    held = sum(use.cycles * use.amount for op in problem.ops for use in op.uses if use.unit == name)
    if held <= capacity * interval:
        return ""
    return f"{name} is held for {held} unit-cycles, an interval of {interval} has {capacity} x {interval}"


def _recurrence(problem: Problem, interval: int) -> Why:
    """The latencies around a circuit exceed distance x interval; the circuit is found and added up again."""
    circuit = _positive_circuit(problem, interval)
    apart = apart_pairs(problem)
    latency = sum(least_latency(edge, apart) for edge in circuit)
    distance = sum(edge.distance for edge in circuit)
    if not circuit or latency <= distance * interval:
        return ""
    path = " -> ".join(edge.tail for edge in circuit)
    return f"{path} takes {latency} cycles over {distance} iterations, {distance} x {interval} are too few"


def _positive_circuit(problem: Problem, interval: int) -> list[PricedEdge]:
    """Return a circuit of positive length by Bellman and Ford, empty if there is none."""
    apart = apart_pairs(problem)
    length = {op.name: 0 for op in problem.ops}
    reached: dict[str, PricedEdge] = {}
    changed = ""
    for _ in range(len(length) + 1):
        changed = ""
        for edge in problem.edges:
            found = length[edge.tail] + least_latency(edge, apart) - edge.distance * interval
            if found > length[edge.head]:
                length[edge.head], reached[edge.head], changed = found, edge, edge.head
        if not changed:
            return []
    for _ in length:
        changed = reached[changed].tail
    circuit = [reached[changed]]
    while circuit[-1].tail != changed:
        circuit.append(reached[circuit[-1].tail])
    return circuit[::-1]
