"""``twillgpu tune``: the best tile, sub-tiling, groups and registers for a kernel and a problem's sizes."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from twillgpu.cli_options import (
    KERNEL,
    LIMITS,
    OUTPUT,
    POSITIVE,
    Decorator,
    Finite,
    Values,
    price_options,
    source_options,
    with_options,
)
from twillgpu.cli_output import Output
from twillgpu.cli_progress import progress_line
from twillgpu.cli_source import CACHE
from twillgpu.costs.record import PriceOptions
from twillgpu.errors import InputError
from twillgpu.schedule.record import SearchOptions
from twillgpu.tune.executors import Cluster, Pool, processes
from twillgpu.tune.expressions import split
from twillgpu.tune.record import Axis, Progress, Question, Tuned
from twillgpu.tune.space import parse_axis
from twillgpu.tuning import tune
from twillgpu.view.tuning import progress_text, tuned_csv, tuned_json, tuned_text

INFEASIBLE, UNPROVED = 2, 3
SECONDS = 60.0
"""Wall seconds of one candidate's search: a backstop, its work limit usually comes first."""


def parse_sizes(_ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    """Return the sizes in ``NAME=VALUE``."""
    found: dict[str, int] = {}
    for text in value:
        name, sign, number = text.partition("=")
        if not name.isidentifier() or not sign or not number.isdecimal():
            raise click.BadParameter(f"{text!r} is not NAME=VALUE with a whole number", param=param)
        if name in found:
            raise click.BadParameter(f"{name} is given twice", param=param)
        found[name] = int(number)
    return tuple(found.items())


SPACE: tuple[Decorator, ...] = (
    click.option(
        "--space",
        multiple=True,
        metavar="NAME=A,B,C",
        help="Values to choose from: a tl.constexpr of the kernel, or subtile (ROWS|none), groups, registers, warps "
        "(limits of the block), num_warps, config. More of them may follow without --space.",
    ),
    click.option(
        "--shape",
        "--set",
        "shape",
        multiple=True,
        callback=parse_sizes,
        metavar="NAME=VALUE",
        help="A size of the problem. Those that are arguments of the kernel give the trip count; all may be used in "
        "--grid, --trips and --where. May be repeated.",
    ),
    click.option(
        "--grid",
        required=True,
        metavar="X,Y,Z",
        help='Blocks of the launch, by arithmetic over axes and sizes: "cdiv(seq_len, BLOCK_M), heads". a / b must '
        "leave nothing over, or the candidate is declined.",
    ),
    click.option(
        "--trips", metavar="EXPR", help="Iterations of a block, where they do not follow from the kernel's arguments."
    ),
    click.option(
        "--where", multiple=True, metavar="EXPR", help="Decline candidates for which this does not hold. Repeatable."
    ),
    click.option(
        "--graphs",
        metavar="FILE",
        help="Graph JSON that prices a tile that Triton refuses, as 'tile_{BLOCK_M}_{BLOCK_N}.json'.",
    ),
    click.option(
        "--reuse",
        type=Finite(min=1),
        metavar="R",
        help="Each byte from HBM serves R accesses through L2. Default: HBM is left out.",
    ),
)
RUN: tuple[Decorator, ...] = (
    click.option(
        "--best",
        type=POSITIVE,
        default=1,
        metavar="N",
        help="Solve all that the N fastest need; the others are pruned by their bounds. Default: 1.",
    ),
    click.option("--exhaustive", is_flag=True, help="Solve every candidate, whatever its bound."),
    click.option(
        "--time-limit",
        type=Finite(min=0, min_open=True),
        default=SECONDS,
        metavar="SECONDS",
        help=f"Wall seconds for the search of one candidate. Default: {SECONDS:.0f}.",
    ),
    click.option("--jobs", type=POSITIVE, metavar="N", help="Processes. Default: one for each core."),
    click.option("--cluster", metavar="ADDRESS", help="Solve on the workers of a Dask scheduler."),
    click.option(
        "--journal",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Write down what is finished; the same command goes on from there after Ctrl-C or a crash.",
    ),
    click.option("--restart", is_flag=True, help="Begin the journal anew."),
    click.option("--csv", "as_csv", is_flag=True, help="Comma-separated values on standard output."),
)


@click.command("tune")
@click.argument("source", metavar="SOURCE")
@click.argument("more", metavar="[NAME=A,B,C]...", nargs=-1)
@with_options(SPACE, RUN, CACHE, KERNEL, LIMITS, OUTPUT)
def command(source: str, more: tuple[str, ...], **values: Any) -> int:  # noqa: ANN401  # whatever click parsed
    """Choose tile sizes, sub-tiling, groups and registers by the predicted time of the launch.

    SOURCE is a kernel, or graph JSON with {NAME} in its file's name for the candidate's value. Every combination of
    the space is bounded; those that could be the best are scheduled, lowered and simulated, several at a time.

    Exit status: 0 done, 1 a mistake in the input, 2 no candidate has a schedule, 3 none was found within limits, 130
    interrupted.
    """
    output = Output(file=values["file"], force=values["force"])
    if values["restart"] and values["journal"] is None:
        raise InputError("--restart", "there is no journal", "add --journal FILE")
    if values["as_json"] and values["as_csv"]:
        raise InputError("--csv", "--json is given as well", "leave one of them out")
    axes = tuple(parse_axis(text) for text in (*values["space"], *more))
    tuned = _tuned(_question(source, values), axes, values)
    output.deliver(_shown(tuned, values, output.width))
    if tuned.best is not None:
        return 0
    return UNPROVED if tuned.count("limit") else INFEASIBLE


def _question(source: str, values: Values) -> Question:
    chosen = source_options(values)
    limits = price_options(values, PriceOptions())
    return Question(
        source=source,
        graphs=values["graphs"],
        machine=values["machine"],
        load=chosen.load,
        rows=chosen.rows,
        limits=None if limits == PriceOptions() else limits,
        search=replace(SearchOptions(), time_limit_seconds=values["time_limit"]),
        shape=values["shape"],
        grid=split(values["grid"], "--grid"),
        trips=values["trips"],
        where=values["where"],
        reuse=values["reuse"],
        cache=values["cache"],
    )


def _tuned(question: Question, axes: tuple[Axis, ...], values: Values) -> Tuned:
    journal: Path | None = values["journal"]
    with progress_line() as show:
        try:
            return tune(
                question,
                axes,
                pool=lambda: _pool(values),
                best=0 if values["exhaustive"] else values["best"],
                journal=None if journal is None else (journal, values["restart"]),
                progress=_shows(show),
            )
        except KeyboardInterrupt:
            said = "nothing is kept: use --journal FILE" if journal is None else f"{journal} has what is finished"
            click.echo(f"twillgpu: {said}", err=True)
            raise click.Abort from None


def _shows(show: Callable[[str], None] | None) -> Callable[[Progress], None] | None:
    if show is None:
        return None
    return lambda state: show(progress_text(state))


def _pool(values: Values) -> Pool:
    if values["cluster"] is None:
        return processes(values["jobs"] or os.cpu_count() or 1)
    if values["jobs"] is not None:
        raise InputError("--jobs", "the workers of the cluster are used", "leave it out")
    return Cluster(values["cluster"])


def _shown(tuned: Tuned, values: Values, width: int) -> str:
    if values["as_json"]:
        return tuned_json(tuned)
    return tuned_csv(tuned) if values["as_csv"] else tuned_text(tuned, width)
