"""Which orders need a barrier or a drain, and the barriers: few waits, enough copies.

An order that program order, an engine's own order and other orders already keep needs nothing. What is left is kept
by a drain where one group gave the work to an engine that it can wait for itself, and by a barrier otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from twillgpu.errors import TwillError
from twillgpu.lower.arrange import Arrangement, arrange
from twillgpu.lower.orders import Order
from twillgpu.lower.reach import Event, Reach
from twillgpu.lower.sheet import Sheet
from twillgpu.lower.steps import DRAINED, Step, drain_after_next, drain_at_end, drain_before

_IN_ORDER = ("wgmma", "tcgen05", "cp_async", "tma_store")
_DROPPED_FIRST = ("credit", "reuse", "anti", "output")
"""Orders of these kinds are the first to be left to others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopBarrier:
    """A barrier with one phase per iteration.

    Attributes:
        name: unique name.
        signals: steps whose completion it counts.
        waits: orders that it keeps: their heads wait for the phase of ``distance`` iterations before.
        copies: mbarriers.
    """

    name: str
    signals: tuple[str, ...]
    waits: tuple[Order, ...]
    copies: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Synchronised:
    """The loop with everything that keeps its orders.

    Attributes:
        steps: all steps by name, drains included.
        arrangement: their places.
        drains: orders that a drain right before the head keeps.
        barriers: the barriers.
    """

    steps: dict[str, Step]
    arrangement: Arrangement
    drains: tuple[Order, ...]
    barriers: tuple[LoopBarrier, ...]


def synchronise(sheet: Sheet, steps: dict[str, Step], orders: Iterable[Order]) -> Synchronised:
    """Return barriers and drains that keep ``orders``."""
    known, wanted = _with_drains(sheet, steps, _tightest(orders))
    while True:
        arrangement = _arrangement(sheet, known, wanted)
        kept = _needed(known, arrangement, wanted)
        reach = Reach(known, arrangement)
        reach.keep(kept)
        drains = tuple(order for order in kept if _by_drain(known, order))
        merged = _merged(reach, known, tuple(order for order in kept if not _by_drain(known, order)))
        missing = tuple(_credits(sheet, known, reach, merged))
        if not missing:
            return Synchronised(
                steps=known,
                arrangement=arrangement,
                drains=drains,
                barriers=tuple(replace(one, copies=_copies(reach, known, one)) for one in merged),
            )
        wanted = _tightest((*wanted, *missing))


def _tightest(orders: Iterable[Order]) -> tuple[Order, ...]:
    """Return each pair of steps once, with its smallest distance: it implies the others."""
    best: dict[tuple[str, str, bool], Order] = {}
    for order in orders:
        key = (order.tail, order.head, order.in_order)
        if key not in best or order.distance < best[key].distance:
            best[key] = order
    return tuple(best.values())


def _arrangement(sheet: Sheet, steps: dict[str, Step], orders: tuple[Order, ...]) -> Arrangement:
    leads: dict[str, int] = {}
    for order in orders:
        if order.distance < 0:
            leads[order.head] = max(leads.get(order.head, 0), -order.distance)
    pauses = (pair for pair in sheet.problem.legality if pair.relation == "pause")
    return arrange(steps.values(), orders, sheet.interval, len(sheet.schedule.groups), leads, pauses)


def _with_drains(
    sheet: Sheet, steps: dict[str, Step], orders: tuple[Order, ...]
) -> tuple[dict[str, Step], tuple[Order, ...]]:
    """Let other groups wait for a drain of the issuing group instead of for work that only that group observes."""
    known = dict(steps)
    result: list[Order] = []
    for order in orders:
        tail = steps[order.tail]
        if tail.engine not in DRAINED or steps[order.head].group == tail.group:
            result.append(order)
            continue
        name = f"{tail.op}.drain"
        if name not in known:
            known[name] = _drain(sheet, tail, steps, orders)
            result.append(Order(tail=tail.name, head=name, distance=0, kind="data"))
        result.append(replace(order, tail=name, in_order=True))
    return known, tuple(result)


def _drain(sheet: Sheet, tail: Step, steps: dict[str, Step], orders: tuple[Order, ...]) -> Step:
    """Return where the group observes that ``tail`` is complete: where it needs that itself, unless another group
    needs it before; where it does not need it, once the next one was issued, so that the engine never runs dry.
    """
    mine = [order for order in orders if order.tail == tail.name and _by_drain(steps, order) and order.distance >= 0]
    others = [order for order in orders if order.tail == tail.name and steps[order.head].group != tail.group]
    need = min(_start(sheet, steps, order) for order in others)
    natural = min(mine, key=lambda order: _start(sheet, steps, order), default=None)
    if natural is not None and _start(sheet, steps, natural) <= need:
        return drain_before(sheet, tail, steps[natural.head], natural.distance)
    if natural is None and tail.time + sheet.interval <= need:
        return drain_after_next(sheet, tail)
    return drain_at_end(sheet, tail)


def _start(sheet: Sheet, steps: dict[str, Step], order: Order) -> int:
    return steps[order.head].time + order.distance * sheet.interval


def _by_program(steps: dict[str, Step], order: Order) -> bool:
    tail, head = steps[order.tail], steps[order.head]
    if tail.group != head.group:
        return False
    return tail.synchronous or (order.in_order and tail.engine == head.engine and tail.engine in _IN_ORDER)


def _by_drain(steps: dict[str, Step], order: Order) -> bool:
    tail, head = steps[order.tail], steps[order.head]
    return tail.group == head.group and tail.engine in DRAINED and not _by_program(steps, order)


def _needed(steps: dict[str, Step], arrangement: Arrangement, orders: tuple[Order, ...]) -> tuple[Order, ...]:
    """Return the orders that something must keep, without those that the rest implies."""
    for order in orders:
        if _by_program(steps, order) and arrangement.behind(order.tail, order.head) > order.distance:
            raise TwillError(
                f"order {order}",
                "the program of its group does not keep it",
                "this is a defect of twillgpu: please report it with the output of --emit schedule",
            )
    kept = [order for order in orders if not _by_program(steps, order)]
    reach = Reach(steps, arrangement)
    for order in sorted(kept, key=lambda one: _value(steps, one)):
        others = [one for one in kept if one != order]
        reach.keep(others)
        if reach.keeps(order):
            kept = others
    return tuple(kept)


def _value(steps: dict[str, Step], order: Order) -> tuple[bool, int, int, str, str]:
    kinds = len(_DROPPED_FIRST)
    rank = _DROPPED_FIRST.index(order.kind) if order.kind in _DROPPED_FIRST else kinds
    return _by_drain(steps, order), rank, -order.distance, order.tail, order.head


def _merged(reach: Reach, steps: dict[str, Step], orders: tuple[Order, ...]) -> tuple[LoopBarrier, ...]:
    """Return barriers such that each step waits once for all that it needs of one iteration: heads with the same
    tails share a barrier; a TMA load has one barrier for all. Tails that may be more than any number of phases apart
    do not share one.
    """
    heads: dict[str, frozenset[tuple[str, int]]] = {}
    for order in orders:
        heads[order.tail] = heads.get(order.tail, frozenset()) | {(order.head, order.distance)}
    keys: dict[tuple[bool, frozenset[object]], list[Order]] = {}
    for order in orders:
        loaded = steps[order.tail].engine == "tma"
        if loaded:
            key: frozenset[object] = frozenset(heads[order.tail])
        else:
            same = [one for one in orders if (one.head, one.distance) == (order.head, order.distance)]
            tails = [one.tail for one in same if steps[one.tail].engine != "tma"]
            key = frozenset(tails if _apart(reach, steps, tails) is not None else [order.tail])
        keys.setdefault((loaded, key), []).append(order)
    taken: set[str] = set()
    return tuple(_barrier(served, taken, loaded=loaded) for (loaded, _), served in keys.items())


def _apart(reach: Reach, steps: dict[str, Step], signals: Iterable[str]) -> int | None:
    """Return the smallest d such that every arrival for iteration i + d comes after all those for iteration i, which
    must be counted before; ``None`` where there is none.
    """
    listed = tuple(signals)
    most = 1
    for first in listed:
        for second in listed:
            if first == second and steps[first].engine != "tma":
                continue
            arrival: Event = (second, "start" if steps[second].engine == "tma" else "done")
            far = reach.distance((first, "done"), arrival, least=1)
            if far is None:
                return None
            most = max(most, far)
    return most


def _barrier(served: list[Order], taken: set[str], *, loaded: bool) -> LoopBarrier:
    signals = tuple(dict.fromkeys(order.tail for order in served))
    wanted = f"{signals[0]}.full" if loaded else f"{signals[0]}.done"
    if len(signals) > 1 and not loaded:
        wanted = f"{served[0].head}.ready"
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    taken.add(name)
    return LoopBarrier(name=name, signals=signals, waits=tuple(served), copies=1)


def _behind(reach: Reach, barrier: LoopBarrier, head: str) -> tuple[int, str] | None:
    """Return after how many iterations at the latest a signal waits for ``head``, and the signal."""
    found = [
        (far, signal)
        for signal in barrier.signals
        if (far := reach.distance((head, "start"), (signal, "done"))) is not None
    ]
    return min(found, default=None)


def _copies(reach: Reach, steps: dict[str, Step], barrier: LoopBarrier) -> int:
    """Return the copies with which no wait can find that the phase after the next is complete already, and no arrival
    can be counted in the phase before its own.
    """
    least = _apart(reach, steps, barrier.signals) or 1
    for order in barrier.waits:
        behind = _behind(reach, barrier, order.head)
        least = max(least, abs(order.distance) + (order.distance < 0), (behind[0] if behind else 0) + order.distance)
    return least


def _credits(
    sheet: Sheet, steps: dict[str, Step], reach: Reach, barriers: tuple[LoopBarrier, ...]
) -> Iterable[Order]:
    """Yield orders that hold a signal back which could run ahead of a wait without limit."""
    for barrier in barriers:
        for order in barrier.waits:
            if _behind(reach, barrier, order.head) is None:
                signal = steps[barrier.signals[0]]
                ahead = (steps[order.head].time - signal.time) // sheet.interval + 1
                yield Order(tail=order.head, head=signal.op, distance=max(1, ahead), kind="credit")
