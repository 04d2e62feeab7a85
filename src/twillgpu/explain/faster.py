"""A problem on a machine one of whose units is faster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from twillgpu.costs.record import PricedOp, Problem
from twillgpu.graph.record import Use

FINE = 16
"""Parts of a share: what an op holds of a unit is rounded up to them when it has less time."""


LOSS = 0.05
"""Beyond it, more instances of a unit are a better picture of its speed than shorter uses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Speed:
    """What is faster: ``percent`` of its speed, so that ``before`` instances become ``after`` ones; whether ops that
    hold all of them do so for a shorter time.
    """

    unit: str
    percent: int
    before: int
    after: int
    shorter: bool
    capacity: Mapping[str, int]


def faster(problem: Problem, unit: str, percent: int, *, pace: bool) -> Problem:
    """Return ``problem`` with ``unit`` at ``percent`` (100 or more) of its speed.

    Without ``pace`` only the time for which ops hold the unit changes, and no schedule is lost. With it ops also go
    faster; they then press harder on what else they hold, so that neither is always the better one.

    Where that is a whole number of instances (or shares) more, there are more of them; an op that holds all of them
    holds all of the new ones, for the shorter time, unless rounding to cycles would cost more than ``LOSS``.
    Otherwise every use of the unit is shorter. With ``pace``, other units that an op holds for the same run do the
    same work in the shorter time, if they can: the op holds more of them (shares are cut into ``FINE`` parts for
    this); if they cannot, they are what the op waits for. An op that ends sooner for all this issues, has its result,
    and has read its operands that much sooner.
    """
    for name in sorted(_companions(problem, unit) if pace else ()):
        problem = _finer(problem, name)
    capacity = {one.name: one.capacity for one in problem.units}
    grown, rest = divmod(capacity[unit] * percent, 100)
    after = capacity[unit] if rest else grown
    speed = _Speed(
        unit=unit,
        percent=percent,
        before=capacity[unit],
        after=after,
        shorter=_loss(problem, unit, percent) <= LOSS,
        capacity=capacity,
    )
    units = tuple(replace(one, capacity=after) if one.name == unit else one for one in problem.units)
    if not pace:
        return replace(problem, units=units, ops=tuple(_shorter_uses(op, speed) for op in problem.ops))
    ops = tuple(_faster(op, speed) for op in problem.ops)
    pairs = tuple(zip(problem.ops, ops, strict=True))
    sooner = {old.name: old.latency_cycles - new.latency_cycles for old, new in pairs}
    real = {old.name: old.real_latency_cycles - new.real_latency_cycles for old, new in pairs}
    return replace(
        problem,
        ops=ops,
        units=units,
        edges=tuple(
            replace(
                edge,
                latency_cycles=max(0, edge.latency_cycles - sooner[edge.tail]),
                read_cycles=max(0, edge.read_cycles - real[edge.head]),
            )
            for edge in problem.edges
        ),
    )


def _companions(problem: Problem, unit: str) -> set[str]:
    """Return the units of several shares that some op holds for the same run as ``unit``."""
    several = {one.name for one in problem.units if one.capacity > 1 and one.name != unit}
    found = set()
    for op in problem.ops:
        runs = {(use.offset, use.cycles) for use in op.uses if use.unit == unit}
        found |= {use.unit for use in op.uses if use.unit in several and (use.offset, use.cycles) in runs}
    return found


def _finer(problem: Problem, unit: str) -> Problem:
    """Return the same problem with every share of ``unit`` cut into ``FINE`` parts."""
    return replace(
        problem,
        units=tuple(replace(one, capacity=FINE * one.capacity) if one.name == unit else one for one in problem.units),
        ops=tuple(
            replace(
                op,
                uses=tuple(replace(use, amount=FINE * use.amount) if use.unit == unit else use for use in op.uses),
            )
            for op in problem.ops
        ),
    )


def _shorter_uses(op: PricedOp, speed: _Speed) -> PricedOp:
    return replace(op, uses=tuple(_shorter(use, speed) if use.unit == speed.unit else use for use in op.uses))


def _faster(op: PricedOp, speed: _Speed) -> PricedOp:
    runs = {(use.offset, use.cycles): _shorter(use, speed).cycles for use in op.uses if use.unit == speed.unit}
    if not runs:
        return op
    uses = tuple(_shorter(use, speed) if use.unit == speed.unit else _beside(use, runs, speed) for use in op.uses)
    saved = max(0, _end(op.uses) - _end(uses))
    return replace(
        op,
        uses=uses,
        issue_cycles=op.issue_cycles - saved if op.issue_cycles >= _end(op.uses) else op.issue_cycles,
        latency_cycles=max(0, op.latency_cycles - saved),
        real_latency_cycles=max(0, op.real_latency_cycles - saved),
    )


def _shorter(use: Use, speed: _Speed) -> Use:
    cycles = -(-use.cycles * 100 // speed.percent)
    if speed.before == speed.after:
        return replace(use, cycles=cycles)
    whole = use.amount >= speed.before and speed.shorter
    return replace(use, cycles=cycles, amount=speed.after) if whole else use


def _loss(problem: Problem, unit: str, percent: int) -> float:
    """Return by how much rounding to cycles lengthens the shorter uses of ``unit``, as a fraction."""
    held = [use.cycles for op in problem.ops for use in op.uses if use.unit == unit]
    exact = sum(held) * 100 / percent
    return sum(-(-cycles * 100 // percent) for cycles in held) / exact - 1 if exact else 0.0


def _beside(use: Use, runs: Mapping[tuple[int, int], int], speed: _Speed) -> Use:
    """Return the use of another unit: the same work in the time of the run that it goes with, or with all of it."""
    work = use.cycles * use.amount
    cycles = max(runs.get((use.offset, use.cycles), use.cycles), -(-work // speed.capacity[use.unit]))
    if not 0 < cycles < use.cycles:
        return use
    return replace(use, cycles=cycles, amount=-(-work // cycles))


def _end(uses: tuple[Use, ...]) -> int:
    return max((use.offset + use.cycles for use in uses), default=0)
