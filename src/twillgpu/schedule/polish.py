"""Polish: the smallest interval in cycles that keeps the order found at the coarse resolution.

Everything that the coarse schedule decided is kept: groups, the order of uses on every unit, what a wait comes
before and after, and (if asked for) which lifetimes meet. What is left is linear in the starts and the interval.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ortools.sat.python import cp_model

from twillgpu.costs.record import PricedEdge, PricedOp, Problem
from twillgpu.schedule.lifetimes import Lifetime, Moment, buffer_lifetimes, register_lifetimes
from twillgpu.schedule.rules_pauses import Flights, flights


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A schedule without memory: interval and starts in cycles, groups."""

    ii_cycles: int
    starts: dict[str, int]
    groups: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Before:
    """``earlier <= later`` as moments."""

    earlier: Moment
    later: Moment


def polish(problem: Problem, draft: Draft, *, lower: int, stages: int, keep: frozenset[str]) -> Draft | None:
    """Return the schedule of smallest interval (>= ``lower``) in the order of ``draft``, then of no more stages
    than ``draft`` where that is possible, then of shortest lifetimes and length; ``None`` if ``draft`` itself
    breaks a rule in cycles.
    """
    orders = list(_orders(problem, draft, max(1, lower), keep))
    first = _Program(problem, draft, orders, lower=lower, upper=draft.ii_cycles, stages=stages)
    first.model.minimize(first.interval)
    shorter = first.solve()
    if shorter is None:
        return None
    for most in sorted({_stages(problem, draft), _stages(problem, shorter)}):
        second = _Program(problem, shorter, orders, lower=shorter.ii_cycles, upper=shorter.ii_cycles, stages=most)
        second.minimise_lifetimes()
        settled = second.solve()
        if settled is not None:
            return settled
    return shorter


def _stages(problem: Problem, draft: Draft) -> int:
    """Return the number of stages of a draft."""
    length = max(draft.starts[op.name] + max(1, op.latency_cycles) for op in problem.ops)
    return -(-length // draft.ii_cycles)


class _Program:
    """The linear program: starts, the interval, and the constraints."""

    def __init__(
        self, problem: Problem, draft: Draft, orders: list[_Before], *, lower: int, upper: int, stages: int
    ) -> None:
        self.problem = problem
        self.draft = draft
        self.model = cp_model.CpModel()
        self.interval = self.model.new_int_var(min(lower, upper), upper, "interval")
        horizon = stages * upper
        self.starts = {op.name: self.model.new_int_var(0, horizon, op.name) for op in problem.ops}
        for op in problem.ops:
            self.model.add(self.starts[op.name] + max(1, op.latency_cycles) <= stages * self.interval)
        for order in orders:
            self.model.add(self._at(order.earlier) <= self._at(order.later))
        for name, start in draft.starts.items():
            self.model.add_hint(self.starts[name], start)
        self.model.add_hint(self.interval, draft.ii_cycles)

    def _at(self, moment: Moment) -> cp_model.LinearExprT:
        return self.starts[moment.op] + moment.cycles + moment.turns * self.interval

    def minimise_lifetimes(self) -> None:
        """Minimise registers times cycles, then bytes times cycles (in KB), then the length."""
        lifetimes = [
            *((life, 64 * life.weight) for life in register_lifetimes(self.problem, self.draft.groups)),
            *((life, 1 + life.weight // 1024) for life in buffer_lifetimes(self.problem, self.draft.groups)),
        ]
        longest = 4 * self.draft.ii_cycles * (2 + max(edge.distance for edge in self.problem.edges or [_NO_EDGE]))
        terms: list[cp_model.LinearExprT] = []
        for life, weight in lifetimes:
            if life.pinned:
                continue
            begin = self.model.new_int_var(-longest * 8, longest * 8, f"{life.name} begin")
            end = self.model.new_int_var(-longest * 8, longest * 8, f"{life.name} end")
            for moment in life.begins:
                self.model.add(begin <= self._at(moment))
            for moment in life.ends:
                self.model.add(end >= self._at(moment))
            terms.append(weight * (end - begin))
        terms += list(self.starts.values())
        self.model.minimize(sum(terms))

    def solve(self) -> Draft | None:
        """Return the optimum, or ``None``."""
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.max_deterministic_time = 2.0
        if solver.solve(self.model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return None
        starts = {name: solver.value(start) for name, start in self.starts.items()}
        first = min(starts.values())
        return Draft(
            ii_cycles=solver.value(self.interval),
            starts={name: start - first for name, start in starts.items()},
            groups=self.draft.groups,
        )


_NO_EDGE = PricedEdge(
    tail="", head="", latency_cycles=0, distance=0, kind="data", blocking=False, handoff_cycles=0, read_cycles=0
)


def _orders(problem: Problem, draft: Draft, lower: int, keep: frozenset[str]) -> Iterator[_Before]:
    yield from _dependences(problem, draft.groups)
    yield from _unit_orders(problem, draft, lower)
    yield from _wait_orders(problem, draft)
    yield from _pause_orders(problem, draft)
    if "registers" in keep:
        yield from _lifetime_orders(draft, register_lifetimes(problem, draft.groups))
    if "buffers" in keep:
        yield from _lifetime_orders(draft, buffer_lifetimes(problem, draft.groups))


def _dependences(problem: Problem, groups: Mapping[str, int]) -> Iterator[_Before]:
    for edge in problem.edges:
        extra = edge.handoff_cycles if groups[edge.tail] != groups[edge.head] else 0
        tail = Moment(op=edge.tail, cycles=edge.latency_cycles + extra)
        yield _Before(earlier=tail, later=Moment(op=edge.head, turns=edge.distance))


def _unit_orders(problem: Problem, draft: Draft, lower: int) -> Iterator[_Before]:
    """Keep every pair of uses of a unit apart that is apart, where the unit cannot serve all at once.

    A use counts as often as it meets itself at the smallest interval that may come out.
    """
    for unit in problem.units:
        runs = [(op.name, use) for op in problem.ops for use in op.uses if use.unit == unit.name]
        if sum(use.amount * -(-use.cycles // lower) for _, use in runs) <= unit.capacity:
            continue
        spans = [
            (Moment(op=name, cycles=use.offset), Moment(op=name, cycles=use.offset + use.cycles))
            for name, use in runs
        ]
        for index, one in enumerate(spans):
            for other in spans[index:]:
                yield from _keep_apart(draft, one, other)


def _keep_apart(draft: Draft, one: tuple[Moment, Moment], other: tuple[Moment, Moment]) -> Iterator[_Before]:
    """Keep the nearest instances of ``other`` before and after ``one`` that do not meet it apart from it."""
    interval = draft.ii_cycles
    begin, end = (moment.at(draft.starts, interval) for moment in one)
    other_begin, other_end = (moment.at(draft.starts, interval) for moment in other)
    after = -(-(end - other_begin) // interval)
    before = (begin - other_end) // interval
    yield _Before(earlier=one[1], later=_later(other[0], after))
    yield _Before(earlier=_later(other[1], before), later=one[0])


def _later(moment: Moment, turns: int) -> Moment:
    return Moment(op=moment.op, cycles=moment.cycles, turns=moment.turns + turns)


def _wait_orders(problem: Problem, draft: Draft) -> Iterator[_Before]:
    """Keep every wait between the issue of the ops of its group."""
    waiting = {
        edge.head
        for edge in problem.edges
        if edge.blocking or (edge.tail != edge.head and draft.groups[edge.tail] != draft.groups[edge.head])
    }
    for waiter in problem.ops:
        if waiter.name not in waiting:
            continue
        for other in problem.ops:
            length = wait_window(problem, other)
            if other.name != waiter.name and length and draft.groups[other.name] == draft.groups[waiter.name]:
                turns = (draft.starts[waiter.name] - draft.starts[other.name]) // draft.ii_cycles
                issued = Moment(op=other.name, cycles=length, turns=turns)
                again = Moment(op=other.name, cycles=-1, turns=turns + 1)
                yield _Before(earlier=issued, later=Moment(op=waiter.name))
                yield _Before(earlier=Moment(op=waiter.name), later=again)


def _pause_orders(problem: Problem, draft: Draft) -> Iterator[_Before]:
    """Keep the product of each group at whose issue none is in flight, and every flight before or after its issue.

    Where the period has any moment without a product in flight, the issue of the next product is one.
    """
    for orders in _pauses(problem, draft):
        yield from orders or ()


def paused(problem: Problem, draft: Draft) -> bool:
    """Return whether every group has the moments without a product in flight that its rules ask for."""
    return all(orders is not None for orders in _pauses(problem, draft))


def _pauses(problem: Problem, draft: Draft) -> Iterator[list[_Before] | None]:
    """Yield, for each rule and each group, the orders that keep its pause, ``None`` where it has none."""
    for products in flights(problem).values():
        for group in sorted({draft.groups[name] for name in products}):
            mine = {name: pairs for name, pairs in products.items() if draft.groups[name] == group}
            led = (_led(draft, leader, mine) for leader in mine)
            yield next((orders for orders in led if orders is not None), None)


def _led(draft: Draft, leader: str, products: Flights) -> list[_Before] | None:
    """Return the orders that keep flights apart from the issue of ``leader``, ``None`` where one is not."""
    interval, issue = draft.ii_cycles, draft.starts[leader]
    orders: list[_Before] = []
    for name, pairs in products.items():
        turns = (issue - 1 - draft.starts[name]) // interval
        ends = [Moment(op=pair.second, cycles=1, turns=pair.distance + turns) for pair in pairs]
        first = min(ends, key=lambda moment: moment.at(draft.starts, interval))
        if first.at(draft.starts, interval) > issue:
            return None
        orders.append(_Before(earlier=first, later=Moment(op=leader)))
        orders.append(_Before(earlier=Moment(op=leader), later=Moment(op=name, turns=turns + 1)))
    return orders


def wait_window(problem: Problem, op: PricedOp) -> int:
    """Return how long an op keeps a wait of its group from starting, in the problem's unit of time."""
    if problem.rules.concurrency == "issue":
        return op.issue_cycles
    return max((use.offset + use.cycles for use in op.uses), default=op.issue_cycles)


def _lifetime_orders(draft: Draft, lifetimes: list[Lifetime]) -> Iterator[_Before]:
    """Keep lifetimes of one holder apart that are apart; so no sum of live values grows."""
    loose = [life for life in lifetimes if not life.pinned]
    for index, one in enumerate(loose):
        for other in loose[index:]:
            if one.holder == other.holder:
                yield from _keep_lifetimes_apart(draft, one, other)


def _keep_lifetimes_apart(draft: Draft, one: Lifetime, other: Lifetime) -> Iterator[_Before]:
    interval = draft.ii_cycles
    begin, end = one.span(draft.starts, interval)
    other_begin, other_end = other.span(draft.starts, interval)
    after = -(-(end - other_begin) // interval)
    before = (begin - other_end) // interval
    for last in one.ends:
        for first in other.begins:
            yield _Before(earlier=last, later=_later(first, after))
    for last in other.ends:
        for first in one.begins:
            yield _Before(earlier=_later(last, before), later=first)
