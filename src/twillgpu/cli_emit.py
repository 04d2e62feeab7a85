"""``twillgpu emit``: a schedule as runnable Gluon source, compiled and checked without a GPU."""

from __future__ import annotations

from typing import Any

import click

import twillgpu
from twillgpu.cli_options import KERNEL, LIMITS, OUTPUT, with_options
from twillgpu.cli_output import Output
from twillgpu.cli_progress import interruptible, progress_line
from twillgpu.cli_schedule import SEARCH, search_options
from twillgpu.cli_source import GIVEN, cache_of, scheduled, status_of
from twillgpu.emit.record import Emission
from twillgpu.emit.refine import MOST_ROUNDS
from twillgpu.emitting import EmitOptions, check_target
from twillgpu.lower.options import LowerOptions
from twillgpu.view.emission import emission_text
from twillgpu.view.records import record_json

LIMIT = 3
SCHEMA = "twillgpu-emission/1"


@click.command("emit")
@click.argument("source", metavar="SOURCE")
@with_options(KERNEL, LIMITS, SEARCH, GIVEN)
@click.option(
    "--check", is_flag=True, help="Compile it (needs Triton, no GPU), compare it with the schedule, and report."
)
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    metavar="N",
    default=MOST_ROUNDS,
    help="With --check: at most N emissions; registers are moved, and the search runs again, until the machine code "
    f"is clean. Default: {MOST_ROUNDS}.",
)
@click.option(
    "--order-units/--no-order-units",
    default=None,
    help="Whether barriers keep the order of groups on the tensor core. Default: on Hopper where it is busy.",
)
@with_options(OUTPUT)
def command(source: str, **values: Any) -> int:  # noqa: ANN401  # whatever click parsed
    """Emit the optimal schedule of a kernel as one self-contained Gluon file for Triton 3.6.0 to 3.9.0.

    SOURCE and options are those of twillgpu schedule. The file is printed, or written with -o. With --check the
    report is printed instead, on standard error where the file goes to standard output.

    Exit status: 0 optimal and, with --check, clean; 1 a mistake in the input; 2 proved infeasible; 3 a limit was
    reached before a proof, or the machine code is not clean (the file is still written).
    """
    output = Output(file=values["file"], force=values["force"])
    options = EmitOptions(
        check=values["check"],
        most_rounds=values["rounds"],
        search=search_options(values),
        cache=cache_of(values),
        lower=LowerOptions(order_units=values["order_units"]),
    )
    with interruptible(), progress_line() as progress:
        found = scheduled(source, values, options.search, progress, needs=check_target)
        status = status_of(found)
        if found.verified is None:
            return status
        emission = twillgpu.emit_source(found.priced, found.result or found.verified.schedule, options, progress)
    _deliver(output, emission, values)
    return status or (LIMIT if values["check"] and not emission.clean else 0)


def _deliver(output: Output, emission: Emission, values: dict[str, Any]) -> None:
    """Write file and report to their places."""
    as_json = record_json(emission, schema=SCHEMA) if values["as_json"] else ""
    if output.file is None:
        output.deliver(as_json or emission.source)
        if values["check"] and not as_json:
            click.echo(emission_text(emission), err=True, nl=False)
        return
    output.deliver(emission.source)
    if as_json or values["check"]:
        Output(file=None).deliver(as_json or emission_text(emission, width=output.width))
