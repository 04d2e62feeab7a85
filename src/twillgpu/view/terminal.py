"""A compact picture for the terminal: that of the report, and how full registers and memories are; in colour."""

from __future__ import annotations

from twillgpu.costs.record import Problem
from twillgpu.schedule.record import Schedule
from twillgpu.view.occupancy import Occupancy, occupancies
from twillgpu.view.palette import ANSI
from twillgpu.view.picture import AGES, marks, picture
from twillgpu.view.text import WIDTH, number, section, wrap

TENTHS = 10


def terminal_text(heading: str, problem: Problem, schedule: Schedule, *, width: int = WIDTH, in_colour: bool) -> str:
    """Return the picture of a period with its letters explained, in at most ``width`` columns.

    Args:
        heading: what was scheduled, on what, and the interval.
        problem: the problem.
        schedule: a verified schedule of it.
        width: columns.
        in_colour: letters in the colour of their iteration (SGR sequences); the text is the same without.
    """
    lines = picture(problem, schedule, width=width)
    letters = marks(schedule)
    names = ", ".join(f"{letters[name]}\N{NO-BREAK SPACE}{name}" for name in letters)
    drawn = coloured(lines) if in_colour else lines
    title = f"One period of the steady state, {number(schedule.ii_cycles)} cycles"
    text = [
        *wrap(heading, indent="", width=width),
        *section("Ops", wrap(names, width=width)),
        *section(title, drawn),
        *section("Occupancy over the period (tenths of the limit, # all of it)", _full(problem, schedule, width)),
    ]
    return "\n".join(text) + "\n"


def coloured(lines: list[str]) -> list[str]:
    """Return a picture's lines with every letter in the colour of the iteration that the line below it names."""
    ticks = next((index for index, line in enumerate(lines) if line.strip().startswith("|")), 0)
    margin = lines[ticks].index("|")
    below = [*lines[1:], ""]
    return [
        _painted(line, ages) if index > ticks and ages and not ages[:margin].strip() else line
        for index, (line, ages) in enumerate(zip(lines, below, strict=True))
    ]


def _painted(line: str, ages: str) -> str:
    text, now = "", ""
    for letter, age in zip(line, ages.ljust(len(line)), strict=False):
        sgr = "" if age == " " or letter == "." else str(ANSI[AGES.index(age) % len(ANSI)])
        if sgr != now:
            text += f"\x1b[{sgr or 0}m"
            now = sgr
        text += letter
    return text + ("\x1b[0m" if now else "")


def _full(problem: Problem, schedule: Schedule, width: int) -> list[str]:
    found = [one for one in occupancies(problem, schedule) if one.limit]
    label = max((len(one.name) for one in found), default=0)
    figures = {one.name: f"{number(one.peak)} of {number(one.limit or 0)} {_unit(one)}" for one in found}
    columns = max(width - label - 6 - max((len(text) for text in figures.values()), default=0), 8)
    return [f"  {one.name:<{label}}  {_row(one, columns)}  {figures[one.name]}" for one in found]


def _unit(one: Occupancy) -> str:
    return "registers" if one.kind == "registers" else "bytes"


def _row(one: Occupancy, columns: int) -> str:
    """Return the fullest moment of every column in tenths of the limit."""
    interval, limit = one.steps[-1].stop, one.limit or 1
    columns = min(columns, interval)
    row = ""
    for column in range(columns):
        start, stop = column * interval // columns, (column + 1) * interval // columns
        most = max(step.amount for step in one.steps if step.start < stop and step.stop > start)
        row += "." if most == 0 else "#" if most >= 0.95 * limit else str(round(most / limit * TENTHS))
    return row
