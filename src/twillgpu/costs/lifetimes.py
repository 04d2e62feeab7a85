"""Least lifetimes of values, as lower bounds ``constant + periods x I`` that hold for every schedule."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from twillgpu.costs.circuits import Arc, arcs
from twillgpu.costs.record import PricedEdge, PricedOp, PricedValue, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A lower bound ``constant_cycles + periods x I`` of a lifetime."""

    constant_cycles: int
    periods: int = 0

    def cycles(self, interval: int) -> int:
        """Return the bound at one interval."""
        return self.constant_cycles + self.periods * interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """A value, or an alias class that is one storage: its amount, and what is known of its lifetime."""

    name: str
    amount: int
    spans: tuple[Span, ...]

    def least(self, interval: int) -> int:
        """Return the least lifetime in cycles at one interval."""
        return max(span.cycles(interval) for span in self.spans)

    @property
    def periods(self) -> int:
        """Instances that are alive all the time, whatever the interval."""
        return max(span.periods for span in self.spans)


class Lifetimes:
    """Least lifetimes of the values of a problem; computes the longest paths within an iteration once."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._ops = {op.name: op for op in problem.ops}
        self._out: dict[str, list[PricedEdge]] = defaultdict(list)
        for edge in problem.edges:
            if edge.kind == "data":
                self._out[edge.tail].append(edge)
        self._longest = _longest_paths(problem)
        pairs = [pair for pair in problem.legality if pair.relation == "together"]
        self._together = {frozenset((pair.first, pair.second)) for pair in pairs}

    def tenants(self, space: str, amount: Callable[[PricedOp, PricedValue], int]) -> tuple[Tenant, ...]:
        """Return who lives in ``space``: each value, or each alias class once with its largest amount."""
        classes: dict[str, list[PricedOp]] = defaultdict(list)
        for op in self._problem.ops:
            if op.value is not None and op.value.space == space:
                key = f"value {op.name}" if op.value.alias is None else f"alias {op.value.alias}"
                classes[key].append(op)
        return tuple(
            Tenant(
                name=members[0].name,
                amount=max(amount(op, op.value) for op in members if op.value is not None),
                spans=self._class_spans(members),
            )
            for members in classes.values()
        )

    def _class_spans(self, members: list[PricedOp]) -> tuple[Span, ...]:
        aliased = members[0].value is not None and members[0].value.alias is not None
        carried = any(edge.distance > 0 for op in members for edge in self._out[op.name])
        if aliased and carried:
            return (Span(constant_cycles=0, periods=1),)
        return tuple(span for op in members for span in self._spans(op))

    def _spans(self, op: PricedOp) -> Iterator[Span]:
        edges = self._out[op.name]
        in_registers = op.value is not None and op.value.space == "registers"
        own = op.latency_cycles if edges or in_registers else op.real_latency_cycles
        yield Span(constant_cycles=max(1, own) if not in_registers else own)
        for edge in edges:
            for span in self._edge_spans(edge):
                yield self._capped(op, edge, span) if in_registers else span

    def _edge_spans(self, edge: PricedEdge) -> Iterator[Span]:
        """``M(v) + delta I + read - M(u)`` is at least d + read, and at least the longest path + delta I + read."""
        yield Span(constant_cycles=edge.latency_cycles + edge.read_cycles)
        path = self._longest[edge.tail].get(edge.head)
        if path is not None:
            yield Span(constant_cycles=path + edge.read_cycles, periods=edge.distance)

    def _capped(self, op: PricedOp, edge: PricedEdge, span: Span) -> Span:
        """A register value that may be handed over leaves its own group's registers when that has been done."""
        single = self._problem.groups.max == 1 or not self._problem.rules.cross_group
        if single or edge.tail == edge.head or frozenset((edge.tail, edge.head)) in self._together:
            return span
        return Span(constant_cycles=min(span.constant_cycles, op.latency_cycles + op.handoff_cycles))


def _longest_paths(problem: Problem) -> Mapping[str, Mapping[str, int]]:
    """Return the longest path in cycles within an iteration, from every op to every op that it reaches."""
    names = tuple(op.name for op in problem.ops)
    within = tuple(arc for arc in arcs(problem) if arc.distance == 0)
    return {start: _from(start, names, within) for start in names}


def _from(start: str, names: tuple[str, ...], within: tuple[Arc, ...]) -> dict[str, int]:
    """Relax until nothing changes; there is no positive circuit (the recurrence bound has refused one)."""
    longest = {start: 0}
    changed = True
    while changed:
        changed = False
        for arc in within:
            before = longest.get(names[arc.tail])
            if before is not None and before + arc.latency_cycles > longest.get(names[arc.head], -1):
                longest[names[arc.head]] = before + arc.latency_cycles
                changed = True
    return longest
