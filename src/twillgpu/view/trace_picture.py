"""A text picture of the simulated steady state: a row per unit and per warp group, a column per stretch of cycles."""

from __future__ import annotations

import string
from collections.abc import Sequence
from itertools import pairwise

from twillgpu.machine.record import Unit
from twillgpu.simulate.record import Event, SteadyState, Trace
from twillgpu.view.period import Piece, covered
from twillgpu.view.text import WIDTH, number, wrap

MARKS = string.ascii_uppercase + string.ascii_lowercase
OTHER = "*"
WAITING = "."
MOST = 3
"""Iterations drawn at most."""


def trace_picture(trace: Trace, steady: SteadyState, *, width: int = WIDTH) -> list[str]:
    """Draw a period of the trace (at most three iterations) from its middle; nothing where the trace is too short.

    A letter is the op that holds most of the column; in the rows of groups a dot is a stall, and of units with
    several shares a digit is the tenths that are held.
    """
    span = round(steady.cycles * min(MOST, max(1, steady.period)))
    begin = _middle(trace.events)
    if begin is None or begin + span > trace.cycles or span < 1:
        return []
    inside = [one for one in trace.events if one.start_cycle < begin + span and _end(one) > begin]
    letters = _letters(inside)
    label = max(len(name) for name in (*trace.groups, *(unit.name for unit in trace.units)))
    columns = max(1, min(span, width - label - 4))
    edges = [begin + span * column // columns for column in range(columns + 1)]
    rows = []
    for unit in trace.units:
        pieces = _held(inside, unit)
        if pieces:
            rows.append(
                (unit.name, _shares(pieces, edges, unit) if unit.capacity > 1 else _ops(pieces, edges, letters))
            )
    rows += [(group, _ops(_issued(inside, group), edges, letters)) for group in trace.groups]
    lines = [f"  {name:<{label}}  {cells}".rstrip() for name, cells in rows if cells.strip()]
    legend = ", ".join(f"{letter} {op}" for op, letter in letters.items() if letter != OTHER)
    where = f"from cycle {number(begin)}, {span / columns:,.3g} cycles per column; dots: the group stands still"
    return [*lines, *wrap(where), *wrap(legend)]


def _middle(events: Sequence[Event]) -> int | None:
    """Return when the first instruction of an iteration in the middle starts."""
    last = max((one.iteration for one in events if one.iteration is not None), default=0)
    starts = [one.start_cycle for one in events if one.iteration == last // 2 and one.kind == "op"]
    return min(starts) if starts and last > 1 else None


def _end(event: Event) -> int:
    return max(event.end_cycle, event.work_end_cycle)


def _letters(events: Sequence[Event]) -> dict[str, str]:
    names = dict.fromkeys(one.op for one in sorted(events, key=lambda one: one.start_cycle) if one.kind == "op")
    return {name: MARKS[at] if at < len(MARKS) else OTHER for at, name in enumerate(names)}


def _held(events: Sequence[Event], unit: Unit) -> list[Piece]:
    return [
        _piece(event.op, event.work_start_cycle + use.offset, use.cycles, use.amount)
        for event in events
        for use in event.uses
        if use.unit == unit.name
    ]


def _issued(events: Sequence[Event], group: str) -> list[Piece]:
    found = []
    for event in events:
        if event.group != group:
            continue
        waits = event.kind in ("wait", "drain", "fence")
        start = event.start_cycle if waits else event.start_cycle - event.stall_cycles
        if event.stall_cycles:
            found.append(_piece(WAITING, start, event.stall_cycles, 1))
        if not waits:
            found.append(_piece(event.op, event.start_cycle, event.end_cycle - event.start_cycle, 1))
    return found


def _piece(op: str, start: int, cycles: int, amount: int) -> Piece:
    return Piece(op=op, start=start, stop=start + cycles, age=0, amount=amount)


def _ops(pieces: Sequence[Piece], edges: Sequence[int], letters: dict[str, str]) -> str:
    cells = ""
    for start, stop in pairwise(edges):
        found = covered(pieces, start, stop)
        op = max(found, key=lambda key: (found[key], key))[0] if found else ""
        cells += WAITING if op == WAITING else letters.get(op, "-" if op else " ")
    return cells


def _shares(pieces: Sequence[Piece], edges: Sequence[int], unit: Unit) -> str:
    cells = ""
    for start, stop in pairwise(edges):
        held = sum(covered(pieces, start, stop).values()) / (unit.capacity * (stop - start))
        cells += " " if held <= 0 else str(min(9, int(held * 10)))
    return cells
