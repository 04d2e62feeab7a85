"""Schedules for tests of lowering: examples on machines, and any partition in any order by a small list scheduler."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from twillgpu.costs.record import PricedEdge, PricedOp, PriceOptions, Problem
from twillgpu.frontend.kernel import Kernel
from twillgpu.graph.record import DepGraph
from twillgpu.inputs import SourceOptions, load_problem
from twillgpu.schedule.assemble import assemble
from twillgpu.schedule.partition import designated
from twillgpu.schedule.polish import Draft
from twillgpu.verify import check
from twillgpu.verify.record import Verified

ROUNDS = 6
"""Attempts to place everything late enough for the next iteration."""

EXAMPLES = Path(__file__).parents[2] / "examples"


@cache
def loaded(
    name: str, machine: str, rows: int | None = None, limits: PriceOptions | None = None
) -> tuple[Kernel, DepGraph, Problem]:
    """Return an example's kernel, graph and priced problem."""
    priced = load_problem(EXAMPLES / f"{name}.py", machine, options=SourceOptions(rows=rows), limits=limits)
    kernel = priced.loaded.kernel
    assert kernel is not None
    return kernel, priced.loaded.graph, priced.problem


@dataclass(slots=True, kw_only=True)
class Table:
    """What is free in each cycle of a period: of every unit, and of every group's instruction stream."""

    groups: Mapping[str, int]
    interval: int
    free: dict[str, np.ndarray]

    def uses(self, op: PricedOp) -> Iterator[tuple[str, int, int, int]]:
        """Yield what an op needs: name, first cycle, cycles, amount."""
        yield f"issue {self.groups[op.name]}", 0, max(1, op.issue_cycles), 1
        yield from ((use.unit, use.offset, use.cycles, use.amount) for use in op.uses)

    def fits(self, op: PricedOp, start: int) -> bool:
        """Return whether there is room for an op."""
        return all(
            cycles <= self.interval and bool((self.free[name][self.cycles(start + first, cycles)] >= amount).all())
            for name, first, cycles, amount in self.uses(op)
        )

    def take(self, op: PricedOp, start: int) -> None:
        """Put an op there."""
        for name, first, cycles, amount in self.uses(op):
            self.free[name][self.cycles(start + first, cycles)] -= amount

    def cycles(self, first: int, number: int) -> np.ndarray:
        """Return the cycles of the period that a run of cycles takes."""
        return np.arange(first, first + number) % self.interval


def placed(
    problem: Problem,
    groups: Mapping[str, int],
    interval: int,
    order: Sequence[str] = (),
    randomly: random.Random | None = None,
) -> Verified | None:
    """Return a verified schedule of this partition at this interval, ``None`` where the attempt fails.

    Ops are placed one after the other, as early as dependences, units and the group's issue allow: those of ``order``
    first and in that order, the others in program order, or in a random one with random delays. Where that is too
    early for what an iteration leaves to the next, they are placed again, later.
    """
    floors: dict[str, int] = {}
    for _ in range(ROUNDS):
        starts = _starts(problem, groups, interval, order, randomly, floors)
        if starts is None:
            return None
        late = {
            edge.head: _ready(groups, interval, starts, edge)
            for edge in problem.edges
            if _ready(groups, interval, starts, edge) > starts[edge.head]
        }
        if not late:
            schedule = assemble(problem, Draft(ii_cycles=interval, starts=starts, groups=dict(groups)))
            verdict = None if schedule is None else check(problem, schedule)
            return verdict if isinstance(verdict, Verified) else None
        floors |= late
    return None


def _starts(
    problem: Problem,
    groups: Mapping[str, int],
    interval: int,
    order: Sequence[str],
    randomly: random.Random | None,
    floors: Mapping[str, int],
) -> dict[str, int] | None:
    free = {unit.name: np.full(interval, unit.capacity) for unit in problem.units}
    free |= {f"issue {group}": np.ones(interval, int) for group in groups.values()}
    table = Table(groups=groups, interval=interval, free=free)
    starts: dict[str, int] = {}
    ops = {op.name: op for op in problem.ops}
    left = list(ops)
    while left:
        name = _next(problem, left, order, randomly)
        left.remove(name)
        into = (edge for edge in problem.edges if edge.head == name and edge.tail in starts)
        ready = [_ready(groups, interval, starts, edge) for edge in into]
        first = max((0, floors.get(name, 0), *ready))
        first += randomly.choice((0, 0, 90)) if randomly else 0
        step = max(1, interval // 512)
        start = next((at for at in range(first, first + interval, step) if table.fits(ops[name], at)), None)
        if start is None:
            return None
        starts[name] = start
        table.take(ops[name], start)
    return starts


def _next(problem: Problem, left: list[str], order: Sequence[str], randomly: random.Random | None) -> str:
    waiting = {
        edge.head for edge in problem.edges if edge.tail in left and edge.distance == 0 and edge.tail != edge.head
    }
    free = [name for name in left if name not in waiting]
    ranked = {name: at for at, name in enumerate(order)}
    if randomly is not None:
        return randomly.choice(free)
    return min(free, key=lambda name: (ranked.get(name, len(ranked)), left.index(name)))


def _ready(groups: Mapping[str, int], interval: int, starts: Mapping[str, int], edge: PricedEdge) -> int:
    """Return the cycle from which on the head of an edge may start."""
    handoff = edge.handoff_cycles if groups[edge.tail] != groups[edge.head] else 0
    return starts[edge.tail] + edge.latency_cycles + handoff - edge.distance * interval


def roomy(problem: Problem) -> Problem:
    """Return the problem with unlimited registers and large memories: it has more schedules, of more kinds."""
    memories = tuple(replace(memory, capacity_bytes=16 * memory.capacity_bytes) for memory in problem.memories)
    return replace(problem, registers=None, memories=memories)


def random_groups(problem: Problem, randomly: random.Random, number: int) -> dict[str, int]:
    """Return a random partition that keeps the legality rules, with group 0 set apart for loads if it must."""
    while True:
        found = _drawn(problem, randomly, number)
        apart = (pair for pair in problem.legality if pair.relation == "apart")
        if all(found[pair.first] != found[pair.second] for pair in apart):
            return found


def _drawn(problem: Problem, randomly: random.Random, number: int) -> dict[str, int]:
    apart = designated(problem)
    together = {op.name: op.name for op in problem.ops}
    for pair in problem.legality:
        if pair.relation == "together":
            old, new = together[pair.second], together[pair.first]
            together = {name: new if root == old else root for name, root in together.items()}
    chosen = {root: randomly.randrange(number) for root in sorted(set(together.values()))}
    found = {op.name: 0 if apart and op.variable_latency else chosen[together[op.name]] + apart for op in problem.ops}
    numbers: dict[int, int] = {0: 0} if apart else {}
    for op in problem.ops:
        numbers.setdefault(found[op.name], len(numbers))
    return {name: numbers[group] for name, group in found.items()}
