"""What a group has to do, instruction by instruction, with the cost of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from twillgpu.costs.record import Problem
from twillgpu.emulate import steps
from twillgpu.emulate.unroll import Unroller, moments, number
from twillgpu.lower.record import Execute, Get, Instruction, Put
from twillgpu.simulate.prices import FREE, Cost, Prices
from twillgpu.simulate.record import EventKind


class Planned(NamedTuple):
    """An instruction that a group comes to.

    Attributes:
        instruction, step: what it is in the program, and to the emulator (barrier copies and phases resolved).
        tile, iteration: of the block; ``iteration`` is ``None`` outside the loop.
        nth: its iteration counted over all tiles.
        cost: what it costs.
    """

    instruction: Instruction
    step: steps.Step
    tile: int
    iteration: int | None
    nth: int
    cost: Cost

    @property
    def name(self) -> str:
        """The op, the value handed over, or what the emulator calls it."""
        if isinstance(self.instruction, Execute):
            return self.instruction.op or self.instruction.members[0]
        return self.instruction.value if isinstance(self.instruction, Put | Get) else self.step.label.text

    @property
    def kind(self) -> EventKind:
        """Whether this work is an op or a hand-over."""
        if isinstance(self.instruction, Put):
            return "put"
        return "get" if isinstance(self.instruction, Get) else "op"

    @property
    def in_loop(self) -> bool:
        """Whether it belongs to an iteration."""
        return getattr(self.instruction, "iteration", None) is not None


def plan(unroller: Unroller, group: int, trips: Sequence[int], prices: Prices) -> Iterator[Planned]:
    """Yield what a group does, tile by tile."""
    warps = unroller.program.groups[group].warps
    costs: dict[int, Cost] = {}
    for first in moments(trips):
        for instruction, moment, step in unroller.instructions(group, first):
            cost = costs.get(id(instruction))
            if cost is None:
                cost = costs[id(instruction)] = _cost(instruction, prices, warps)
            at = getattr(instruction, "iteration", None)
            here = None if at is None else number(at, moment)
            label = step.label.iteration if here is None else here
            yield Planned(instruction, step, first.tile, label, first.base + (here or 0), cost)


def _cost(instruction: Instruction, prices: Prices, warps: int) -> Cost:
    if isinstance(instruction, Execute):
        return prices.execute(instruction, warps)
    if isinstance(instruction, Put | Get):
        return prices.handover(instruction, warps)
    return FREE


def tails(problem: Problem) -> dict[str, list[tuple[str, int]]]:
    """Return what each op reads: the ops it depends on by data, and how many iterations ago."""
    found: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for edge in problem.edges:
        if edge.kind == "data":
            found[edge.head].append((edge.tail, edge.distance))
    return found


def operands(now: Planned, tails_of: dict[str, list[tuple[str, int]]]) -> list[tuple[str, int]]:
    """Return the register results that an instruction needs, as graph op and iteration counted over all tiles.

    A hand-over needs the value itself, unless it is the graph op that stores it.
    """
    one, result = now.instruction, now.cost.result
    if not result or isinstance(one, Get):
        return []
    if isinstance(one, Put) and one.access.ring != result:
        return [(result, now.nth)]
    return [(tail, now.nth - distance) for tail, distance in tails_of.get(result, ())]
