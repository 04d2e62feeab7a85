"""The whole result of a search, read back from the document that ``schedule --json`` prints.

``verify`` trusts nothing that a document says of a search, and reads the schedule alone; this reader is for documents
that this program wrote itself, and gives back what was written.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from twillgpu.costs.record import Bound, Bounds
from twillgpu.errors import InputError
from twillgpu.schedule.jsonform import read_schedule
from twillgpu.schedule.record import Attempt, Refuted, SearchOptions, SearchResult

_OPTIONS = tuple(field.name for field in dataclasses.fields(SearchOptions))


def read_result(text: str, where: str) -> SearchResult:
    """Return the result that ``write_schedule`` has written; ``where`` names the document, for messages.

    Raises ``InputError`` for a document that is not what ``write_schedule`` writes.
    """
    try:
        document = json.loads(text)
        schedule = read_schedule(text, where) if document["ii_cycles"] is not None else None
        search = document["search"]
        return SearchResult(
            status=document["status"],
            schedule=schedule,
            bounds=_bounds(document),
            lower_bound_cycles=document["lower_bound_cycles"],
            bound_reason=document["bound_reason"],
            max_stages=document["max_stages"],
            objective=tuple(search["objective"].items()),
            objective_proved=search["objective_proved"],
            refuted=tuple(_refuted(one) for one in document["refuted"]),
            attempts=tuple(Attempt(**one) for one in search["attempts"]),
            method=search["method"],
            solver=search["solver"],
            version=search["version"],
            options=_options(search["options"]),
            slot_cycles=search["slot_cycles"],
            seconds=search["seconds"],
            remarks=tuple(search["remarks"]),
            work=search["work"],
            limit=search["limit"],
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"is not what a search has written ({type(error).__name__}: {error})"
        raise InputError(where, what, "search anew") from None


def _bounds(document: dict[str, Any]) -> Bounds:
    found = tuple(Bound(**{**one, "ops": tuple(one["ops"])}) for one in document["bounds"])
    return Bounds(bounds=found, impossible=tuple(document["impossible"]))


def _refuted(one: dict[str, Any]) -> Refuted:
    first, last = one["ii_cycles"]
    return Refuted(first_cycles=first, last_cycles=last, reason=one["reason"], families=tuple(one["families"]))


def _options(entries: dict[str, Any]) -> SearchOptions:
    given = {name: entries[name] for name in _OPTIONS}
    return SearchOptions(**{**given, "objective": tuple(given["objective"])})
