"""The report of an emulation as text."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap

from twillgpu.emulate.record import EmulationReport

MOST = 12
"""Findings of one kind that are printed; the rest only counts."""

VERDICTS = {
    "sound": "sound: nothing is wrong",
    "unsafe": "unsafe",
    "limit": "nothing wrong was found, and a limit ended the exploration",
}


def report_text(title: str, report: EmulationReport, width: int = 80) -> str:
    """Return a report as lines of at most ``width`` columns, ending in a newline."""
    lines = [f"{title}: {VERDICTS[report.status]}"]
    for name, texts in _parts(report):
        if not texts:
            continue
        lines += ["", name]
        for text in texts[:MOST]:
            lines += _item(text, width)
        if len(texts) > MOST:
            lines.append(f"  and {len(texts) - MOST} more")
    return "\n".join([*lines, ""])


def _parts(report: EmulationReport) -> Iterator[tuple[str, list[str]]]:
    yield "Deadlock", [] if report.deadlock is None else [str(report.deadlock)]
    yield "Races", [f"{race}{_times(race.count)}" for race in report.races]
    yield "Hazards", [f"{hazard}{_times(hazard.count)}" for hazard in report.hazards]
    yield "Numbers", [str(difference) for difference in report.differences]
    yield "Proved", list(report.proved)
    yield "Notes", list(report.notes)


def _times(count: int) -> str:
    return f" ({count} times)" if count > 1 else ""


def _item(text: str, width: int) -> list[str]:
    first, *rest = text.split("\n")
    lines = wrap(first, width, initial_indent="- ", subsequent_indent="  ")
    for line in rest:
        lines += wrap(line.strip(), width, initial_indent="  - ", subsequent_indent="    ")
    return lines
