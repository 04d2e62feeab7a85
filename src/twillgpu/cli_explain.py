"""``twillgpu explain``: what keeps a loop from a smaller interval, and the least change that would help."""

from __future__ import annotations

from typing import Any

import click

import twillgpu
from twillgpu.cli_options import KERNEL, LIMITS, OUTPUT, Finite, source_options, with_options
from twillgpu.cli_output import Output
from twillgpu.cli_progress import interruptible, progress_line
from twillgpu.cli_schedule import SEARCH, search_options
from twillgpu.cli_source import CACHE, EXIT, cache_of, priced_for, say_kept
from twillgpu.explain.record import ExplainOptions
from twillgpu.inputs import load_source
from twillgpu.view.explain import explanation_json, explanation_text

LIMIT = 3
DEFAULTS = ExplainOptions()


@click.command("explain")
@click.argument("source", metavar="SOURCE")
@with_options(KERNEL, LIMITS, SEARCH, CACHE)
@click.option(
    "--budget",
    type=Finite(min=0, min_open=True),
    metavar="SECONDS",
    default=DEFAULTS.time_budget_seconds,
    help="Processor time for questions about changed problems, after the search; what is not reached is marked. "
    f"Default: {DEFAULTS.time_budget_seconds:g}.",
)
@click.option(
    "--question-work",
    type=Finite(min=0, min_open=True),
    metavar="UNITS",
    default=DEFAULTS.work,
    help=f"Work of the solver for each question, in its deterministic units. Default: {DEFAULTS.work:g}.",
)
@click.option("--table/--no-table", default=True, help="Whether to make the table of capacities.")
@with_options(OUTPUT)
def command(source: str, **values: Any) -> int:  # noqa: ANN401  # whatever click parsed
    """Explain the smallest initiation interval of a loop: what forces it, and what would have to change.

    SOURCE and options are those of twillgpu schedule. The search comes first; then the rules that force each refuted
    interval are found, the least relaxation of each that helps, and the interval with more of each capacity.

    Exit status: 0 explained, 1 a mistake in the input, 2 proved infeasible (and why), 3 a limit was reached before
    the proof, or before the explanation was complete.
    """
    output = Output(file=values["file"], force=values["force"])
    loaded = load_source(source, values["machine"], source_options(values))
    priced = priced_for(loaded, values)
    options = ExplainOptions(
        work=values["question_work"], time_budget_seconds=values["budget"], table=values["table"]
    )
    with interruptible(), progress_line() as progress:
        run = twillgpu.find_schedule(priced, search_options(values), progress, cache_of(values))
        say_kept(run)
        explanation = twillgpu.explain_schedule(run, options, progress)
    output.deliver(explanation_json(run, explanation) if values["as_json"] else explanation_text(run, explanation))
    status = EXIT[run.result.status]
    return status if status or explanation.complete else LIMIT
