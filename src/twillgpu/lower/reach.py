"""Which orders a program already keeps: shortest paths over starts and completions, in iterations.

Only paths on which the iteration never falls are used: every step on them exists in every tile, first and last
iterations included.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Literal

from twillgpu.lower.arrange import Arrangement
from twillgpu.lower.orders import Order
from twillgpu.lower.steps import Step

Event = tuple[str, Literal["start", "done"]]


class Reach:
    """Paths over program order and a set of orders that something else keeps."""

    def __init__(self, steps: dict[str, Step], arrangement: Arrangement) -> None:
        self.fixed: dict[Event, list[tuple[Event, int]]] = {}
        for one in steps.values():
            self._add((one.name, "start"), (one.name, "done"), 0)
            for two in steps.values():
                if one.group != two.group:
                    continue
                distance = max(0, arrangement.behind(one.name, two.name))
                self._add((one.name, "start"), (two.name, "start"), distance)
                if one.synchronous:
                    self._add((one.name, "done"), (two.name, "start"), distance)
                elif one.engine == two.engine and one.engine != "tma":
                    self._add((one.name, "done"), (two.name, "done"), distance)
        self.kept: dict[Event, list[tuple[Event, int]]] = {}

    def _add(self, tail: Event, head: Event, distance: int) -> None:
        self.fixed.setdefault(tail, []).append((head, distance))

    def keep(self, orders: Iterable[Order]) -> None:
        """Replace the orders that are kept by barriers and drains."""
        self.kept = {}
        for order in orders:
            if order.distance >= 0:
                self.kept.setdefault((order.tail, "done"), []).append(((order.head, "start"), order.distance))

    def distance(self, start: Event, goal: Event, limit: int | None = None, least: int = 0) -> int | None:
        """Return the smallest number of iterations, at least ``least``, on a path of at most ``limit``; ``None``
        where there is none. Where a path exists, so do longer ones.
        """
        best = {start: 0}
        queue: list[tuple[int, Event]] = [(0, start)]
        while queue:
            far, event = heapq.heappop(queue)
            if event == goal and (event != start or far or not least):
                return max(far, least)
            if far > best[event]:
                continue
            for after, more in (*self.fixed.get(event, ()), *self.kept.get(event, ())):
                total = far + more
                if (limit is None or total <= limit) and total < best.get(after, total + 1):
                    best[after] = total
                    heapq.heappush(queue, (total, after))
        return None

    def keeps(self, order: Order) -> bool:
        """Return whether the order is kept without a barrier or drain of its own."""
        if order.distance < 0:
            return False
        return self.distance((order.tail, "done"), (order.head, "start"), order.distance) is not None
