"""Registers and memories over one period of the steady state, against their limits.

What lives when is what the verifier says (``twillgpu.verify.lifetimes``); nothing is derived a second time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from twillgpu.costs.record import Problem
from twillgpu.schedule.record import Schedule
from twillgpu.verify.expand import Span, steady_cycle, unroll
from twillgpu.verify.lifetimes import register_spans, tenants
from twillgpu.verify.sheet import sheet


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """``amount`` during the cycles ``[start, stop)`` of the period, and what it consists of: (name, amount)."""

    start: int
    stop: int
    amount: int
    held: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """How full something is over one period.

    Attributes:
        name: the group or the memory.
        kind: ``registers`` (per thread, the machine's overhead included) or ``memory`` (bytes, those outside the
            loop included).
        limit: the group's quota or the memory's capacity, ``None`` where there is none.
        reserved: for a memory the end of its last buffer: what is set aside, live or not.
        base: overhead or fixed bytes, part of every step.
        steps: the whole period without gaps.
    """

    name: str
    kind: Literal["registers", "memory"]
    limit: int | None
    reserved: int | None
    base: int
    steps: tuple[Step, ...]

    @property
    def peak(self) -> int:
        """The largest amount of the period."""
        return max(step.amount for step in self.steps)


def occupancies(problem: Problem, schedule: Schedule) -> tuple[Occupancy, ...]:
    """Return the registers of every group, then every memory that is used."""
    groups = tuple(_registers(problem, schedule, index) for index in range(len(schedule.groups)))
    spaces = sorted({buffer.space for buffer in schedule.buffers})
    return (*groups, *(_memory(problem, schedule, space) for space in spaces))


def _registers(problem: Problem, schedule: Schedule, index: int) -> Occupancy:
    group, limits = schedule.groups[index], problem.registers
    base = limits.overhead_per_thread if limits is not None else 0
    spans = register_spans(sheet(problem, schedule), index)
    return Occupancy(
        name=group.name,
        kind="registers",
        limit=group.registers_per_thread if limits is not None else None,
        reserved=None,
        base=base,
        steps=_steps(spans, schedule.ii_cycles, base),
    )


def _memory(problem: Problem, schedule: Schedule, space: str) -> Occupancy:
    buffers = {buffer.name: buffer for buffer in schedule.buffers if buffer.space == space}
    base = dict(problem.fixed_bytes).get(space, 0)
    spans = [
        replace(tenant.span, amount=buffers[tenant.name].bytes)
        for tenant in tenants(sheet(problem, schedule))
        if tenant.space == space and tenant.name in buffers
    ]
    return Occupancy(
        name=space,
        kind="memory",
        limit=next((memory.capacity_bytes for memory in problem.memories if memory.name == space), None),
        reserved=max(buffer.offset_bytes + buffer.depth * buffer.bytes for buffer in buffers.values()),
        base=base,
        steps=_steps(spans, schedule.ii_cycles, base),
    )


def _steps(spans: Iterable[Span], interval: int, base: int) -> tuple[Step, ...]:
    """Return what is held in the period from change to change."""
    spans = tuple(span for span in spans if span.end > span.start and span.amount)
    first = steady_cycle(spans, interval)
    held = unroll(spans, interval)
    inside = {cycle - first for item in held for cycle in (item.start, item.end) if first < cycle < first + interval}
    cuts = sorted({0, interval} | inside)
    steps: list[Step] = []
    for start, stop in pairwise(cuts):
        sums: dict[str, int] = defaultdict(int)
        for item in held:
            if item.start <= first + start < item.end:
                sums[item.span.subject] += item.span.amount
        amount = base + sum(sums.values())
        steps.append(Step(start=start, stop=stop, amount=amount, held=tuple(sorted(sums.items()))))
    return tuple(steps)
