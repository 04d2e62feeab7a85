"""The cache as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from twillgpu.store.record import Entry
from twillgpu.view.text import number, plural, table

KEY_SHOWN = 12
"""Digits of a key in the listing."""

_HEADER = ("key", "kernel", "machine", "I", "status", "source", "age", "size")
_UNITS = ((86400.0, "day"), (3600.0, "hour"), (60.0, "minute"), (1.0, "second"))


def cache_text(entries: Sequence[Entry], place: str, now: float) -> str:
    """Return the listing: one line per entry, and the sum. ``now`` is Unix time in seconds."""
    if not entries:
        return f"nothing is kept in {place}\n"
    total = sum(entry.bytes for entry in entries)
    lines = table(_HEADER, [_row(entry, now) for entry in entries], right=(3, 7))
    kept = "1 entry" if len(entries) == 1 else f"{number(len(entries))} entries"
    return "\n".join([*lines, "", f"{kept}, {_size(total)}, in {place}"]) + "\n"


def entry_values(entry: Entry, now: float) -> dict[str, str | int | float | None]:
    """Return what the listing says of an entry as JSON values: cycles, seconds, bytes, a time in UTC."""
    return {
        "key": entry.key,
        "kernel": entry.kernel,
        "machine": entry.machine,
        "ii_cycles": entry.ii_cycles,
        "status": entry.status,
        "emitted": bool(entry.source),
        "declined": entry.declined,
        "created": datetime.fromtimestamp(entry.created, UTC).isoformat(timespec="seconds"),
        "age_seconds": round(max(now - entry.created, 0.0), 1),
        "search_seconds": entry.search_seconds,
        "emit_seconds": entry.emit_seconds,
        "bytes": entry.bytes,
    }


def _row(entry: Entry, now: float) -> tuple[str, ...]:
    interval = "-" if entry.ii_cycles is None else number(entry.ii_cycles)
    source = "emitted" if entry.source else "declined" if entry.declined else "-"
    age = age_text(now - entry.created)
    return (
        entry.key[:KEY_SHOWN], entry.kernel, entry.machine, interval, entry.status, source, age, _size(entry.bytes),
    )  # fmt: skip


def age_text(seconds: float) -> str:
    """Return how long ago something was, in words."""
    for size, unit in _UNITS:
        if seconds >= size:
            return plural(int(seconds // size), unit)
    return "now"


def _size(count: int) -> str:
    return f"{number(-(-count // 1024))} KiB"
