"""The order of a group's steps in one period, and the local stage of each.

A group executes its steps in the order of schedule time. Where its period is cut is free: of the cuts at which
fewest products that software waits for are in flight (rules of relation ``pause``), one that needs the fewest local
stages is taken.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from twillgpu.costs.record import LegalPair
from twillgpu.lower.orders import Order
from twillgpu.lower.steps import Step

_ASYNCHRONOUS_LAST = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Local stage of a step, and its position among the steps of its group in one period."""

    stage: int
    position: tuple[int, int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrangement:
    """The place of every step, by name, and the number of local stages of each group."""

    places: dict[str, Place]
    stages: tuple[int, ...]

    def behind(self, first: str, second: str) -> int:
        """Return the smallest d such that ``first`` of iteration i comes before ``second`` of i + d; same group."""
        one, two = self.places[first], self.places[second]
        return one.stage - two.stage + (0 if one.position < two.position else 1)


def arrange(
    steps: Iterable[Step],
    orders: Iterable[Order],
    interval: int,
    groups: int,
    leads: dict[str, int],
    pauses: Iterable[LegalPair] = (),
) -> Arrangement:
    """Return the order of the steps of all groups.

    Args:
        steps: all steps.
        orders: what must be before what; only ties are decided by it.
        interval: cycles of a period.
        groups: number of groups.
        leads: for steps whose last so many iterations must be in the epilogue.
        pauses: products, and who ends their flight: a period is best cut where none is in flight.
    """
    listed, wanted, flights = tuple(steps), tuple(orders), tuple(pauses)
    places: dict[str, Place] = {}
    stages: list[int] = []
    for group in range(groups):
        mine = tuple(step for step in listed if step.group == group)
        found = _arranged(mine, wanted, interval, flights)
        least = min((place.stage for place in found.values()), default=0)
        lead = max((leads.get(name, 0) - place.stage + least for name, place in found.items()), default=0)
        shift = max(0, lead) - least
        places |= {name: Place(stage=place.stage + shift, position=place.position) for name, place in found.items()}
        stages.append(1 + max((place.stage + shift for place in found.values()), default=0))
    return Arrangement(places=places, stages=tuple(stages))


def _arranged(
    steps: tuple[Step, ...], orders: tuple[Order, ...], interval: int, pauses: tuple[LegalPair, ...]
) -> dict[str, Place]:
    cuts = sorted({step.time % interval for step in steps if step.base == step.name})
    options = [_cut_at(cut, steps, orders, interval) for cut in cuts]
    return min(options, key=lambda places: (_unsettled(places, steps, pauses), *_length(places)), default={})


def _unsettled(places: dict[str, Place], steps: tuple[Step, ...], pauses: tuple[LegalPair, ...]) -> int:
    """Return how many products that software waits for are in flight where the period is cut; none where the first
    wait after the cut leaves nothing in flight, whatever was issued.
    """
    ends = _ends(places, steps, pauses)
    flying = sum(stage > places[name].stage for name, (stage, _) in ends.items())
    drains = {step.op: places[step.name].position for step in steps if step.kind == "drain"}
    waits = {name: min(position, drains.get(name, position)) for name, (_, position) in ends.items()}
    waits = {**drains, **waits}
    issues = {step.name: places[step.name].position for step in steps if step.engine == "wgmma"}
    if not flying or not waits or not issues:
        return flying
    first = min(waits.values())
    newest = max(issues, key=lambda name: (issues[name] < first, issues[name]))
    return 0 if waits.get(newest) == first else flying


def _ends(
    places: dict[str, Place], steps: tuple[Step, ...], pauses: tuple[LegalPair, ...]
) -> dict[str, tuple[int, tuple[int, int, str]]]:
    """Return, for each product that software waits for, stage and position of what waits first in its group."""
    handed = {step.op: step.name for step in steps if step.kind == "put"}
    ends: dict[str, tuple[int, tuple[int, int, str]]] = {}
    for pair in pauses:
        reader, distance = (pair.second, pair.distance) if pair.second in places else (handed.get(pair.first, ""), 0)
        if pair.first in places and reader in places:
            end = (places[reader].stage + distance, places[reader].position)
            ends[pair.first] = min(ends.get(pair.first, end), end)
    return ends


def _length(places: dict[str, Place]) -> tuple[int, int]:
    stages = [place.stage for place in places.values()]
    return max(stages) - min(stages), sum(stages) - len(stages) * min(stages)


def _cut_at(cut: int, steps: tuple[Step, ...], orders: tuple[Order, ...], interval: int) -> dict[str, Place]:
    bases = [step for step in steps if step.base == step.name]
    slots: dict[int, list[Step]] = {}
    for step in bases:
        slots.setdefault((step.time - cut) % interval, []).append(step)
    ranked = [step for slot in sorted(slots) for step in _tied(slots[slot], steps, orders, interval)]
    rank = {step.name: at for at, step in enumerate(ranked)}
    stage = {step.name: (step.time - cut) // interval for step in bases}
    return {
        step.name: Place(stage=stage[step.base] + step.shift, position=(rank[step.base], step.place, step.name))
        for step in steps
    }


def _tied(tied: list[Step], steps: tuple[Step, ...], orders: tuple[Order, ...], interval: int) -> list[Step]:
    """Order steps of one slot: what another needs first; then releases, software, asynchronous issue, and last what
    waits for other groups.
    """
    if len(tied) == 1:
        return tied
    mine = {step.name for step in steps}
    waiting = {order.head for order in orders if order.tail not in mine}
    times = {step.name: step.time for step in tied}
    before = {
        (order.tail, order.head)
        for order in orders
        if order.tail in times
        and order.head in times
        and order.tail != order.head
        and times[order.tail] == times[order.head] + order.distance * interval
    }
    result: list[Step] = []
    left = list(tied)
    while left:
        names = {step.name for step in left}
        free = [step for step in left if not any(head == step.name and tail in names for tail, head in before)]
        chosen = min(free or left, key=lambda step: _rank(step, waiting))
        result.append(chosen)
        left.remove(chosen)
    return result


def _rank(step: Step, waiting: set[str]) -> int:
    if step.kind == "drain":
        return -1
    return (_ASYNCHRONOUS_LAST if not step.synchronous else 0) + (1 if step.name in waiting else 0)
