"""``twillgpu view``: pictures of a schedule: charts, tables, the graph, a trace, an interactive report."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from twillgpu.api import Progress, Scheduled, take_schedule
from twillgpu.baselines.compare import compare
from twillgpu.cli_options import (
    KERNEL,
    LIMITS,
    OUTPUT,
    POSITIVE,
    Decorator,
    Values,
    with_options,
)
from twillgpu.cli_output import Output
from twillgpu.cli_progress import interruptible, progress_line
from twillgpu.cli_schedule import SEARCH, search_options
from twillgpu.cli_source import GIVEN, scheduled, status_of
from twillgpu.errors import InputError, TwillError
from twillgpu.inputs import Priced
from twillgpu.schedule.record import Schedule
from twillgpu.simulate.record import SimulationOptions, Trace
from twillgpu.simulate.simulate import simulate
from twillgpu.view import plot
from twillgpu.view.claim import verdict
from twillgpu.view.dot import dot_text
from twillgpu.view.html import page_html, page_json
from twillgpu.view.lanes import steady_chart, whole_chart
from twillgpu.view.modulo import modulo_text
from twillgpu.view.network import network
from twillgpu.view.occupancy import occupancies
from twillgpu.view.page import Candidate, Page, page
from twillgpu.view.perfetto import perfetto_json
from twillgpu.view.terminal import terminal_text
from twillgpu.view.text import number

FORMS = ("text", "gantt", "occupancy", "modulo", "graph", "trace", "html")
BY_SUFFIX = {".html": "html", ".dot": "graph", ".svg": "gantt", ".png": "gantt"}
DRAWN = ("gantt", "occupancy", "graph")
"""What matplotlib draws; the graph also has a form as text."""
TRIPS = 6
MOST_ITERATIONS = 200
"""Iterations in a picture: more are not legible, and drawing takes time and memory in proportion."""

PICTURE: tuple[Decorator, ...] = (
    click.option(
        "--as",
        "form",
        type=click.Choice(FORMS),
        help="text: a compact picture for the terminal; gantt, occupancy: .svg or .png; modulo: the reservation "
        "table as text; graph: the dependences as DOT, or .svg or .png; trace: a simulated run for Perfetto; html: "
        "an interactive report. Default: what the suffix of -o stands for, otherwise text.",
    ),
    click.option(
        "--iterations",
        type=click.IntRange(min=1, max=MOST_ITERATIONS),
        metavar="N",
        help="gantt: a loop of N iterations, prologue and epilogue included, instead of one period; html: N "
        "iterations where that is shown.",
    ),
    click.option(
        "--trips", type=POSITIVE, default=TRIPS, metavar="N", help=f"Trip count of a simulated run. Default: {TRIPS}."
    ),
    click.option("--no-baselines", is_flag=True, help="html: leave out the baselines of twillgpu compare."),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Subject:
    """What is shown: a schedule, its name, where it is from, and what is claimed of it."""

    taken: Scheduled
    schedule: Schedule
    name: str
    says: str
    claim: str

    @property
    def priced(self) -> Priced:
        return self.taken.priced

    @property
    def title(self) -> str:
        interval = f"I = {number(self.schedule.ii_cycles)} cycles"
        return f"{self.priced.loaded.graph.name} on {self.priced.loaded.machine.name}, {interval}"


@click.command("view")
@click.argument("source", metavar="SOURCE")
@with_options(KERNEL, LIMITS, SEARCH, GIVEN, PICTURE, OUTPUT)
def command(source: str, **values: Any) -> int:  # noqa: ANN401  # whatever click parsed
    """Draw the schedule of a loop: one period of its steady state, its reservation table, registers and memories.

    SOURCE is what schedule takes. The same input gives the same picture, byte for byte. With --json: the data of
    the interactive report.

    Exit status: 0 done, 1 a mistake in the input, 2 proved infeasible, 3 a limit was reached before a proof (what was
    found is still drawn).
    """
    output = Output(file=values["file"], force=values["force"])
    form = _form(values)
    with interruptible(), progress_line() as progress:
        taken = scheduled(source, values, search_options(values), progress)
        if taken.verified is None:
            return status_of(taken)
        content = _content(form, _subject(taken, taken.verified.schedule, values), values, progress)
    if isinstance(content, bytes):
        output.deliver_bytes(content)
    else:
        output.deliver(content)
    return status_of(taken)


def _form(values: Values) -> str:
    """Return what is asked for, after a check that the file can hold it."""
    suffix = values["file"].suffix.lower() if values["file"] is not None else ""
    if values["as_json"]:
        if values["form"] not in (None, "html"):
            raise InputError(
                "--json", "it gives the data of the interactive report", f"leave out --as {values['form']}"
            )
        return "json"
    form = str(values["form"] or BY_SUFFIX.get(suffix, "text"))
    if form in ("gantt", "occupancy") and suffix not in ("", ".svg", ".png"):
        raise InputError(
            f"-o {values['file']}", f"{form} is drawn as SVG or PNG", "name a file that ends in .svg or .png"
        )
    if form not in DRAWN and suffix in (".svg", ".png"):
        drawn = ", ".join(DRAWN)
        raise InputError(f"-o {values['file']}", f"{form} is no drawing", f"name another file, or ask for {drawn}")
    return form


def _subject(taken: Scheduled, schedule: Schedule, values: Values) -> _Subject:
    """Name the schedule to draw."""
    if taken.result is None:
        file = Path(values["schedule"]).name
        name, says, claim = file, "as read from the file", f"the schedule in {file} keeps every rule"
    else:
        name = "optimum" if taken.result.status == "optimal" else "best found"
        says, claim = "what the search of twillgpu schedule finds", verdict(taken.result)
    return _Subject(taken=taken, schedule=schedule, name=name, says=says, claim=claim)


def _content(form: str, found: _Subject, values: Values, progress: Progress | None) -> str | bytes:
    problem, schedule = found.priced.problem, found.schedule
    if form == "text":
        output = Output(file=values["file"], force=values["force"])
        return terminal_text(found.title, problem, schedule, width=output.width, in_colour=_in_colour(values))
    if form == "modulo":
        return modulo_text(found.title, problem, schedule)
    if form == "trace":
        return perfetto_json(_trace(found.taken, values["trips"]))
    if form in ("html", "json"):
        report = _page(found, values, progress)
        return page_json(report) if form == "json" else page_html(report)
    return _drawn(form, found, values)


def _drawn(form: str, found: _Subject, values: Values) -> str | bytes:
    problem, schedule = found.priced.problem, found.schedule
    suffix = values["file"].suffix.lower() if values["file"] is not None else ""
    if form == "graph" and suffix not in (".svg", ".png"):
        return dot_text(network(problem, schedule), schedule)
    kind: plot.Format = "png" if suffix == ".png" else "svg"
    if form == "graph":
        drawn = plot.graph(found.title, network(problem, schedule), schedule, kind)
    elif form == "occupancy":
        drawn = plot.occupancy(found.title, occupancies(problem, schedule), kind)
    else:
        iterations = values["iterations"]
        chart = whole_chart(problem, schedule, iterations) if iterations else steady_chart(problem, schedule)
        drawn = plot.gantt(found.title, chart, kind)
    return drawn if kind == "png" else drawn.decode("utf-8")


def _in_colour(values: Values) -> bool:
    """Whether a person watches a terminal that has colours (no-color.org says what NO_COLOR means)."""
    shown = values["file"] is None and sys.stdout.isatty()
    return shown and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _trace(taken: Scheduled, trips: int) -> Trace:
    program, priced = taken.program(), taken.priced
    return simulate(program, priced.problem, priced.loaded.machine, SimulationOptions(trips=(trips,)))


def _page(found: _Subject, values: Values, progress: Progress | None) -> Page:
    first = Candidate(name=found.name, says=found.says, schedule=found.schedule)
    candidates = [first]
    if not values["no_baselines"]:
        candidates += _baselines(found.priced, values, progress)
    return page(
        found.title,
        found.claim,
        found.priced.problem,
        tuple(_simulated(found.priced, one, values["trips"]) for one in candidates),
        _lines(Path(found.priced.loaded.source)),
        values["iterations"],
    )


def _baselines(priced: Priced, values: Values, progress: Progress | None) -> list[Candidate]:
    comparison = compare(priced.problem, search_options(values), progress)
    return [
        Candidate(name=row.found.way.name, says=row.found.way.says, schedule=row.found.schedule)
        for row in comparison.rows[1:]
        if row.found.schedule is not None
    ]


def _simulated(priced: Priced, candidate: Candidate, trips: int) -> Candidate:
    """Return the candidate with a simulated run, or with the reason why there is none."""
    if priced.loaded.kernel is None:
        return candidate
    try:
        return replace(candidate, trace=_trace(take_schedule(priced, candidate.schedule), trips))
    except TwillError as error:
        return replace(candidate, says=f"{candidate.says} (no simulated run: {error.what})")


def _lines(source: Path) -> tuple[tuple[str, str], ...]:
    """Return the lines of a Python source by the names that ops give them; of other files nothing."""
    if source.suffix != ".py":
        return ()
    text = source.read_text(encoding="utf-8", errors="replace")
    return tuple((f"{source.name}:{place}", line) for place, line in enumerate(text.splitlines(), start=1))
