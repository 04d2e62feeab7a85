"""The record of the cache: one schedule of one kernel on one machine, and what was made of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What a search and an emission made, as text, so that it can be read by any version.

    Attributes:
        key: what it was made of (``twillgpu.store.key``), a SHA-256 in hex.
        kernel: name of the kernel.
        machine: name of the machine.
        status: status of the search.
        ii_cycles: interval of the schedule, ``None`` where there is none.
        schedule: the result of the search as schedule JSON.
        report: the report of the run.
        source: the emitted file; empty where nothing was emitted.
        declined: why nothing can be emitted; empty where it was, or was not asked for.
        compiled: the report of the emission; empty where nothing was emitted.
        search_seconds, emit_seconds: wall seconds that it took.
        created: when it was stored, Unix time in seconds.
    """

    key: str
    kernel: str
    machine: str
    status: str
    ii_cycles: int | None
    schedule: str
    report: str
    source: str = ""
    declined: str = ""
    compiled: str = ""
    search_seconds: float = 0.0
    emit_seconds: float = 0.0
    created: float = 0.0

    @property
    def bytes(self) -> int:
        """Size of its texts in UTF-8."""
        texts = (self.schedule, self.report, self.source, self.declined, self.compiled)
        return sum(len(text.encode()) for text in texts)
