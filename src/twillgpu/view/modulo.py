"""The modulo reservation table of a schedule: which op of which iteration holds which unit, slot by slot."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from twillgpu.costs.record import Problem
from twillgpu.schedule.record import Schedule
from twillgpu.view.lanes import Bar, Chart, Lane, steady_chart
from twillgpu.view.picture import marks
from twillgpu.view.text import WIDTH, number, section, table, wrap


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What is in a lane during a row: (op, how many iterations ago it began), and the instances held in all."""

    ops: tuple[tuple[str, int], ...]
    held: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Slots ``[start, stop)`` of the period during which nothing changes; a cell for every column."""

    start: int
    stop: int
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuloTable:
    """The table: columns are units, then groups (what issues)."""

    columns: tuple[str, ...]
    capacities: tuple[int, ...]
    rows: tuple[Row, ...]


def modulo_table(chart: Chart) -> ModuloTable:
    """Return the table of a steady-state chart: a row from each change in any column to the next."""
    inside = {cycle for lane in chart.lanes for bar in lane.bars for cycle in (bar.start, bar.stop)}
    cuts = sorted({0, chart.stop} | inside)
    return ModuloTable(
        columns=tuple(lane.name for lane in chart.lanes),
        capacities=tuple(lane.capacity for lane in chart.lanes),
        rows=tuple(
            Row(start=start, stop=stop, cells=tuple(_cell(lane, start) for lane in chart.lanes))
            for start, stop in pairwise(cuts)
        ),
    )


def _cell(lane: Lane, cycle: int) -> Cell:
    bars = [bar for bar in lane.bars if bar.start <= cycle < bar.stop]
    ops = tuple(sorted({_key(bar) for bar in bars}))
    return Cell(ops=ops, held=sum(bar.height for bar in bars))


def _key(bar: Bar) -> tuple[str, int]:
    return bar.op, bar.iteration


def modulo_text(heading: str, problem: Problem, schedule: Schedule, *, width: int = WIDTH) -> str:
    """Return the table as plain text, with the letters of the ops as in the report, ending in a newline."""
    found = modulo_table(steady_chart(problem, schedule))
    letters = marks(schedule)
    header = ("from", "to", *found.columns)
    rows = [
        (number(row.start), number(row.stop), *(_words(cell, size, letters) for cell, size in _sized(found, row)))
        for row in found.rows
    ]
    names = ", ".join(f"{letters[name]} {name}" for name in sorted(letters, key=schedule.start))
    notes = wrap(
        "Slots in cycles of the period; a letter is an op, the digit after it how many iterations ago that iteration "
        "began. Columns of groups show what issues. A shared unit shows the instances held of its capacity first.",
        width=width,
    )
    title = f"Modulo reservation table, {number(schedule.ii_cycles)} cycles"
    lines = [
        *wrap(heading, indent="", width=width),
        *section(title, table(header, rows, right=(0, 1), width=width)),
        *section("Ops", wrap(names, width=width)),
        "",
        *notes,
    ]
    return "\n".join(lines) + "\n"


def _sized(found: ModuloTable, row: Row) -> list[tuple[Cell, int]]:
    return list(zip(row.cells, found.capacities, strict=True))


def _words(cell: Cell, capacity: int, letters: dict[str, str]) -> str:
    if not cell.ops:
        return "."
    ops = " ".join(f"{letters[op]}{age}" for op, age in cell.ops)
    return f"{cell.held}/{capacity} {ops}" if capacity > 1 else ops
