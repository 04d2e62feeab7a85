"""What a warp group does in one iteration, before it is put in order: ops, hand-overs and drains."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from twillgpu.lower.flow import Needs, Use
from twillgpu.lower.record import Engine
from twillgpu.lower.sheet import Sheet
from twillgpu.lower.storage import STAGING, Touch, op_touches

StepKind = Literal["op", "put", "get", "drain", "issued"]
DRAINED = ("wgmma", "cp_async", "tma_store")
"""Engines whose completion the issuing group observes itself."""

_DRAIN, _GET, _OP, _ISSUED = -3, -2, 0, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A part of one iteration's work in one group.

    Attributes:
        name: unique name.
        kind: a graph op, the hand-over of a register value (``put``, ``get``), the observation that an asynchronous
            op is complete (``drain``), or the moment after its issue (``issued``).
        op: the graph op that it is or belongs to.
        group: index of the group.
        engine: who does the work.
        time: start cycle in iteration 0.
        base, shift, place: it goes next to the step ``base`` of the iteration ``shift`` later: before it where
            ``place`` is negative, after it where it is positive.
        value, ring: for ``put`` and ``get``.
    """

    name: str
    kind: StepKind
    op: str
    group: int
    engine: Engine
    time: int
    base: str
    shift: int = 0
    place: int = _OP
    value: str = ""
    ring: str = ""

    @property
    def synchronous(self) -> bool:
        """Whether it is complete when the next instruction of its group starts."""
        return self.engine == "simt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Handovers:
    """The steps that hand register values to other groups, and the value in each staging ring."""

    steps: tuple[Step, ...]
    touches: tuple[Touch, ...]
    rings: dict[str, str]


def op_steps(sheet: Sheet) -> tuple[Step, ...]:
    """Return one step for each graph op."""
    return tuple(
        Step(
            name=name,
            kind="op",
            op=name,
            group=sheet.group[name],
            engine=sheet.engine(name),
            time=sheet.start[name],
            base=name,
        )
        for name in sheet.ops
    )


def handovers(sheet: Sheet, needs: tuple[Needs, ...]) -> Handovers:
    """Return the hand-overs that the groups need, ``needs`` by group."""
    values: dict[tuple[str, str], dict[int, list[Use]]] = {}
    for group, need in enumerate(needs):
        for key, uses in need.imports.items():
            values.setdefault(key, {})[group] = uses
    steps: list[Step] = []
    rings: dict[str, str] = {}
    for (maker, value), readers in values.items():
        first = not any(ring == maker + STAGING for ring in rings)
        ring = maker + STAGING if first else f"{maker}.{value}{STAGING}"
        rings[ring] = value
        steps.append(_put(sheet, maker, value, ring))
        steps += (_get(sheet, maker, value, ring, group, uses) for group, uses in readers.items())
    touches = tuple(Touch(step=one.name, ring=one.ring, writes=one.kind == "put", distance=0) for one in steps)
    return Handovers(steps=tuple(steps), touches=touches, rings=rings)


def _put(sheet: Sheet, maker: str, value: str, ring: str) -> Step:
    name = f"{value}.put"
    return Step(
        name=name,
        kind="put",
        op=maker,
        group=sheet.group[maker],
        engine="simt",
        time=sheet.start[maker] + sheet.priced[maker].latency_cycles,
        base=name,
        value=value,
        ring=ring,
    )


def _get(sheet: Sheet, maker: str, value: str, ring: str, group: int, uses: list[Use]) -> Step:
    first = min(uses, key=lambda use: (sheet.at(use.op, use.distance), use.distance))
    return Step(
        name=f"{value}.get.{sheet.schedule.groups[group].name}",
        kind="get",
        op=maker,
        group=group,
        engine="simt",
        time=sheet.at(first.op, first.distance),
        base=first.op,
        shift=first.distance,
        place=_GET,
        value=value,
        ring=ring,
    )


def drain_before(sheet: Sheet, tail: Step, base: Step, shift: int) -> Step:
    """Return the observation that ``tail`` is complete, just before ``base`` of the iteration ``shift`` later."""
    return Step(
        name=f"{tail.op}.drain",
        kind="drain",
        op=tail.op,
        group=tail.group,
        engine="simt",
        time=base.time + shift * sheet.interval,
        base=base.base,
        shift=shift + base.shift,
        place=_DRAIN,
    )


def drain_at_end(sheet: Sheet, tail: Step) -> Step:
    """Return the observation that ``tail`` is complete at the time when the schedule has it complete."""
    name = f"{tail.op}.drain"
    return Step(
        name=name,
        kind="drain",
        op=tail.op,
        group=tail.group,
        engine="simt",
        time=tail.time + sheet.priced[tail.op].real_latency_cycles,
        base=name,
    )


def drain_after_next(sheet: Sheet, tail: Step) -> Step:
    """Return the observation that ``tail`` is complete right after the op was issued for the next iteration: one
    stays in flight.
    """
    return Step(
        name=f"{tail.op}.drain",
        kind="drain",
        op=tail.op,
        group=tail.group,
        engine="simt",
        time=tail.time + sheet.interval,
        base=tail.base,
        shift=tail.shift + 1,
        place=_ISSUED + 1,
    )


def issued(tail: Step) -> Step:
    """Return the moment right after an asynchronous op was issued."""
    return Step(
        name=f"{tail.op}.issued",
        kind="issued",
        op=tail.op,
        group=tail.group,
        engine="simt",
        time=tail.time,
        base=tail.base,
        shift=tail.shift,
        place=_ISSUED,
    )


def all_touches(sheet: Sheet, given: Handovers) -> Iterator[Touch]:
    """Yield what every step does to rings of the loop."""
    for name in sheet.ops:
        yield from op_touches(sheet, name)
    yield from given.touches
