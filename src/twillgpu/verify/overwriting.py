"""Members of an alias class overwrite one another: what still has to be read when one of them is written.

See "Overwriting in a class" in ``docs/formulation.md``. The search relies on the graph's edges for this order;
here the storage itself is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from twillgpu.costs.record import PricedEdge, PricedOp
from twillgpu.verify.lifetimes import Storage, storages, written_out
from twillgpu.verify.record import Violation
from twillgpu.verify.sheet import Sheet


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """What iteration 0 of ``tail`` wrote is needed until ``end``, by iteration ``distance`` of ``head``."""

    tail: str
    head: str
    distance: int
    end: int


def overwritten(sheet: Sheet) -> Iterator[Violation]:
    """Yield a ``dependence`` violation for each member of a class that is overwritten before it has been read."""
    for storage in storages(sheet):
        if len(storage.members) < 2 and not storage.pinned:
            continue
        for member in storage.members:
            for edge in sheet.readers(member.op.name):
                yield from _clashes(sheet, storage, _read(sheet, storage, member.op, edge))


def _read(sheet: Sheet, storage: Storage, op: PricedOp, edge: PricedEdge) -> _Read:
    head = sheet.ops[edge.head]
    end = sheet.at(edge.head, edge.distance)
    if storage.space == "registers" and sheet.crosses(edge):
        end = written_out(sheet, op)
    elif edge.head not in storage.names:
        end += min(edge.read_cycles, head.real_latency_cycles)
    return _Read(tail=op.name, head=edge.head, distance=edge.distance, end=end)


def _clashes(sheet: Sheet, storage: Storage, read: _Read) -> Iterator[Violation]:
    """Yield a violation per op that starts to write the same storage from the tail's start to the read's end."""
    written = sheet.at(read.tail, 0)
    for writer in storage.names:
        if storage.space == "registers" and sheet.group[writer] != sheet.group[read.tail]:
            continue
        for iteration in _iterations(sheet, storage, writer, written):
            start = sheet.at(writer, iteration)
            if start >= read.end:
                break
            if start >= written and not _is_before(sheet, read, writer, iteration):
                yield _clash(sheet, storage, read, writer, iteration)
                break


def _iterations(sheet: Sheet, storage: Storage, writer: str, written: int) -> Iterator[int]:
    """Yield the iterations of ``writer`` that write this storage, ascending, none missing from ``written`` on."""
    if not storage.pinned:
        yield 0
        return
    iteration = (written - sheet.start[writer]) // sheet.interval
    while True:
        yield iteration
        iteration += 1


def _is_before(sheet: Sheet, read: _Read, writer: str, iteration: int) -> bool:
    """Return whether this write is the read value's own, or one that its op updated in place without delay."""
    if (writer, iteration) == (read.tail, 0):
        return True
    same_cycle = sheet.at(writer, iteration) == sheet.at(read.tail, 0)
    return same_cycle and any(
        edge.head == read.tail and edge.distance == -iteration for edge in sheet.readers(writer)
    )


def _clash(sheet: Sheet, storage: Storage, read: _Read, writer: str, iteration: int) -> Violation:
    # Iteration numbers are moved up so that the earliest of the three is iteration 0.
    shift = max(0, -iteration)
    until = read.end + shift * sheet.interval
    message = (
        f"{sheet.say(writer, iteration + shift)} to overwrite {storage.name}; {sheet.say(read.tail, shift)} to write "
        f"what {read.head} of iteration {read.distance + shift} needs until {until}: the graph lacks an edge, or the "
        "schedule breaks one"
    )
    return Violation(rule="dependence", subjects=(read.tail, read.head, writer), message=message)
