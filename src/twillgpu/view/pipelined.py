"""The pipelined loop with warp annotations: what the paper's method gives to a compiler, as text and as JSON.

An op of stage s works on iteration t - s in step t of the steady-state loop. With S stages the prologue is the steps
0 to S - 2 without the ops of later stages, the loop runs for t = S - 1 to trips - 1, and the epilogue is the S - 1
steps after it without the ops whose iterations are over.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any

from twillgpu.graph.record import DepGraph, Edge, Op
from twillgpu.lower.record import WarpProgram
from twillgpu.schedule.record import Schedule, ScheduledOp
from twillgpu.view.records import plain
from twillgpu.view.text import number, plural

SCHEMA = "twillgpu-pipelined/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipelined:
    """A schedule with what a compiler needs to carry it out.

    Attributes:
        graph: the loop body, with the names of the kernel ops in each of its ops.
        schedule: its schedule.
        program: the warp program of the schedule, whose barriers and rings are shown; ``None`` for a loop without a
            kernel.
    """

    graph: DepGraph
    schedule: Schedule
    program: WarpProgram | None

    @property
    def stages(self) -> int:
        """Number of stages."""
        return max(self.stage(one) for one in self.schedule.ops) + 1

    def stage(self, one: ScheduledOp) -> int:
        """Return the stage of an op."""
        return one.start_cycle // self.schedule.ii_cycles

    def ordered(self) -> list[ScheduledOp]:
        """Return the ops in the order of their starts in one period. Where these tie, older iterations come first,
        and in one iteration what others depend on.
        """
        interval, ranks = self.schedule.ii_cycles, self._ranks()
        return sorted(
            self.schedule.ops, key=lambda one: (one.start_cycle % interval, -one.start_cycle, ranks[one.name])
        )

    def _ranks(self) -> dict[str, int]:
        """Return the place of every op in an order that keeps the dependences inside an iteration."""
        before: dict[str, list[str]] = {op.name: [] for op in self.graph.ops}
        for edge in self.graph.edges:
            if edge.distance == 0:
                before[edge.head].append(edge.tail)
        return {name: rank for rank, name in enumerate(TopologicalSorter(before).static_order())}


def pipelined_json(loop: Pipelined) -> str:
    """Return the pipelined loop as JSON: stage, order and group of every op, dependences, buffers and barriers."""
    schedule, interval = loop.schedule, loop.schedule.ii_cycles
    ops = {op.name: op for op in loop.graph.ops}
    places = {one.name: place for place, one in enumerate(loop.ordered())}
    document = {
        "schema": SCHEMA,
        "name": loop.graph.name,
        "machine": schedule.machine,
        "ii_cycles": interval,
        "stages": loop.stages,
        "trip_count": loop.graph.trip_count,
        "groups": plain(schedule.groups),
        "ops": [
            {
                "name": one.name,
                "kind": ops[one.name].kind,
                "source": ops[one.name].source,
                "members": list(ops[one.name].members),
                "stage": loop.stage(one),
                "order": places[one.name],
                "group": one.group,
                "slot": one.start_cycle % interval,
                "start_cycle": one.start_cycle,
            }
            for one in schedule.ops
        ],
        "edges": [_edge(edge) for edge in loop.graph.edges],
        "buffers": plain(schedule.buffers),
        "rings": None if loop.program is None else plain(loop.program.rings),
        "barriers": None if loop.program is None else plain(loop.program.barriers),
    }
    return json.dumps(document, indent=2) + "\n"


def _edge(edge: Edge) -> dict[str, Any]:
    return {"from": edge.tail, "to": edge.head, "distance": edge.distance, "kind": edge.kind}


def pipelined_text(loop: Pipelined) -> str:
    """Return the pipelined loop as text: one op a line, with its iteration, operands, group, stage and slot."""
    return "\n".join(_lines(loop)) + "\n"


def _lines(loop: Pipelined) -> Iterator[str]:
    schedule, last = loop.schedule, loop.stages - 1
    interval = number(schedule.ii_cycles)
    yield f"pipelined {loop.graph.name} on {schedule.machine}: {interval} cycles, {plural(loop.stages, 'stage')}"
    for place, group in enumerate(schedule.groups):
        registers = f", {group.registers_per_thread} registers" if group.registers_per_thread else ""
        yield f"group {place} {group.name}: {plural(group.warps, 'warp')}{registers}"
    for buffer in schedule.buffers:
        size = f"{buffer.depth} x {number(buffer.bytes)} bytes"
        yield f"buffer {buffer.name}: {size} of {buffer.space} at {number(buffer.offset_bytes)}"
    for barrier in loop.program.barriers if loop.program is not None else ():
        count = f"{barrier.copies} x {plural(barrier.arrivals, 'arrival')}"
        yield f"barrier {barrier.name}: {count}, for {'; '.join(barrier.serves)}"
    if last:
        yield "prologue"
    for step in range(last):
        yield from (_op(loop, one, step, "") for one in loop.ordered() if loop.stage(one) <= step)
    yield f"for t in range({last}, {'trips' if loop.graph.trip_count is None else loop.graph.trip_count})"
    yield from (_op(loop, one, 0, "t") for one in loop.ordered())
    if last:
        yield "epilogue"
    for step in range(last):
        yield from (_op(loop, one, step, "trips") for one in loop.ordered() if loop.stage(one) > step)


def _op(loop: Pipelined, one: ScheduledOp, step: int, base: str) -> str:
    """Return the line of an op in step ``base + step``."""
    op = next(op for op in loop.graph.ops if op.name == one.name)
    stage, slot = loop.stage(one), one.start_cycle % loop.schedule.ii_cycles
    operands = ", ".join(
        f"{edge.tail}[{_iteration(base, step - stage - edge.distance)}]" for edge in _inputs(loop.graph, op)
    )
    head = f"  {op.name}[{_iteration(base, step - stage)}] = {op.kind}({operands})"
    group = loop.schedule.groups[one.group].name
    return f"{head} group {group} stage {stage} slot {slot}" + (f" // {op.source}" if op.source else "")


def _inputs(graph: DepGraph, op: Op) -> list[Edge]:
    """Return the edges of the values that an op reads, each once."""
    found = {(edge.tail, edge.distance): edge for edge in graph.edges if edge.head == op.name and edge.kind == "data"}
    return list(found.values())


def _iteration(base: str, offset: int) -> str:
    if not base:
        return str(offset)
    return f"{base}{offset:+}" if offset else base
