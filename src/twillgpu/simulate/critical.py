"""The critical chain of a run: what set the time of an event, what set that, and so on back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from twillgpu.simulate.record import Event, Why

HELD = ("wait", "drain", "fence")
"""Instructions that only hold their group up."""


class Link(NamedTuple):
    """``cycles`` of the chain that group ``group`` spends on ``reason``."""

    group: str
    reason: str
    cycles: int


class Moment(NamedTuple):
    """A time, and the event that set it in the way ``why``."""

    time: int
    event: int
    why: Why


def chain(events: Sequence[Event], last: Event, begin: int) -> Iterator[Link]:
    """Yield the links from the start of ``last`` back to cycle ``begin``; together they fill that time.

    ``last`` is no instruction that only waits: of those it is known what ends them.
    """
    moment = Moment(last.start_cycle, last.cause, last.why)
    while moment.event >= 0 and moment.time > begin:
        event = events[moment.event]
        before, reason = _before(event, moment)
        if moment.time > before.time:
            yield Link(event.group, reason, moment.time - max(before.time, begin))
        moment = before
    if moment.time > begin:
        yield Link("", "start of the block", moment.time - begin)


def _before(event: Event, moment: Moment) -> tuple[Moment, str]:
    """Return the moment that the time of ``moment`` follows from, and what the time between is spent on."""
    if moment.why == "order":
        return _in_order(event, moment)
    if event.work_why == "issue" or event.kind in HELD:
        return Moment(event.work_start_cycle, event.cause, event.why), _worked(event, moment)
    return Moment(event.work_start_cycle, event.work_cause, event.work_why), _worked(event, moment)


def _in_order(event: Event, moment: Moment) -> tuple[Moment, str]:
    if event.kind in HELD and event.why in ("barrier", "drain", "fence"):
        return Moment(moment.time, event.cause, event.why), ""
    verbs = {"wait": "wait instruction", "arrive": "arrive instruction", "put": "store", "get": "load"}
    return Moment(event.start_cycle, event.cause, event.why), f"{verbs.get(event.kind, 'issue')}: {event.op}"


def _worked(event: Event, moment: Moment) -> str:
    if event.kind == "arrive":
        return f"barrier hop: {event.op}"
    if moment.why == "unit":
        ends = (event.work_start_cycle + use.offset + use.cycles for use in event.uses)
        units = [use.unit for use, end in zip(event.uses, ends, strict=True) if end == moment.time]
        return f"{units[0] if units else event.unit} held: {event.op}"
    return f"latency: {event.op}"
