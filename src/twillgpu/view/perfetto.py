"""A simulated run in the Trace Event Format, which Perfetto (ui.perfetto.dev) and chrome://tracing open.

Time stamps of the format are microseconds: one cycle is written as 0.001, so that what viewers show as a nanosecond
is a cycle. Groups and units that one op holds at a time are tracks of slices; shared units are counters. A flow arrow
leads from what completed a barrier to the wait that it released. A slice is there for every event that takes time;
slices of one track never overlap.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator

from twillgpu.simulate.record import Event, Trace

CYCLE = 0.001
GROUPS, UNITS = 1, 2
"""Process numbers: the warp groups, and the units."""
Entry = dict[str, object]


def perfetto_json(trace: Trace) -> str:
    """Return the trace as one JSON document in the object form of the format, ending in a newline."""
    document = {
        "traceEvents": [*_names(trace), *_groups(trace), *_units(trace), *_counters(trace), *_flows(trace)],
        "displayTimeUnit": "ns",
        "otherData": {
            "kernel": trace.kernel,
            "machine": trace.machine,
            "interval": f"{trace.ii_cycles} cycles",
            "time": "1 ns is 1 cycle",
        },
    }
    return json.dumps(document, indent=1) + "\n"


def _names(trace: Trace) -> Iterator[Entry]:
    title = f"{trace.kernel} on {trace.machine}"
    processes = ((GROUPS, f"warp groups: {title}", trace.groups), (UNITS, f"units: {title}", _single(trace)))
    for pid, name, threads in processes:
        yield {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}
        yield {"ph": "M", "name": "process_sort_index", "pid": pid, "tid": 0, "args": {"sort_index": pid}}
        for tid, thread in enumerate(threads, start=1):
            yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": thread}}
            yield {"ph": "M", "name": "thread_sort_index", "pid": pid, "tid": tid, "args": {"sort_index": tid}}


def _single(trace: Trace) -> tuple[str, ...]:
    return tuple(unit.name for unit in trace.units if unit.capacity == 1)


def stall_of(event: Event) -> tuple[int, int]:
    """Return the cycles for which the event's group stood still before it; empty for waits, which contain them."""
    inside = event.kind in ("wait", "drain", "fence")
    return (
        (event.start_cycle, event.start_cycle)
        if inside
        else (event.start_cycle - event.stall_cycles, event.start_cycle)
    )


def event_name(event: Event) -> str:
    """Return what a slice is called: the op for work, otherwise what is done with the barrier or engine."""
    return event.op if event.kind == "op" else f"{event.kind} {event.op}"


def _groups(trace: Trace) -> Iterator[Entry]:
    tid = {group: index for index, group in enumerate(trace.groups, start=1)}
    for event in trace.events:
        where = (GROUPS, tid[event.group])
        first, last = stall_of(event)
        if last > first:
            yield _slice(f"stall: {event.stall}", "stall", where, (first, last), {})
        if event.end_cycle > event.start_cycle:
            arguments: Entry = {"tile": event.tile, "engine": event.engine, "set by": event.why}
            if event.iteration is not None:
                arguments["iteration"] = event.iteration
            if event.stall:
                arguments["stall"] = f"{event.stall}, {event.stall_cycles} cycles"
            yield _slice(event_name(event), event.kind, where, (event.start_cycle, event.end_cycle), arguments)


def _slice(name: str, category: str, where: tuple[int, int], cycles: tuple[int, int], arguments: Entry) -> Entry:
    start, stop = cycles
    return {
        "ph": "X",
        "name": name,
        "cat": category,
        "pid": where[0],
        "tid": where[1],
        "ts": _time(start),
        "dur": _time(stop - start),
        "args": arguments,
    }


def _time(cycles: int) -> float:
    return round(cycles * CYCLE, 3)


def _units(trace: Trace) -> Iterator[Entry]:
    tid = {unit: index for index, unit in enumerate(_single(trace), start=1)}
    for event in trace.events:
        for use in event.uses:
            if use.unit in tid and use.cycles:
                start = event.work_start_cycle + use.offset
                arguments: Entry = {"group": event.group, "iteration": event.iteration}
                yield _slice(
                    event_name(event), event.kind, (UNITS, tid[use.unit]), (start, start + use.cycles), arguments
                )


def _counters(trace: Trace) -> Iterator[Entry]:
    """Shared units: the instances held, whenever that changes."""
    for unit in (unit for unit in trace.units if unit.capacity > 1):
        changes: dict[int, int] = defaultdict(int)
        for event in trace.events:
            for use in event.uses:
                if use.unit == unit.name and use.cycles:
                    changes[event.work_start_cycle + use.offset] += use.amount
                    changes[event.work_start_cycle + use.offset + use.cycles] -= use.amount
        held = 0
        for cycle in sorted(changes):
            held += changes[cycle]
            name = f"{unit.name} (of {unit.capacity})"
            yield {"ph": "C", "name": name, "pid": UNITS, "tid": 0, "ts": _time(cycle), "args": {"held": held}}


def _flows(trace: Trace) -> Iterator[Entry]:
    """Arrows of barriers: each starts and ends inside a slice, as the format asks for."""
    tid = {group: index for index, group in enumerate(trace.groups, start=1)}
    for number, event in enumerate(trace.events):
        if event.kind != "wait" or event.why != "barrier" or event.cause < 0 or event.end_cycle <= event.start_cycle:
            continue
        source = trace.events[event.cause]
        if source.end_cycle <= source.start_cycle:
            continue
        flow: Entry = {"name": event.op, "cat": "barrier", "id": number}
        yield {**flow, "ph": "s", "pid": GROUPS, "tid": tid[source.group], "ts": _time(source.start_cycle)}
        end = {"ph": "f", "bp": "e", "pid": GROUPS, "tid": tid[event.group], "ts": _time(event.end_cycle - 1)}
        yield {**flow, **end}
