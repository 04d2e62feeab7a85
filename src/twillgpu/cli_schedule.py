"""``twillgpu schedule``: the optimal schedule of a loop, or any stage on the way to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

import twillgpu
from twillgpu.cli_certify import CERTIFY, Wanted
from twillgpu.cli_options import (
    KERNEL,
    LIMITS,
    OUTPUT,
    PAPER,
    POSITIVE,
    SEED,
    Decorator,
    Finite,
    Values,
    method_options,
    source_options,
    with_options,
    with_paper_rules,
)
from twillgpu.cli_output import Output
from twillgpu.cli_progress import interruptible, progress_line
from twillgpu.cli_source import CACHE, EXIT, cache_of, priced_for, say_kept
from twillgpu.costs.bounds import bounds
from twillgpu.frontend.text import print_kernel
from twillgpu.graph.jsonform import write_graph
from twillgpu.inputs import Loaded, Priced, kernel_of, load_source, priced_graph
from twillgpu.lower.text import print_program
from twillgpu.schedule.jsonform import write_schedule
from twillgpu.schedule.record import SearchOptions
from twillgpu.schedule.resolution import MOST_STAGES
from twillgpu.view.certificate import certificate_text
from twillgpu.view.pipelined import Pipelined, pipelined_json, pipelined_text
from twillgpu.view.program import program_json
from twillgpu.view.records import bounds_text, record_json, record_text

if TYPE_CHECKING:  # help is quick: the search is loaded when it is used
    from twillgpu.api import Scheduled

LOWERED = ("pipelined-ir", "program")
STAGES = ("kernel", "graph", "problem", "bounds", "schedule", *LOWERED)
DEFAULTS = SearchOptions()

SEARCH: tuple[Decorator, ...] = (
    click.option(
        "--stages",
        type=POSITIVE,
        metavar="N",
        help="At most N stages; the claim is over these. Default: one more than the critical path needs, from 3 "
        f"to {MOST_STAGES}.",
    ),
    click.option(
        "--resolution",
        type=POSITIVE,
        metavar="N",
        help=f"Slots per iteration in the coarse search. Default: {DEFAULTS.resolution}.",
    ),
    click.option(
        "--time-limit",
        type=Finite(min=0, min_open=True),
        metavar="SECONDS",
        help=f"Stop after so long. Default: {DEFAULTS.time_limit_seconds:g}. Given without --work-limit, it raises "
        "that to one unit per second.",
    ),
    click.option(
        "--work-limit",
        type=Finite(min=0, min_open=True),
        metavar="UNITS",
        help="Stop after so much work of the solver, in its deterministic units (about a second each). "
        f"Default: {DEFAULTS.work_limit:g}.",
    ),
    click.option("--seed", type=SEED, metavar="N", help=f"Seed of the solver. Default: {DEFAULTS.seed}."),
)


@click.command("schedule")
@click.argument("source", metavar="SOURCE")
@with_options(KERNEL, LIMITS, SEARCH, PAPER, CACHE, CERTIFY)
@click.option("--emit", type=click.Choice(STAGES), help="Print the record of this stage and stop there.")
@with_options(OUTPUT)
def command(source: str, **values: Any) -> int:  # noqa: ANN401  # whatever click parsed
    """Find the schedule of a loop with the smallest initiation interval, prove it, and report it.

    SOURCE is a Python file with a @triton.jit kernel, TTGIR text (.ttgir, .mlir), the text of --emit
    kernel (.kernel), or graph JSON (.json).

    Exit status: 0 optimal, 1 a mistake in the input, 2 proved infeasible, 3 a limit was reached before a proof
    (the best schedule found is still printed).
    """
    output = Output(file=values["file"], force=values["force"])
    stage = values["emit"]
    method = method_options(values, search_options(values))
    wanted = Wanted(values)
    loaded = load_source(source, values["machine"], source_options(values))
    if stage == "kernel":
        return _deliver(output, _kernel(loaded, as_json=values["as_json"]))
    priced = priced_for(loaded, with_paper_rules(values))
    if stage in ("graph", "problem", "bounds"):
        return _deliver(output, _record(stage, priced, as_json=values["as_json"]))
    with interruptible(), progress_line() as progress:
        found = twillgpu.take_schedule(priced, None, method, progress, cache_of(values))
        run = found.run
        assert run is not None  # noqa: S101  # it was searched
        say_kept(run)
        certificate = wanted.certificate(priced, run, progress) if wanted.asked else None
    summary = certificate_text(certificate, width=output.width) if certificate is not None else ""
    if stage in LOWERED:
        _deliver_lowered(output, stage, found, as_json=values["as_json"])
        click.echo(summary, err=True, nl=False)
    elif values["as_json"] or stage == "schedule":
        output.deliver(write_schedule(run.problem, run.result, run.limits))
        click.echo(summary, err=True, nl=False)
    else:
        output.deliver(twillgpu.report(run, width=output.width) + (f"\n{summary}" if summary else ""))
    return EXIT[run.result.status]


def search_options(values: Values) -> SearchOptions:
    """Return the search options given, defaults for the others.

    A time limit given alone raises the work limit to one unit per second, so that the smaller default does not end
    the search long before.
    """
    work, seconds = values["work_limit"], values["time_limit"]
    if work is None and seconds is not None:
        work = max(DEFAULTS.work_limit, seconds)
    given = {
        "max_stages": values["stages"],
        "resolution": values["resolution"],
        "time_limit_seconds": seconds,
        "work_limit": work,
        "seed": values["seed"],
    }
    return SearchOptions(**{name: value for name, value in given.items() if value is not None})


def _deliver(output: Output, text: str) -> int:
    output.deliver(text)
    return 0


def _kernel(loaded: Loaded, *, as_json: bool) -> str:
    kernel = kernel_of(loaded)
    return record_json(kernel, schema="twillgpu-kernel/1") if as_json else print_kernel(kernel)


def _record(stage: str, priced: Priced, *, as_json: bool) -> str:
    if stage == "graph":
        return write_graph(priced_graph(priced))
    if stage == "problem":
        return record_json(priced.problem, schema="twillgpu-problem/1") if as_json else record_text(priced.problem)
    found = bounds(priced.problem)
    return record_json(found, schema="twillgpu-bounds/1") if as_json else bounds_text(found)


def _deliver_lowered(output: Output, stage: str, found: Scheduled, *, as_json: bool) -> None:
    """Print what the schedule becomes; nothing but a message where there is none."""
    if found.verified is None:
        click.echo(f"twillgpu: {found.nothing()}", err=True)
        return
    loaded = found.priced.loaded
    if stage == "program":
        program = found.program()
        output.deliver(program_json(program) if as_json else print_program(program))
        return
    made = found.program() if loaded.kernel is not None else None
    loop = Pipelined(graph=loaded.graph, schedule=found.verified.schedule, program=made)
    output.deliver(pipelined_json(loop) if as_json else pipelined_text(loop))
