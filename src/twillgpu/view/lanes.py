"""What a Gantt chart draws: a lane for every unit and warp group, with bars in cycles.

One period of the steady state, or the first iterations from start to end with prologue and epilogue.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from twillgpu.costs.record import Problem
from twillgpu.schedule.record import Schedule
from twillgpu.view.period import Piece, group_pieces, unit_pieces

LaneKind = Literal["unit", "group"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A rectangle: cycles ``[start, stop)``, instances ``[level, level + height)`` of the lane.

    Attributes:
        op: what is at work; for a wait, a stall or a hand-over, the words for it.
        iteration: which iteration it belongs to: in a steady-state chart how many iterations ago that began; -1 for
            what belongs to none.
        what: ``op``, or the kind of an event of a simulated run (``wait``, ``stall`` ...).
    """

    op: str
    start: int
    stop: int
    iteration: int
    level: int
    height: int
    what: str = "op"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """A row of the chart: ``capacity`` is 1 for a group."""

    name: str
    kind: LaneKind
    capacity: int
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A Gantt chart over cycles ``[0, stop)``.

    ``steady``: it shows one period, so that ``iteration`` of its bars counts backwards from the newest.
    """

    stop: int
    ii_cycles: int
    steady: bool
    lanes: tuple[Lane, ...]


def steady_chart(problem: Problem, schedule: Schedule) -> Chart:
    """Return one period of the steady state."""
    units = [(unit.name, unit.capacity, unit_pieces(problem, schedule, unit.name)) for unit in problem.units]
    groups = [(group.name, group_pieces(problem, schedule, index)) for index, group in enumerate(schedule.groups)]
    return Chart(stop=schedule.ii_cycles, ii_cycles=schedule.ii_cycles, steady=True, lanes=_lanes(units, groups))


def whole_chart(problem: Problem, schedule: Schedule, iterations: int) -> Chart:
    """Return a loop of so many iterations from start to end, prologue and epilogue included."""
    units = [
        (unit.name, unit.capacity, tuple(_uses(problem, schedule, unit.name, iterations))) for unit in problem.units
    ]
    groups = [
        (group.name, tuple(_issues(problem, schedule, index, iterations)))
        for index, group in enumerate(schedule.groups)
    ]
    lanes = _lanes(units, groups)
    stop = max((bar.stop for lane in lanes for bar in lane.bars), default=schedule.ii_cycles)
    return Chart(stop=stop, ii_cycles=schedule.ii_cycles, steady=False, lanes=lanes)


def default_iterations(schedule: Schedule) -> int:
    """Return how many iterations show prologue, a steady state and epilogue: the stages, and two more."""
    return max(op.start_cycle for op in schedule.ops) // schedule.ii_cycles + 3


def _uses(problem: Problem, schedule: Schedule, unit: str, iterations: int) -> Iterator[Piece]:
    for op in problem.ops:
        for use in op.uses:
            if use.unit == unit:
                start = schedule.start(op.name) + use.offset
                yield from _repeated(op.name, start, use.cycles, use.amount, schedule.ii_cycles, iterations)


def _issues(problem: Problem, schedule: Schedule, group: int, iterations: int) -> Iterator[Piece]:
    issue = {op.name: max(op.issue_cycles, 1) for op in problem.ops}
    for op in schedule.ops:
        if op.group == group:
            yield from _repeated(op.name, op.start_cycle, issue[op.name], 1, schedule.ii_cycles, iterations)


def _repeated(op: str, start: int, cycles: int, amount: int, interval: int, iterations: int) -> Iterator[Piece]:
    for age in range(iterations):
        at = start + age * interval
        yield Piece(op=op, start=at, stop=at + cycles, age=age, amount=amount)


def _lanes(
    units: list[tuple[str, int, tuple[Piece, ...]]], groups: list[tuple[str, tuple[Piece, ...]]]
) -> tuple[Lane, ...]:
    """Return the lanes of the units that are used, then those of the groups."""
    return (
        *(
            Lane(
                name=name,
                kind="unit",
                capacity=capacity,
                bars=tuple(stacked(pieces) if capacity > 1 else _flat(pieces)),
            )
            for name, capacity, pieces in units
            if pieces
        ),
        *(Lane(name=name, kind="group", capacity=1, bars=tuple(_flat(pieces))) for name, pieces in groups),
    )


def _flat(pieces: Iterable[Piece]) -> Iterator[Bar]:
    for piece in sorted(pieces, key=lambda piece: (piece.start, piece.op)):
        yield Bar(op=piece.op, start=piece.start, stop=piece.stop, iteration=piece.age, level=0, height=1)


def stacked(pieces: Iterable[Piece]) -> list[Bar]:
    """Pile up what holds a shared unit: at every cycle the pieces stand on each other, the oldest at the bottom."""
    ordered = sorted(pieces, key=lambda piece: (piece.start, piece.op, piece.age))
    cuts = sorted({cycle for piece in ordered for cycle in (piece.start, piece.stop)})
    bars: list[Bar] = []
    last: dict[tuple[str, int, int, int], int] = {}
    for start, stop in pairwise(cuts):
        level = 0
        for piece in (piece for piece in ordered if piece.start <= start < piece.stop):
            key = (piece.op, piece.age, level, piece.amount)
            before = last.get(key)
            bar = Bar(op=piece.op, start=start, stop=stop, iteration=piece.age, level=level, height=piece.amount)
            if before is not None and bars[before].stop == start:
                bars[before] = Bar(
                    op=piece.op, start=bars[before].start, stop=stop, iteration=piece.age, level=level,
                    height=piece.amount,
                )  # fmt: skip
            else:
                last[key] = len(bars)
                bars.append(bar)
            level += piece.amount
    return bars
