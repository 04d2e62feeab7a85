"""Results of searches in the cache: what is kept, under which key, and what is taken from it.

A schedule is verified by whoever takes it; that there is none, or none better, is taken on the word of the search
that wrote it, under a key that has its problem, its options and the versions of everything involved.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from twillgpu.costs.record import PriceOptions, Problem
from twillgpu.errors import InputError
from twillgpu.schedule.jsonform import write_schedule
from twillgpu.schedule.jsonresult import read_result
from twillgpu.schedule.paper.record import PaperOptions
from twillgpu.schedule.record import SearchOptions, SearchResult
from twillgpu.store.cache import Cache
from twillgpu.store.key import made_with
from twillgpu.store.record import Entry
from twillgpu.view.record import Run
from twillgpu.view.records import plain
from twillgpu.view.report import report

SCHEMA = "twillgpu-search/1"
"""Part of every key: another form of entries has other keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A result from the cache, and when it was put there (Unix time)."""

    result: SearchResult
    created: float


def search_key(problem: Problem, limits: PriceOptions, options: SearchOptions | PaperOptions) -> str:
    """Return the key of a search's result: a SHA-256 in hex.

    Args:
        problem: the priced problem, whole: names and places in the source are in reports.
        limits: limits and rules in force.
        options: of the method; their type says which.
    """
    document = {
        "schema": SCHEMA,
        "problem": plain(problem),
        "limits": plain(limits),
        "method": type(options).__name__,
        "options": plain(options),
        "versions": dict(made_with()),
    }
    return hashlib.sha256(json.dumps(document, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def kept_result(cache: Cache, key: str, problem: Problem) -> Kept | None:
    """Return the result of a key, ``None`` where there is none.

    Raises ``InputError`` for an entry that is damaged, or of another problem.
    """
    entry = cache.get(key)
    if entry is None:
        return None
    where = f"cache entry {key[:12]}"
    result = read_result(entry.schedule, where)
    if result.schedule is not None and result.schedule.problem_sha256 != problem.sha256:
        raise InputError(where, "it is of another problem", "search anew")
    return Kept(result=result, created=entry.created)


def keep(cache: Cache, key: str, run: Run) -> None:
    """Keep the result of a run, unless wall time has decided about it: the same search may find more another day."""
    result = run.result
    timed = result.limit == "time" or result.seconds >= result.options.time_limit_seconds
    if timed or (result.schedule is None and result.status != "infeasible"):
        return
    cache.put(
        Entry(
            key=key,
            kernel=run.graph.name,
            machine=run.machine.name,
            status=result.status,
            ii_cycles=result.schedule.ii_cycles if result.schedule is not None else None,
            schedule=write_schedule(run.problem, result, run.limits),
            report=report(run),
            search_seconds=result.seconds,
        )
    )
