"""Which slot to search with, which stages to allow, and up to which interval to look."""

from __future__ import annotations

from twillgpu.costs.record import Problem, Scale
from twillgpu.costs.scale import slots

EXACT_SLOTS = 48
"""Up to so many cycles an interval is searched cycle by cycle."""

PLAIN_SLOTS = 128
"""The same where all ops are in one group and registers are unlimited: models are small, latencies short."""


SLOT_PRICE = 0.0015
"""What one more slot per iteration is worth, as relative growth of the unit loads by rounding: models grow with the
slots, so a slightly worse rounding with fewer slots is faster."""

LATENCY_PRICE = 0.03
"""What the relative growth of all latencies by rounding is worth in the same way."""


def slot_cycles(problem: Problem, lower: int, resolution: int) -> int:
    """Return the cycles of a slot so that ``lower`` is about ``resolution`` slots, and rounding costs little.

    Slots in which the fullest unit loses nothing come first: what fills a unit is hardest to place.
    """
    plain = problem.groups.max == 1 and problem.registers is None
    if lower <= max(PLAIN_SLOTS if plain else EXACT_SLOTS, resolution):
        return 1
    wanted = lower / resolution
    candidates = range(max(1, round(wanted * 0.8)), round(wanted * 1.2) + 1)

    def price(slot: int) -> tuple[bool, float, int]:
        heaviest = _heaviest(problem, slot)
        latency = LATENCY_PRICE * _latency_growth(problem, slot)
        return heaviest > lower, heaviest / lower + latency + SLOT_PRICE * lower / slot, -slot

    return min(candidates, key=price)


def _latency_growth(problem: Problem, slot: int) -> float:
    scale = Scale(slot_cycles=slot, rounding="up")
    rounded = sum(slots(edge.latency_cycles, scale) for edge in problem.edges) * slot
    return rounded / max(1, sum(edge.latency_cycles for edge in problem.edges))


def _heaviest(problem: Problem, slot: int) -> int:
    """Return the largest load of a unit of capacity 1, in cycles, with every use rounded up to slots."""
    scale = Scale(slot_cycles=slot, rounding="up")
    loads = {unit.name: 0 for unit in problem.units if unit.capacity == 1}
    for op in problem.ops:
        for use in op.uses:
            if use.unit in loads:
                loads[use.unit] += slots(use.cycles, scale) * slot
    return max(loads.values(), default=0)


MOST_STAGES = 32
"""Stages beyond which no search goes: the model grows with them, and no kernel has so many iterations in flight."""


def default_stages(problem: Problem, lower: int) -> int:
    """Return the stages allowed if the user names none: one more than the critical path needs, 3 at least."""
    return min(MOST_STAGES, max(3, -(-longest_path(problem) // max(1, lower)) + 1))


def longest_path(problem: Problem) -> int:
    """Return the length of one iteration's critical path in cycles, without hand-offs."""
    latency = {op.name: op.latency_cycles for op in problem.ops}
    start = dict.fromkeys(latency, 0)
    forward = [edge for edge in problem.edges if edge.distance == 0]
    for _ in problem.ops:
        for edge in forward:
            start[edge.head] = max(start[edge.head], start[edge.tail] + edge.latency_cycles)
    return max(start[name] + latency[name] for name in start)


def serial_interval(problem: Problem) -> int:
    """Return an interval beyond which nothing new becomes possible.

    At a larger one, some slot of the period is covered by no use, issue, latency, hand-off or read time: leaving
    it out keeps every rule, so a schedule at I is one at I - 1. So if there is any, there is one up to here.
    """
    total = 0
    for op in problem.ops:
        edges = [edge for edge in problem.edges if edge.tail == op.name]
        longest = max([0, *(edge.latency_cycles + edge.handoff_cycles for edge in edges)])
        ends = max([0, *(use.offset + use.cycles for use in op.uses)])
        held = max(op.latency_cycles, op.real_latency_cycles) + op.handoff_cycles
        total += max(1, longest, ends, op.issue_cycles, held)
    return total + sum(max(edge.read_cycles, 1) for edge in problem.edges)
