"""One steady-state period of a schedule: who holds which unit, and who issues in which group, at which cycle."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from twillgpu.costs.record import Problem
from twillgpu.schedule.record import Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """``op`` at work during ``[start, stop)`` cycles of the period, ``amount`` instances held, on the iteration
    that began ``age`` periods ago.
    """

    op: str
    start: int
    stop: int
    age: int
    amount: int


def fold(op: str, start: int, cycles: int, ii_cycles: int, amount: int = 1) -> tuple[Piece, ...]:
    """Cut ``[start, start + cycles)`` at multiples of the interval and move the parts into ``[0, ii_cycles)``.

    The part at absolute time t belongs, in the period that starts at n * ii_cycles, to iteration
    n - t // ii_cycles.
    """
    pieces = []
    at = start
    while at < start + cycles:
        age, slot = divmod(at, ii_cycles)
        length = min(ii_cycles - slot, start + cycles - at)
        pieces.append(Piece(op=op, start=slot, stop=slot + length, age=age, amount=amount))
        at += length
    return tuple(pieces)


def unit_pieces(problem: Problem, schedule: Schedule, unit: str) -> tuple[Piece, ...]:
    """Everything that holds ``unit`` in one period."""
    return tuple(
        piece
        for op in problem.ops
        for use in op.uses
        if use.unit == unit
        for piece in fold(op.name, schedule.start(op.name) + use.offset, use.cycles, schedule.ii_cycles, use.amount)
    )


def group_pieces(problem: Problem, schedule: Schedule, group: int) -> tuple[Piece, ...]:
    """Every op that issues in group number ``group`` in one period; an op that issues for no time is one cycle."""
    issue = {op.name: max(op.issue_cycles, 1) for op in problem.ops}
    return tuple(
        piece
        for op in schedule.ops
        if op.group == group
        for piece in fold(op.name, op.start_cycle, issue[op.name], schedule.ii_cycles)
    )


def utilisation(problem: Problem, ii_cycles: int) -> tuple[tuple[str, float], ...]:
    """Fraction of each unit's capacity that one period holds, busiest first."""
    held = dict.fromkeys((unit.name for unit in problem.units), 0)
    for op in problem.ops:
        for use in op.uses:
            held[use.unit] += use.cycles * use.amount
    shares = ((unit.name, held[unit.name] / (unit.capacity * ii_cycles)) for unit in problem.units)
    return tuple(sorted(shares, key=lambda share: -share[1]))


def covered(pieces: Iterable[Piece], start: int, stop: int) -> dict[tuple[str, int], int]:
    """Instance-cycles that each (op, age) holds within ``[start, stop)``."""
    sums: dict[tuple[str, int], int] = {}
    for piece in pieces:
        overlap = min(piece.stop, stop) - max(piece.start, start)
        if overlap > 0:
            key = (piece.op, piece.age)
            sums[key] = sums.get(key, 0) + overlap * piece.amount
    return sums
