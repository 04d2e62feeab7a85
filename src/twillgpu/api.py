"""The library's main calls: search a problem and check what was found; check anybody's schedule."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from twillgpu.certify.certify import Inputs, Place, certify
from twillgpu.certify.record import Certificate
from twillgpu.errors import TwillError
from twillgpu.explain.explain import explain
from twillgpu.explain.record import ExplainOptions, Explanation
from twillgpu.graph.jsonform import write_graph
from twillgpu.inputs import Priced, priced_graph
from twillgpu.schedule.jsonform import write_schedule
from twillgpu.schedule.paper.record import PaperOptions
from twillgpu.schedule.paper.search import search as paper_search
from twillgpu.schedule.record import Schedule, SearchOptions, SearchResult
from twillgpu.schedule.search import search
from twillgpu.verify import check
from twillgpu.verify.record import Verified, Violation
from twillgpu.view.record import Run
from twillgpu.view.text import plural

Progress = Callable[[str], None]


def find_schedule(
    priced: Priced, options: SearchOptions | PaperOptions | None = None, progress: Progress | None = None
) -> Run:
    """Find the schedule with the smallest initiation interval, and verify it.

    Args:
        priced: what ``load_problem`` returns.
        options: limits, resolution, seed; ``PaperOptions`` for the paper's own method.
        progress: called with one line of text whenever the search takes a step.

    Returns:
        The records of every stage. Infeasible problems and limits are statuses of ``run.result``.

    Raises:
        TwillError: the schedule found does not pass the verifier, which is a defect of the search.
    """
    started = time.perf_counter()
    result = _searched(priced, options or SearchOptions(), progress)
    if result.schedule is not None:
        _insist(check_schedule(priced, result.schedule, max_stages=result.max_stages))
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


def _searched(priced: Priced, options: SearchOptions | PaperOptions, progress: Progress | None) -> SearchResult:
    if isinstance(options, PaperOptions):
        return paper_search(priced.problem, options, progress)
    return search(priced.problem, options, progress)


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


def _insist(violations: tuple[Violation, ...]) -> None:
    if not violations:
        return
    first = violations[0]
    raise TwillError(
        "search",
        f"the schedule found has {plural(len(violations), 'violation')}, first {first.rule}: {first.message}",
        "this is a defect of twillgpu: please report it with the output of --emit graph",
    )
