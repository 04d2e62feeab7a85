"""The library's main calls: search a problem and check what was found; check anybody's schedule."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from twillgpu.certify.certify import Inputs, Place, certify
from twillgpu.certify.record import Certificate
from twillgpu.errors import InputError, TwillError
from twillgpu.explain.explain import explain
from twillgpu.explain.record import ExplainOptions, Explanation
from twillgpu.graph.jsonform import write_graph
from twillgpu.inputs import Priced, kernel_of, priced_graph, read_text
from twillgpu.lower.lower import lower
from twillgpu.lower.options import LowerOptions
from twillgpu.lower.record import WarpProgram
from twillgpu.schedule.jsonform import ScheduleFile, hash_mismatches, read_schedule_file, write_schedule
from twillgpu.schedule.paper.record import PaperOptions
from twillgpu.schedule.paper.search import search as paper_search
from twillgpu.schedule.record import Schedule, SearchOptions, SearchResult
from twillgpu.schedule.search import search
from twillgpu.store.cache import Cache
from twillgpu.store.results import keep, kept_result, search_key
from twillgpu.verify import check
from twillgpu.verify.record import Verified, Violation
from twillgpu.view.limit import limit_reached
from twillgpu.view.record import Run
from twillgpu.view.text import plural

Progress = Callable[[str], None]
Given = ScheduleFile | Schedule | SearchResult
"""A schedule that need not be searched: as a file holds it, by itself, or with what a search says of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduled:
    """A source with a schedule that keeps every rule, or with a search that found none.

    Attributes:
        priced: the source and its problem.
        verified: the schedule, ``None`` where the search found none.
        result: what the search says of it; ``None`` where a schedule was given by itself.
        run: the run of the search; ``None`` where nothing was searched.
        notes: why a schedule that was given may be of another problem, a sentence each.
    """

    priced: Priced
    verified: Verified | None
    result: SearchResult | None = None
    run: Run | None = None
    notes: tuple[str, ...] = ()

    def nothing(self) -> InputError:
        """Return the message for a search that found no schedule: what is proved, or which limit ended it."""
        if self.result is None or self.result.status == "infeasible":
            stages = "" if self.result is None else f" of at most {plural(self.result.max_stages, 'stage')}"
            what, remedy = f"no schedule{stages} exists at any interval", "twillgpu explain says why"
        else:
            what = f"no schedule was found, {limit_reached(self.result)}"
            remedy = "twillgpu explain says what is proved"
        return InputError(self.priced.loaded.source, what, remedy)

    def program(self, options: LowerOptions | None = None) -> WarpProgram:
        """Return the warp program of the schedule.

        Raises:
            InputError: graph JSON has no kernel; the search found no schedule.
            UnsupportedError: what has no form as a program, with its source line.
        """
        kernel = kernel_of(self.priced.loaded)
        if self.verified is None:
            raise self.nothing()
        return lower(kernel, self.priced.loaded.graph, self.verified, options)


def find_schedule(
    priced: Priced,
    options: SearchOptions | PaperOptions | None = None,
    progress: Progress | None = None,
    cache: Cache | None = None,
) -> Run:
    """Find the schedule with the smallest initiation interval, and verify it.

    Args:
        priced: what ``load_problem`` returns.
        options: limits, resolution, seed; ``PaperOptions`` for the paper's own method.
        progress: called with one line of text whenever the search takes a step.
        cache: where the result is looked for, and kept; ``None``: it is searched.

    Returns:
        The records of every stage. Infeasible problems and limits are statuses of ``run.result``.

    Raises:
        TwillError: the schedule found does not pass the verifier, which is a defect of the search.
    """
    return _run(priced, options or SearchOptions(), progress, cache)[0]


def load_schedule(file: str | Path) -> ScheduleFile:
    """Return the schedule in a file, as ``schedule --json`` prints it, with the limits that it was made under.

    Raises ``InputError`` with the place in the document for whatever is malformed.
    """
    return read_schedule_file(read_text(Path(file)), str(file))


def take_schedule(
    priced: Priced,
    given: Given | None = None,
    options: SearchOptions | PaperOptions | None = None,
    progress: Progress | None = None,
    cache: Cache | None = None,
) -> Scheduled:
    """Take the schedule that is given, or find one, and verify it; its ``.program()`` is the warp program.

    Args:
        priced: what ``load_problem`` returns; for a schedule from a file, priced under the limits that it records.
        given: what ``load_schedule`` returns, a schedule, or a search's result; ``None`` searches.
        options: options of the search.
        progress: called with one line of text whenever the search takes a step.
        cache: where the result of a search is looked for, and kept; ``None``: it is searched.

    Raises:
        InputError: the schedule given breaks rules, the first of which is named.
        TwillError: the schedule found does, which is a defect of the search.
    """
    if given is None:
        run, verified = _run(priced, options or SearchOptions(), progress, cache)
        return Scheduled(priced=priced, verified=verified, result=run.result, run=run)
    result = given if isinstance(given, SearchResult) else None
    notes = hash_mismatches(priced.problem, given.schedule) if isinstance(given, ScheduleFile) else ()
    return Scheduled(priced=priced, verified=_verified(priced, given), result=result, notes=notes)


def _run(
    priced: Priced, options: SearchOptions | PaperOptions, progress: Progress | None, cache: Cache | None
) -> tuple[Run, Verified | None]:
    if cache is None:
        return _searched(priced, options, progress)
    key = search_key(priced.problem, priced.limits, options)
    found = _kept(priced, cache, key)
    if found is not None:
        return found
    run, verified = _searched(priced, options, progress)
    keep(cache, key, run)
    return run, verified


def _kept(priced: Priced, cache: Cache, key: str) -> tuple[Run, Verified | None] | None:
    """Return what the cache has, verified again; ``None``, with a warning, where it is of no use."""
    started = time.perf_counter()
    try:
        kept = kept_result(cache, key, priced.problem)
        verified = _verified(priced, kept.result) if kept is not None else None
    except InputError as error:
        warnings.warn(f"{error.where}: {error.what}; it is searched anew", RuntimeWarning, stacklevel=5)
        return None
    if kept is None:
        return None
    return replace(_run_of(priced, kept.result, started), kept_since=kept.created), verified


def _searched(
    priced: Priced, options: SearchOptions | PaperOptions, progress: Progress | None
) -> tuple[Run, Verified | None]:
    started = time.perf_counter()
    if isinstance(options, PaperOptions):
        result = paper_search(priced.problem, options, progress)
    else:
        result = search(priced.problem, options, progress)
    try:
        verified = _verified(priced, result)
    except InputError as error:
        remedy = "this is a defect of twillgpu: please report it with the output of --emit graph"
        raise TwillError("search", error.what, remedy) from None
    return _run_of(priced, result, started), verified


def _run_of(priced: Priced, result: SearchResult, started: float) -> Run:
    loaded = priced.loaded
    return Run(
        source=loaded.source,
        machine=loaded.machine,
        limits=priced.limits,
        kernel=loaded.kernel,
        graph=loaded.graph,
        problem=priced.problem,
        result=result,
        remarks=loaded.remarks + result.remarks,
        seconds=priced.seconds + time.perf_counter() - started,
    )


def _verified(priced: Priced, given: Given) -> Verified | None:
    """Return the schedule with the verifier's seal, ``None`` where the result of a search has none."""
    schedule = given if isinstance(given, Schedule) else given.schedule
    if schedule is None:
        return None
    verdict = check(priced.problem, schedule, max_stages=_claimed_stages(given))
    if isinstance(verdict, Verified):
        return verdict
    first = verdict[0]
    raise InputError(
        given.where if isinstance(given, ScheduleFile) else "schedule",
        f"the schedule has {plural(len(verdict), 'violation')}, first {first.rule}: {first.message}",
        "twillgpu verify lists them; leave the schedule out to search anew",
    )


def _claimed_stages(given: Given) -> int | None:
    if isinstance(given, SearchResult):
        return given.max_stages
    return given.stages if isinstance(given, ScheduleFile) else None


def explain_schedule(
    run: Run, options: ExplainOptions | None = None, progress: Progress | None = None
) -> Explanation:
    """Say what keeps a run from a smaller interval, and what would have to change.

    Args:
        run: what ``find_schedule`` returns.
        options: limits of the explanation.
        progress: called with one line of text whenever a question was answered.

    Raises:
        TwillError: a schedule found for a changed problem does not pass the verifier, which is a defect.
    """
    return explain(run.problem, run.result, options, progress)


def certify_schedule(
    priced: Priced,
    run: Run,
    *,
    seconds: float = 60.0,
    folder: Path | None = None,
    prefix: str = "",
    progress: Progress | None = None,
) -> Certificate:
    """Check every claim of a run by something other than the search.

    Args:
        priced: what ``load_problem`` returns.
        run: what ``find_schedule`` returned for it.
        seconds: wall limit of each check; one that reaches it is open.
        folder: where formulas and proofs are written, ``None`` for nowhere.
        prefix: path of that folder from the certificate's, with a slash at the end, or empty.
        progress: called with one line of text whenever a check ends.
    """
    inputs = Inputs(
        source=Path(run.source).name,
        graph=write_graph(priced_graph(priced)),
        document=write_schedule(run.problem, run.result, run.limits),
    )
    place = None if folder is None else Place(folder=folder, prefix=prefix)
    return certify(run.problem, run.result, inputs, seconds=seconds, place=place, progress=progress)


def check_schedule(priced: Priced, schedule: Schedule, max_stages: int | None = None) -> tuple[Violation, ...]:
    """Return every rule of ``docs/formulation.md`` that a schedule breaks; empty if it is sound."""
    verdict = check(priced.problem, schedule, max_stages=max_stages)
    return () if isinstance(verdict, Verified) else verdict
