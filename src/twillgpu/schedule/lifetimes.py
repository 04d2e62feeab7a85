"""Lifetimes in cycles of a given assignment: register values per group, buffers per memory.

A lifetime runs from the earliest of some moments to the latest of others; a moment is an op's start plus a
constant plus a multiple of the interval. So the same description serves to measure a schedule and to state
linear constraints about one that is still to be found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from twillgpu.costs.record import PricedEdge, PricedOp, Problem
from twillgpu.schedule.storage import Storage, storages


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """``M(op) + cycles + turns * I``."""

    op: str
    cycles: int = 0
    turns: int = 0

    def at(self, starts: Mapping[str, int], interval: int) -> int:
        """Return the cycle of this moment."""
        return starts[self.op] + self.cycles + self.turns * interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetime:
    """From the earliest of ``begins`` to the latest of ``ends``; ``weight`` registers per thread or bytes.

    ``holder`` is the group (as text) or the memory that it burdens; a pinned one is live all the time, once.
    """

    name: str
    holder: str
    weight: int
    begins: tuple[Moment, ...]
    ends: tuple[Moment, ...]
    pinned: bool = False

    def span(self, starts: Mapping[str, int], interval: int) -> tuple[int, int]:
        """Return first and one-past-last cycle for iteration 0 (at least one cycle)."""
        begin = min(moment.at(starts, interval) for moment in self.begins)
        end = max(moment.at(starts, interval) for moment in self.ends)
        return begin, max(end, begin + 1) if self.holder in ("smem", "tmem") else max(end, begin)


def register_lifetimes(problem: Problem, groups: Mapping[str, int]) -> list[Lifetime]:
    """Return the lifetimes of all register values, one for each group that holds them."""
    outgoing = _data_edges(problem)
    ops = {op.name: op for op in problem.ops}
    result: list[Lifetime] = []
    for value in storages(problem, "registers"):
        homes = sorted({groups[name] for name in value.members})
        result += [_home(value, group, ops, outgoing, groups) for group in homes]
        result += _copies(value, ops, outgoing, groups)
    return result


def _data_edges(problem: Problem) -> dict[str, list[PricedEdge]]:
    outgoing: dict[str, list[PricedEdge]] = {op.name: [] for op in problem.ops}
    for edge in problem.edges:
        if edge.kind == "data":
            outgoing[edge.tail].append(edge)
    return outgoing


def _home(
    value: Storage,
    group: int,
    ops: Mapping[str, PricedOp],
    outgoing: Mapping[str, list[PricedEdge]],
    groups: Mapping[str, int],
) -> Lifetime:
    members = [name for name in value.members if groups[name] == group]
    ends: list[Moment] = []
    for name in members:
        ends.append(Moment(op=name, cycles=ops[name].latency_cycles))
        for edge in outgoing[name]:
            if groups[edge.head] == group:
                ends.append(Moment(op=edge.head, cycles=edge.read_cycles, turns=edge.distance))
            else:
                ends.append(Moment(op=name, cycles=ops[name].latency_cycles + ops[name].handoff_cycles))
    return Lifetime(
        name=value.name,
        holder=str(group),
        weight=value.registers_per_thread,
        begins=tuple(Moment(op=name) for name in members),
        ends=tuple(dict.fromkeys(ends)),
        pinned=value.pinned,
    )


def _copies(
    value: Storage,
    ops: Mapping[str, PricedOp],
    outgoing: Mapping[str, list[PricedEdge]],
    groups: Mapping[str, int],
) -> Iterator[Lifetime]:
    """Yield a lifetime for each member and each group that received a copy of it."""
    for name in value.members:
        readers = [edge for edge in outgoing[name] if edge.head not in value.members]
        away = [edge for edge in readers if groups[edge.head] != groups[name]]
        for group in sorted({groups[edge.head] for edge in away}):
            here = [edge for edge in away if groups[edge.head] == group]
            yield Lifetime(
                name=name,
                holder=str(group),
                weight=value.registers_per_thread,
                begins=tuple(Moment(op=edge.head, turns=edge.distance) for edge in here),
                ends=tuple(
                    Moment(
                        op=edge.head, cycles=max(edge.read_cycles, ops[edge.head].issue_cycles), turns=edge.distance
                    )
                    for edge in here
                ),
            )


def buffer_lifetimes(problem: Problem, groups: Mapping[str, int]) -> list[Lifetime]:
    """Return the lifetimes of all values in SMEM and TMEM, and of staging copies."""
    outgoing = _data_edges(problem)
    ops = {op.name: op for op in problem.ops}
    result = [
        _buffer(value, ops, outgoing)
        for space in ("smem", "tmem")
        for value in storages(problem, space)
        if value.bytes
    ]
    if not any(memory.name == "smem" for memory in problem.memories):
        return result
    for value in storages(problem, "registers"):
        for name in value.members:
            away = [edge for edge in outgoing[name] if groups[edge.head] != groups[name]]
            if away and ops[name].staging_bytes:
                result.append(_staging(ops[name], away))
    return result


def _buffer(value: Storage, ops: Mapping[str, PricedOp], outgoing: Mapping[str, list[PricedEdge]]) -> Lifetime:
    ends: list[Moment] = []
    for name in value.members:
        op = ops[name]
        ends.append(Moment(op=name, cycles=op.latency_cycles if outgoing[name] else op.real_latency_cycles))
        ends += [Moment(op=edge.head, cycles=edge.read_cycles, turns=edge.distance) for edge in outgoing[name]]
    return Lifetime(
        name=value.name,
        holder=value.space,
        weight=value.bytes,
        begins=tuple(Moment(op=name) for name in value.members),
        ends=tuple(dict.fromkeys(ends)),
        pinned=value.pinned,
    )


def _staging(op: PricedOp, away: list[PricedEdge]) -> Lifetime:
    return Lifetime(
        name=f"{op.name}.staging",
        holder="smem",
        weight=op.staging_bytes,
        begins=(Moment(op=op.name, cycles=op.latency_cycles),),
        ends=tuple(Moment(op=edge.head, turns=edge.distance) for edge in away),
    )


def instances(span: tuple[int, int], interval: int) -> int:
    """Return how many instances of a lifetime are live at once at most."""
    return -(-(span[1] - span[0]) // interval)


def peak(lifetimes: list[Lifetime], starts: Mapping[str, int], interval: int) -> int:
    """Return the largest sum of weights live in one slot of the period."""
    constant = sum(lifetime.weight for lifetime in lifetimes if lifetime.pinned)
    changes: dict[int, int] = {0: 0}
    for lifetime in lifetimes:
        if lifetime.pinned:
            continue
        begin, end = lifetime.span(starts, interval)
        turns, rest = divmod(end - begin, interval)
        constant += turns * lifetime.weight
        if rest:
            first, last = begin % interval, (begin + rest) % interval
            changes[first] = changes.get(first, 0) + lifetime.weight
            changes[last] = changes.get(last, 0) - lifetime.weight
            if last <= first:
                changes[0] += lifetime.weight
    level = highest = 0
    for slot in sorted(changes):
        level += changes[slot]
        highest = max(highest, level)
    return constant + highest
