"""From a command line to a schedule: the one way in which commands take a file or search, and say what is missing."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

import twillgpu
from twillgpu.cli_options import Decorator, Values, price_options, source_options
from twillgpu.inputs import Loaded, Priced, carried_limits, load_source, price_loaded
from twillgpu.schedule.jsonform import ScheduleFile
from twillgpu.schedule.paper.record import PaperOptions
from twillgpu.schedule.record import SearchOptions, Status
from twillgpu.store.cache import Cache, shared
from twillgpu.store.listing import age_text
from twillgpu.view.record import Run

if TYPE_CHECKING:  # help is quick: the search is loaded when it is used
    from twillgpu.api import Progress, Scheduled

EXIT: dict[Status, int] = {"optimal": 0, "infeasible": 2, "feasible": 3, "limit": 3}

CACHE: tuple[Decorator, ...] = (
    click.option(
        "--cache/--no-cache",
        default=False,
        help="Take the result of the same search from the user's cache (twillgpu cache), and keep it there. Default: "
        "search.",
    ),
)

GIVEN: tuple[Decorator, ...] = (
    click.option("--schedule", metavar="FILE", help="The schedule, as schedule --json prints it. Default: search."),
    *CACHE,
)


def scheduled(
    source: str,
    values: Values,
    search: SearchOptions | PaperOptions | None = None,
    progress: Progress | None = None,
    needs: Callable[[Loaded], object] | None = None,
) -> Scheduled:
    """Return the source with the schedule that ``--schedule`` gives, or with that of a search.

    Doubts about a schedule that was given, and that none was found, are said on standard error.

    Args:
        source: the file.
        values: the options of ``KERNEL``, ``LIMITS`` and ``GIVEN``.
        search: options of the search.
        progress: as for ``take_schedule``.
        needs: raises an error for sources that the command cannot use, before anything is searched.

    Raises:
        TwillError: every mistake in source, machine, schedule or options.
    """
    given = None if values["schedule"] is None else twillgpu.load_schedule(values["schedule"])
    loaded = load_source(source, values["machine"], source_options(values))
    if needs is not None:
        needs(loaded)
    found = twillgpu.take_schedule(priced_for(loaded, values, given), given, search, progress, cache_of(values))
    say_kept(found.run)
    for note in found.notes:
        click.echo(f"twillgpu: {values['schedule']}: {note}", err=True)
    if found.verified is None:
        click.echo(f"twillgpu: {found.nothing()}", err=True)
    return found


def priced_for(loaded: Loaded, values: Values, given: ScheduleFile | None = None) -> Priced:
    """Price a source under the limits of a schedule's file, or of the source itself, unless options say otherwise."""
    recorded = given.limits if given is not None else None
    return price_loaded(loaded, price_options(values, carried_limits(loaded) if recorded is None else recorded))


def cache_of(values: Values) -> Cache | None:
    """Return the user's cache where ``--cache`` asks for it."""
    return shared() if values["cache"] else None


def say_kept(run: Run | None) -> None:
    """Say on standard error that a result is from the cache: it has the times of the search that found it."""
    if run is not None and run.kept_since is not None:
        age = age_text(time.time() - run.kept_since)
        when = "now" if age == "now" else f"{age} ago"
        click.echo(f"twillgpu: from the cache, found {when}; --no-cache searches anew", err=True)


def status_of(found: Scheduled) -> int:
    """Return the exit status: 0 for a schedule that was given or is optimal."""
    return 0 if found.result is None else EXIT[found.result.status]
