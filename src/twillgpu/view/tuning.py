"""The result of a tuning run: a table for people, JSON and CSV for programs, and a line of progress."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter

from twillgpu.tune.record import Candidate, Outcome, Progress, Tuned, shown
from twillgpu.view.records import Plain, plain
from twillgpu.view.text import WIDTH, number, plural, section, table, wrap

SCHEMA = "twillgpu-tuning/1"
BAR = 16

FIGURES = (
    "status",
    "microseconds",
    "floor_microseconds",
    "tflops",
    "ceiling_tflops",
    "ii_cycles",
    "proof",
    "steady_cycles",
    "block_cycles",
    "trips",
    "blocks",
    "waves",
    "binding",
    "by",
    "smem_bytes",
)
"""Fields of an outcome that are columns of the CSV, after the rank and the axes."""
USED = ("groups", "warps", "registers")
"""The same, for fields that have the name of an axis: their columns end in ``_used``."""


def tuned_text(tuned: Tuned, width: int = WIDTH) -> str:
    """Return the report: what was found, the ranking, and the candidates without a time with their reasons."""
    lines = [_title(tuned), *_summary(tuned)]
    lines += section(
        "Ranking; us: predicted time of the launch; I, sim.: cycles per iteration; KiB: SMEM", _ranking(tuned)
    )
    lines += section("Rings of the best in shared memory, name and depth", _rings(tuned))
    lines += section("Without a time", _rest(tuned, width))
    lines += section("Notes", _notes(tuned))
    return "\n".join(lines) + "\n"


def _title(tuned: Tuned) -> str:
    machine = f" on {tuned.question.machine}" if tuned.question.machine else ""
    return f"tune {tuned.question.source}{machine}: {plural(len(tuned.outcomes), 'candidate')}"


def _summary(tuned: Tuned) -> list[str]:
    counts = Counter(outcome.status for outcome in tuned.outcomes)
    said = ", ".join(f"{count} {status}" for status, count in counts.most_common())
    kept = f"; {tuned.kept} of them taken from the journal" if tuned.kept else ""
    lines = wrap(f"{said}{kept}; {tuned.seconds:.1f} s")
    best = tuned.best
    if best is None:
        return [*lines, "  no candidate has a schedule"]
    return [*lines, *wrap(f"best: {best.candidate.text}: {best.microseconds:,.1f} us{_rate(best)}")]


def _rate(outcome: Outcome) -> str:
    return "" if outcome.tflops is None else f", {outcome.tflops:,.0f} TFLOP/s before power limits"


def _solved(tuned: Tuned) -> list[Outcome]:
    return [outcome for outcome in tuned.outcomes if outcome.status == "solved"]


def _ranking(tuned: Tuned) -> list[str]:
    names = [axis.name for axis in tuned.axes]
    head = ["", *names, "us", "TFLOP/s", "I", "sim.", "waves", "groups", "regs", "KiB", "bound by"]
    rows = [
        [str(rank), *_values(outcome.candidate), *_row(outcome)]
        for rank, outcome in enumerate(_solved(tuned), start=1)
    ]
    return table(head, rows, right=range(len(head) - 1))


def _values(candidate: Candidate) -> list[str]:
    return [shown(name, value) for name, value in candidate.values]


def _row(outcome: Outcome) -> list[str]:
    interval = f"{number(outcome.ii_cycles or 0)}{'' if outcome.proof == 'optimal' else '?'}"
    return [
        f"{outcome.microseconds:,.1f}",
        "-" if outcome.tflops is None else f"{outcome.tflops:,.0f}",
        interval,
        "-" if outcome.steady_cycles is None else f"{outcome.steady_cycles:,.0f}",
        str(outcome.waves),
        str(outcome.groups),
        str(outcome.registers or "-"),
        f"{(outcome.smem_bytes or 0) / 1024:,.0f}",
        outcome.binding,
    ]


def _rings(tuned: Tuned) -> list[str]:
    best = tuned.best
    return wrap(", ".join(f"{name} {depth}" for name, depth in best.rings)) if best is not None and best.rings else []


def _rest(tuned: Tuned, width: int) -> list[str]:
    names = [axis.name for axis in tuned.axes]
    rows = [
        [*_values(outcome.candidate), outcome.status, outcome.reason or "-"]
        for outcome in tuned.outcomes
        if outcome.status != "solved"
    ]
    return table([*names, "status", "reason"], rows, right=range(len(names)), width=width)


def _notes(tuned: Tuned) -> list[str]:
    solved = _solved(tuned)
    lines = []
    if any(outcome.proof != "optimal" for outcome in solved):
        lines += wrap("I?: the interval is not proved optimal; raise --time-limit")
    lines += _power(solved)
    if any(outcome.by == "schedule" for outcome in solved):
        lines += wrap(
            "bound by schedule: graph JSON has no program to simulate; its time is that of the schedule, without "
            "barrier instructions and the path to L2, and not quite comparable with simulated ones"
        )
    if tuned.question.reuse is None:
        lines += wrap("HBM is left out; --reuse R counts it")
    return lines


def _power(solved: list[Outcome]) -> list[str]:
    """Say where the ranking is beyond what the chip's power limit allows."""
    above = [one for one in solved if one.tflops is not None and one.tflops > (one.ceiling_tflops or float("inf"))]
    if len(above) < 2:
        return []
    return wrap(
        f"{len(above)} candidates are above the {above[0].ceiling_tflops:,.0f} TFLOP/s that the chip sustains under "
        "its power limit: their order is that of the model, and on the chip they differ less"
    )


def tuned_json(tuned: Tuned) -> str:
    """Return the document, ending in a newline: outcomes in the order of the ranking, values by axis."""
    document: dict[str, Plain] = {
        "schema": SCHEMA,
        "question": plain(tuned.question),
        "axes": {axis.name: plain(axis.values) for axis in tuned.axes},
        "seconds": tuned.seconds,
        "from_journal": tuned.kept,
        "outcomes": [_outcome(outcome) for outcome in tuned.outcomes],
    }
    return json.dumps(document, indent=1) + "\n"


def _outcome(outcome: Outcome) -> Plain:
    fields = plain(outcome)
    assert isinstance(fields, dict)  # noqa: S101  # a record is
    rings: Plain = dict(outcome.rings)
    return {**fields, "candidate": dict(outcome.candidate.values), "rings": rings}


def tuned_csv(tuned: Tuned) -> str:
    """Return one line for each candidate under a header; the rank is empty where there is no time."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(
        ["rank", *(axis.name for axis in tuned.axes), *FIGURES, *(f"{name}_used" for name in USED), "rings", "reason"]
    )
    for rank, outcome in enumerate(tuned.outcomes, start=1):
        place = rank if outcome.status == "solved" else ""
        rings = " ".join(f"{name}:{depth}" for name, depth in outcome.rings)
        figures = [getattr(outcome, name) for name in (*FIGURES, *USED)]
        writer.writerow([place, *_values(outcome.candidate), *figures, rings, outcome.reason])
    return stream.getvalue()


def progress_text(state: Progress) -> str:
    """Return one line: a bar, candidates finished and pruned, the best, the time left."""
    settled = state.finished + state.pruned
    filled = BAR * settled // max(1, state.total)
    parts = [f"[{'#' * filled}{'.' * (BAR - filled)}] {settled}/{state.total}"]
    if state.bounded < state.total:
        parts.append(f"{state.bounded} bounded")
    if state.pruned:
        parts.append(f"{state.pruned} pruned")
    if state.best is not None:
        parts.append(f"best {state.best.microseconds:,.1f} us ({state.best.candidate.text})")
    if state.seconds_left is not None:
        parts.insert(1, f"{_duration(state.seconds_left)} left")
    return ", ".join(parts)


def _duration(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60:02d} s"
