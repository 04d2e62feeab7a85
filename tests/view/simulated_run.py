"""A small simulated run made by hand: a load that a barrier hands to a consumer, twice, on two units."""

from __future__ import annotations

from twillgpu.graph.record import Use
from twillgpu.machine.record import Unit
from twillgpu.simulate.record import Event, EventKind, SimulationOptions, Trace, Why

TMA = (Use(unit="tma", cycles=20),)
ALU = (Use(unit="issue", cycles=30, amount=2), Use(unit="alu", cycles=30))


def _event(  # noqa: PLR0917  # an event in one line
    number: int,
    group: str,
    op: str,
    kind: EventKind,
    cycles: tuple[int, int],
    iteration: int | None = None,
    uses: tuple[Use, ...] = (),
    stall: tuple[str, int] = ("", 0),
    cause: tuple[int, Why] = (-1, "order"),
) -> Event:
    start, end = cycles
    return Event(
        number=number,
        group=group,
        op=op,
        kind=kind,
        engine="tma" if uses == TMA else "simt",
        tile=0,
        iteration=iteration,
        unit=uses[0].unit if uses else "",
        start_cycle=start,
        end_cycle=end,
        stall=stall[0],
        stall_cycles=stall[1],
        work_start_cycle=start,
        work_end_cycle=start + max((use.cycles for use in uses), default=0),
        uses=uses,
        cause=cause[0],
        why=cause[1],
        work_cause=-1,
        work_why="issue",
    )


EVENTS = (
    _event(0, "producer", "setup", "op", (0, 4)),
    _event(1, "producer", "load", "op", (4, 9), 0, TMA),
    _event(2, "consumer", "full", "wait", (0, 24), 0, stall=("barrier full", 22), cause=(1, "barrier")),
    _event(3, "producer", "load", "op", (24, 29), 1, TMA, stall=("unit tma", 15), cause=(1, "unit")),
    _event(4, "consumer", "read", "op", (24, 54), 0, ALU),
    _event(5, "consumer", "full", "wait", (54, 56), 1),
    _event(6, "consumer", "read", "op", (56, 86), 1, ALU),
)
TRACE = Trace(
    kernel="small",
    machine="hand",
    ii_cycles=32,
    groups=("producer", "consumer"),
    units=(Unit(name="tma", capacity=1), Unit(name="issue", capacity=8), Unit(name="alu", capacity=1)),
    events=EVENTS,
    cycles=86,
    options=SimulationOptions(trips=(2,)),
)
