"""A simulated run as a Gantt chart: groups with their waits and stalls, and the units that they use."""

from __future__ import annotations

from collections.abc import Iterator

from twillgpu.simulate.record import Event, Trace
from twillgpu.view.lanes import Bar, Chart, Lane, stacked
from twillgpu.view.perfetto import event_name, stall_of
from twillgpu.view.period import Piece

OUTSIDE = -1
"""Iteration of what is before or after the loop."""


def simulated_chart(trace: Trace) -> Chart:
    """Return the run from start to end, units first, as in the other charts."""
    units = (
        Lane(name=unit.name, kind="unit", capacity=unit.capacity, bars=tuple(_held(trace, unit.name, unit.capacity)))
        for unit in trace.units
    )
    groups = (Lane(name=group, kind="group", capacity=1, bars=tuple(_stream(trace, group))) for group in trace.groups)
    lanes = (*(lane for lane in units if lane.bars), *groups)
    return Chart(stop=max(trace.cycles, 1), ii_cycles=trace.ii_cycles, steady=False, lanes=lanes)


def _held(trace: Trace, unit: str, capacity: int) -> Iterator[Bar]:
    pieces = [piece for event in trace.events for piece in _uses(event, unit)]
    if capacity > 1:
        yield from stacked(pieces)
        return
    for one in sorted(pieces, key=lambda one: (one.start, one.op)):
        yield Bar(op=one.op, start=one.start, stop=one.stop, iteration=one.age, level=0, height=1)


def _uses(event: Event, unit: str) -> Iterator[Piece]:
    for use in event.uses:
        if use.unit == unit and use.cycles:
            start = event.work_start_cycle + use.offset
            iteration = OUTSIDE if event.iteration is None else event.iteration
            yield Piece(op=event_name(event), start=start, stop=start + use.cycles, age=iteration, amount=use.amount)


def _stream(trace: Trace, group: str) -> Iterator[Bar]:
    for event in trace.events:
        if event.group != group:
            continue
        iteration = OUTSIDE if event.iteration is None else event.iteration
        first, last = stall_of(event)
        if last > first:
            words = f"stall: {event.stall}"
            yield Bar(op=words, start=first, stop=last, iteration=OUTSIDE, level=0, height=1, what="stall")
        if event.end_cycle > event.start_cycle:
            yield Bar(
                op=event_name(event), start=event.start_cycle, stop=event.end_cycle, iteration=iteration,
                level=0, height=1, what=event.kind,
            )  # fmt: skip
