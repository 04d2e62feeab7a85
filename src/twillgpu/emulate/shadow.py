"""The last write and the reads since then of every byte of SMEM and TMEM, and who must be ordered after whom."""

from __future__ import annotations

from bisect import bisect_left
from typing import NamedTuple

from twillgpu.emulate.steps import ASYNC_PROXY, Label, Touch


class Event(NamedTuple):
    """Work that was done or given to an engine.

    ``executed``: the set that holds the event "it ran" (an engine: "it has read its operands"). ``settled``: "its
    writes are there for everybody": published by a fence where software wrote, completed where an engine did.
    ``clock``: all that had happened when it was issued.
    """

    label: Label
    group: int
    engine: str
    executed: int
    settled: int
    clock: int


class Written(NamedTuple):
    """A write, and under which name it was made."""

    event: Event
    touch: Touch


class Segment:
    """Bytes that every access so far touched together: their last write and the reads since."""

    __slots__ = ("reads", "write")

    def __init__(self, write: Written | None = None, reads: list[Written] | None = None) -> None:
        self.write = write
        self.reads = reads or []


class Shadow:
    """One memory as a list of segments, split where accesses begin and end."""

    def __init__(self) -> None:
        self.starts = [0]
        self.segments = [Segment()]
        self._found: dict[tuple[int, int], list[Segment]] = {}

    def covered(self, start: int, end: int) -> list[Segment]:
        """Return the segments that make up bytes ``start..end``."""
        key = (start, end)
        found = self._found.get(key)
        if found is None:
            self._split(start)
            self._split(end)
            found = self.segments[bisect_left(self.starts, start) : bisect_left(self.starts, end)]
            self._found[key] = found
        return found

    def copy(self) -> Shadow:
        """Return a copy that can be continued apart from this one."""
        twin = Shadow()
        twin.starts = list(self.starts)
        twin.segments = [Segment(segment.write, list(segment.reads)) for segment in self.segments]
        return twin

    def _split(self, place: int) -> None:
        index = bisect_left(self.starts, place)
        if index < len(self.starts) and self.starts[index] == place:
            return
        left = self.segments[index - 1]
        self.starts.insert(index, place)
        self.segments.insert(index, Segment(left.write, list(left.reads)))
        self._found.clear()


def awaited_by_reader(write: Event, event: Event, memory: str) -> int:
    """Return the events that ``event`` must know of before it may read what ``write`` wrote."""
    if write.engine != "simt":
        return write.settled
    if memory == "tmem":
        return write.executed if event.engine == "simt" and event.group == write.group else write.settled
    return write.settled if event.engine in ASYNC_PROXY else write.executed


def awaited_by_writer(write: Event, event: Event, memory: str) -> int:
    """Return the events that ``event`` must know of before it may overwrite what ``write`` wrote."""
    if write.engine != "simt":
        return write.settled
    own = event.engine == "simt" and event.group == write.group
    return write.settled if memory == "tmem" and not own else write.executed
