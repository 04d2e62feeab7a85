"""Which steps must be complete before which others start: dependences and the reuse of storage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import lcm
from typing import Literal

from twillgpu.lower.flow import Needs, in_memory
from twillgpu.lower.record import Ring
from twillgpu.lower.sheet import Sheet
from twillgpu.lower.steps import Step
from twillgpu.lower.storage import Touch, pinned

OrderKind = Literal["data", "anti", "output", "memory", "order", "token", "reuse", "credit", "issue"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """``tail`` of iteration i is complete before ``head`` of iteration i + ``distance`` starts.

    ``in_order``: two ops of one engine need no more than to be given to it in this order.
    """

    tail: str
    head: str
    distance: int
    kind: OrderKind
    in_order: bool = True

    def __str__(self) -> str:
        return f"{self.tail} -> {self.head} ({self.kind}, {self.distance})"


def dependences(sheet: Sheet, needs: tuple[Needs, ...], steps: dict[str, Step]) -> Iterator[Order]:
    """Yield the orders that the graph's edges ask for; values in registers go through their hand-overs."""
    for edge in sheet.edges:
        value = sheet.priced[edge.tail].value
        crosses = sheet.group[edge.tail] != sheet.group[edge.head]
        imported = any(maker == edge.tail for maker, _ in needs[sheet.group[edge.head]].imports)
        if crosses and edge.kind == "data" and imported and value is not None and not in_memory(sheet, edge.tail):
            continue
        observed = edge.kind == "data" and edge.blocking and sheet.engine(edge.head) == "wgmma"
        yield Order(tail=edge.tail, head=edge.head, distance=edge.distance, kind=edge.kind, in_order=not observed)
    for step in steps.values():
        if step.kind == "put":
            yield Order(tail=step.op, head=step.name, distance=0, kind="data")
            for get in steps.values():
                if get.kind == "get" and get.ring == step.ring:
                    yield Order(tail=step.name, head=get.name, distance=0, kind="data")


def register_reads(sheet: Sheet, steps: dict[str, Step]) -> Iterator[Order]:
    """Yield the orders that keep registers which a tensor core op reads until they have been read."""
    for edge in sheet.edges:
        if edge.kind != "data" or sheet.engine(edge.head) != "wgmma" or in_memory(sheet, edge.tail):
            continue
        makers = [edge.tail] if sheet.group[edge.tail] == sheet.group[edge.head] else []
        makers += [
            step.name
            for step in steps.values()
            if step.kind == "get" and step.op == edge.tail and step.group == sheet.group[edge.head]
        ]
        for maker in makers:
            start = steps[maker].time
            end = sheet.at(edge.head, edge.distance) + edge.read_cycles
            ahead = -(-(end - start) // sheet.interval)
            if steps[maker].engine != "wgmma":
                yield Order(tail=edge.head, head=maker, distance=ahead - edge.distance, kind="anti")


def reuses(
    sheet: Sheet, rings: Iterable[Ring], touches: tuple[Touch, ...], steps: dict[str, Step]
) -> Iterator[Order]:
    """Yield the orders that keep what is in a copy until it has been read, and whole until it is written."""
    listed = tuple(rings)
    for ring in listed:
        mine = tuple(touch for touch in touches if touch.ring == ring.name)
        yield from (_in_time(sheet, mine, steps) if pinned(sheet, ring.name) else _in_ring(sheet, ring, mine, steps))
    for first in listed:
        for second in listed:
            if first.name != second.name and first.memory == second.memory:
                yield from _tenants(sheet, first, second, touches, steps)


def _in_time(sheet: Sheet, touches: tuple[Touch, ...], steps: dict[str, Step]) -> Iterator[Order]:
    """Order everything that touches one storage for all iterations by time."""
    names = list(steps)
    for one in touches:
        for two in touches:
            if one.writes or two.writes:
                later = steps[one.step].time - steps[two.step].time
                distance = -(-later // sheet.interval)
                tie = later % sheet.interval == 0 and names.index(one.step) >= names.index(two.step)
                yield Order(tail=one.step, head=two.step, distance=distance + tie, kind="reuse")


def _in_ring(sheet: Sheet, ring: Ring, touches: tuple[Touch, ...], steps: dict[str, Step]) -> Iterator[Order]:
    for one in touches:
        for two in touches:
            if not (one.writes or two.writes):
                continue
            apart = two.distance - one.distance
            yield Order(tail=one.step, head=two.step, distance=ring.depth + apart, kind="reuse")
            first = steps[one.step].time + one.distance * sheet.interval
            second = steps[two.step].time + two.distance * sheet.interval
            if first < second:
                yield Order(tail=one.step, head=two.step, distance=apart, kind="reuse")


def _tenants(
    sheet: Sheet, first: Ring, second: Ring, touches: tuple[Touch, ...], steps: dict[str, Step]
) -> Iterator[Order]:
    """Order every use of an instance of ``first`` before the next write of an instance of ``second`` in its place."""
    ones = [touch for touch in touches if touch.ring == first.name]
    twos = [touch for touch in touches if touch.ring == second.name]
    if not ones or not twos:
        return
    end = max(steps[one.step].time + one.distance * sheet.interval for one in ones)
    start = min(steps[two.step].time + two.distance * sheet.interval for two in twos)
    ahead = _next_conflict(first, second, -((start - end) // sheet.interval))
    if ahead is None:
        return
    for one in ones:
        for two in twos:
            if one.writes or two.writes:
                yield Order(tail=one.step, head=two.step, distance=ahead + two.distance - one.distance, kind="reuse")


def _next_conflict(first: Ring, second: Ring, least: int) -> int | None:
    """Return the smallest offset of at least ``least`` at which instances of the two rings share bytes."""
    for ahead in range(least, least + lcm(first.depth, second.depth)):
        if any(_overlap(first, number, second, number + ahead) for number in range(lcm(first.depth, second.depth))):
            return ahead
    return None


def _overlap(first: Ring, one: int, second: Ring, two: int) -> bool:
    low = first.offset_bytes + one % first.depth * first.bytes
    other = second.offset_bytes + two % second.depth * second.bytes
    return low < other + second.bytes and other < low + first.bytes
