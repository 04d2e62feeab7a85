"""``twillgpu view``: pictures of a schedule: charts, tables, the graph, a trace, an interactive report."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from twillgpu.api import Progress, find_schedule
from twillgpu.baselines.compare import compare
from twillgpu.cli_options import (
    KERNEL,
    LIMITS,
    OUTPUT,
    POSITIVE,
    Decorator,
    Values,
    price_options,
    source_options,
    with_options,
)
from twillgpu.cli_output import Output
from twillgpu.cli_progress import interruptible, progress_line
from twillgpu.cli_schedule import EXIT, SEARCH, search_options
from twillgpu.errors import InputError, TwillError
from twillgpu.inputs import Loaded, Priced, carried_limits, load_source, price_loaded, read_text
from twillgpu.lower.lower import lower
from twillgpu.schedule.jsonform import hash_mismatches, read_schedule_file
from twillgpu.schedule.record import Schedule, Status
from twillgpu.simulate.record import SimulationOptions, Trace
from twillgpu.simulate.simulate import simulate
from twillgpu.verify import check
from twillgpu.verify.record import Verified
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

PICTURE: tuple[Decorator, ...] = (
    click.option("--schedule", metavar="FILE", help="The schedule, as schedule --json prints it. Default: search."),
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
        type=POSITIVE,
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
    """What is shown: a verified schedule, its name, where it is from, and what is claimed of it."""

    priced: Priced
    verified: Verified
    name: str
    says: str
    claim: str
    status: Status

    @property
    def schedule(self) -> Schedule:
        return self.verified.schedule

    @property
    def title(self) -> str:
        interval = f"I = {number(self.schedule.ii_cycles)} cycles"
        return f"{self.priced.loaded.graph.name} on {self.priced.loaded.machine.name}, {interval}"


@click.command("view")
@click.argument("source", metavar="SOURCE")
@with_options(KERNEL, LIMITS, SEARCH, PICTURE, OUTPUT)
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
        found = _subject(source, values, progress)
        if not isinstance(found, _Subject):
            click.echo(f"twillgpu: {source}: no schedule was found; twillgpu explain says why", err=True)
            return EXIT[found]
        content = _content(form, found, values, progress)
    if isinstance(content, bytes):
        output.deliver_bytes(content)
    else:
        output.deliver(content)
    return EXIT[found.status]


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


def _subject(source: str, values: Values, progress: Progress | None) -> _Subject | Status:
    """Return the schedule to draw, or the status of a search that found none."""
    loaded = load_source(source, values["machine"], source_options(values))
    if values["schedule"] is not None:
        return _given(Path(values["schedule"]), loaded, values)
    priced = price_loaded(loaded, price_options(values, carried_limits(loaded)))
    result = find_schedule(priced, search_options(values), progress).result
    if result.schedule is None:
        return result.status
    verified = check(priced.problem, result.schedule, max_stages=result.max_stages)
    name = "optimum" if result.status == "optimal" else "best found"
    return _Subject(
        priced=priced,
        verified=_accepted(verified, "search"),
        name=name,
        says="what the search of twillgpu schedule finds",
        claim=verdict(result),
        status=result.status,
    )


def _given(file: Path, loaded: Loaded, values: Values) -> _Subject:
    """Return the schedule in a file, which must keep every rule."""
    read = read_schedule_file(read_text(file), str(file))
    priced = price_loaded(loaded, price_options(values, read.limits or carried_limits(loaded)))
    for note in hash_mismatches(priced.problem, read.schedule):
        click.echo(f"twillgpu: {file}: {note}", err=True)
    verified = _accepted(check(priced.problem, read.schedule, max_stages=read.stages), str(file))
    return _Subject(
        priced=priced,
        verified=verified,
        name=file.name,
        says="as read from the file",
        claim=f"the schedule in {file.name} keeps every rule",
        status="optimal",
    )


def _accepted(verdict_: object, where: str) -> Verified:
    if isinstance(verdict_, Verified):
        return verdict_
    raise InputError(where, "the schedule breaks rules", "twillgpu verify says which")


def _content(form: str, found: _Subject, values: Values, progress: Progress | None) -> str | bytes:
    problem, schedule = found.priced.problem, found.schedule
    if form == "text":
        output = Output(file=values["file"], force=values["force"])
        return terminal_text(found.title, problem, schedule, width=output.width, in_colour=_in_colour(values))
    if form == "modulo":
        return modulo_text(found.title, problem, schedule)
    if form == "trace":
        return perfetto_json(_trace(found.priced, found.verified, values["trips"]))
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


def _trace(priced: Priced, verified: Verified, trips: int) -> Trace:
    loaded = priced.loaded
    if loaded.kernel is None:
        raise InputError(loaded.source, "graph JSON has no kernel that could be simulated", "give the kernel")
    program = lower(loaded.kernel, loaded.graph, verified)
    return simulate(program, priced.problem, loaded.machine, SimulationOptions(trips=(trips,)))


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
    verified = check(priced.problem, candidate.schedule)
    try:
        return replace(candidate, trace=_trace(priced, _accepted(verified, candidate.name), trips))
    except TwillError as error:
        return replace(candidate, says=f"{candidate.says} (no simulated run: {error.what})")


def _lines(source: Path) -> tuple[tuple[str, str], ...]:
    """Return the lines of a Python source by the names that ops give them; of other files nothing."""
    if source.suffix != ".py":
        return ()
    text = source.read_text(encoding="utf-8", errors="replace")
    return tuple((f"{source.name}:{place}", line) for place, line in enumerate(text.splitlines(), start=1))
