"""A text picture of one steady-state period: a row per unit and per warp group, a column per stretch of cycles."""

from __future__ import annotations

import string
from dataclasses import dataclass

from twillgpu.costs.record import Problem
from twillgpu.machine.record import Unit
from twillgpu.schedule.record import Schedule
from twillgpu.view.period import Piece, covered, group_pieces, unit_pieces
from twillgpu.view.text import WIDTH, number, plural, wrap

MARKS = string.ascii_uppercase + string.ascii_lowercase
OTHER = "*"
"""Mark of ops beyond the letters."""
AGES = string.digits + string.ascii_lowercase
"""How many iterations behind: 0 to 9, then a for 10 and so on."""
TICKS = 4


def marks(schedule: Schedule) -> dict[str, str]:
    """Give each op a letter, in order of start."""
    ordered = sorted(schedule.ops, key=lambda op: op.start_cycle)
    return {op.name: MARKS[place] if place < len(MARKS) else OTHER for place, op in enumerate(ordered)}


def picture(problem: Problem, schedule: Schedule, *, width: int = WIDTH) -> list[str]:
    """Draw the period ``[0, I)``. Each row has the letter of the op and, below it, the age of its iteration."""
    used = {use.unit for op in problem.ops for use in op.uses}
    units = tuple(unit for unit in problem.units if unit.name in used)
    label = max(len(name) for name in (*(unit.name for unit in units), *(group.name for group in schedule.groups)))
    frame = _Frame(ii_cycles=schedule.ii_cycles, label=label, cell=_cell(schedule.ii_cycles, width - label - 4))
    letters = marks(schedule)
    rows = frame.scale()
    for unit in units:
        pieces = unit_pieces(problem, schedule, unit.name)
        cells = (frame.load(pieces, unit.capacity), "") if unit.capacity > 1 else frame.cells(pieces, letters)
        rows += frame.rows(unit.name, *cells)
    for index, group in enumerate(schedule.groups):
        rows += frame.rows(group.name, *frame.cells(group_pieces(problem, schedule, index), letters))
    return [*rows, *_legend(units, schedule, frame, width)]


def _cell(ii_cycles: int, columns: int) -> int:
    """Return the cycles of a column: whole, and a multiple of eight where it is more than eight."""
    cell = -(-ii_cycles // max(columns, 1))
    return cell if cell <= 8 else -(-cell // 8) * 8


@dataclass(frozen=True, slots=True, kw_only=True)
class _Frame:
    """Geometry of the picture: period in cycles, cycles of a column, columns of the row labels."""

    ii_cycles: int
    cell: int
    label: int

    def spans(self) -> list[tuple[int, int]]:
        """Return the cycles that each column stands for."""
        return [(start, min(start + self.cell, self.ii_cycles)) for start in range(0, self.ii_cycles, self.cell)]

    def cells(self, pieces: tuple[Piece, ...], letters: dict[str, str]) -> tuple[str, str]:
        """Return the letters of the ops that fill most of each column, and the ages of their iterations."""
        row, ages = "", ""
        for start, stop in self.spans():
            shares = covered(pieces, start, stop)
            op, age = max(shares, key=lambda key: (shares[key], key)) if shares else ("", -1)
            row += letters[op] if shares else "."
            ages += " " if age < 0 else AGES[min(age, len(AGES) - 1)]
        return row, ages

    def load(self, pieces: tuple[Piece, ...], capacity: int) -> str:
        """Return the tenths of a shared unit's capacity that each column holds."""
        row = ""
        for start, stop in self.spans():
            held = sum(covered(pieces, start, stop).values()) / (capacity * (stop - start))
            row += "." if held == 0 else "#" if held >= 0.95 else str(round(held * 10))
        return row

    def rows(self, name: str, row: str, ages: str) -> list[str]:
        """Return a labelled row, with the ages on a line below it where there are any."""
        lines = [f"  {name:<{self.label}}  {row}"]
        return [*lines, f"  {'':<{self.label}}  {ages}".rstrip()] if ages.strip() else lines

    def scale(self) -> list[str]:
        """Return the cycles at the ticks, and the ticks."""
        figures, ticks = "", ""
        spans = self.spans()
        for column in range(0, len(spans), max(len(spans) // TICKS, 1)):
            figure = number(spans[column][0])
            if figures and len(figures) >= column:
                continue
            figures = figures.ljust(column) + figure
            ticks = ticks.ljust(column) + "|"
        margin = " " * (self.label + 4)
        return [margin + figures, margin + ticks]


def _legend(units: tuple[Unit, ...], schedule: Schedule, frame: _Frame, width: int) -> list[str]:
    text = f"One column is {plural(frame.cell, 'cycle')}; letters are the ops above"
    if len(schedule.ops) > len(MARKS):
        text += f" ({OTHER}: any op beyond {plural(len(MARKS), 'letter')})"
    text += "; the digit below a letter says how many iterations behind the newest that work is"
    if max(op.start_cycle for op in schedule.ops) >= 10 * schedule.ii_cycles:
        text += " (a is 10)"
    text += ". Rows of groups show what issues, not what waits."
    shared = [unit.name for unit in units if unit.capacity > 1]
    if shared:
        text += f" Shared units ({', '.join(shared)}) show the tenths of their capacity in use, # all of it."
    return wrap(text, width=width)
