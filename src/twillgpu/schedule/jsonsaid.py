"""The form of what a schedule document says about the search: read by people and programs, not by ``verify``."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import get_args

from twillgpu.graph.document import Cursor
from twillgpu.schedule.jsonlimits import LIMITS
from twillgpu.schedule.record import Limit, SearchOptions, Status

Check = Callable[[Cursor], object]
"""Raises ``InputError`` with the path where the value has another form; what it returns is not used."""


def _number(cursor: Cursor) -> None:
    if isinstance(cursor.value, bool) or not isinstance(cursor.value, int | float):
        raise cursor.wrong("a number")


def _optimal(cursor: Cursor) -> None:
    if not isinstance(cursor.value, bool | str):
        raise cursor.wrong('true, false or "within N stages"')


def _option(cursor: Cursor) -> None:
    if isinstance(cursor.value, list):
        _each(Cursor.text)(cursor)
    elif isinstance(cursor.value, dict):
        raise cursor.wrong("a number, a string, true, false, null or a list of strings")


def _status(cursor: Cursor) -> None:
    cursor.choice(get_args(Status))


def _limit(cursor: Cursor) -> None:
    cursor.choice(get_args(Limit))


def _each(check: Check) -> Check:
    """Return a check of a list whose items pass ``check``."""

    def items(cursor: Cursor) -> None:
        for item in cursor.items():
            check(item)

    return items


def _fields(checks: Mapping[str, Check]) -> Check:
    """Return a check of an object with no keys beyond those of ``checks``; each value passes its own."""

    def fields(cursor: Cursor) -> None:
        cursor.object((), checks)
        for key, check in checks.items():
            if cursor.has(key):
                check(cursor.child(key))

    return fields


def _or_null(check: Check) -> Check:
    """Return a check of a value that is ``null`` or passes ``check``."""

    def value(cursor: Cursor) -> None:
        if cursor.value is not None:
            check(cursor)

    return value


def _any_key(check: Check) -> Check:
    """Return a check of an object with any keys whose values pass ``check``."""

    def values(cursor: Cursor) -> None:
        keys = cursor.value if isinstance(cursor.value, dict) else ()
        cursor.object((), keys)
        for key in keys:
            check(cursor.child(key))

    return values


_OPTIONS = tuple(field.name for field in dataclasses.fields(SearchOptions))
_ATTEMPT: Mapping[str, Check] = {
    "purpose": Cursor.text,
    "slots": Cursor.integer,
    "slot_cycles": Cursor.integer,
    "stages": Cursor.integer,
    "outcome": Cursor.text,
    "seconds": _number,
}
_SEARCH: Mapping[str, Check] = {
    "method": Cursor.text,
    "solver": Cursor.text,
    "version": Cursor.text,
    "seconds": _number,
    "work": _number,
    "limit": _limit,
    "resolution": Cursor.integer,
    "slot_cycles": Cursor.integer,
    "objective": _any_key(_number),
    "objective_proved": Cursor.flag,
    "remarks": _each(Cursor.text),
    "attempts": _each(_fields(_ATTEMPT)),
    "options": _fields(dict.fromkeys((*_OPTIONS, *LIMITS), _option)),
}
_BOUND: Mapping[str, Check] = {
    "name": Cursor.text,
    "cycles": Cursor.integer,
    "reason": Cursor.text,
    "ops": _each(Cursor.text),
}
_REFUTED: Mapping[str, Check] = {
    "ii_cycles": _each(Cursor.integer),
    "reason": Cursor.text,
    "families": _each(Cursor.text),
}
_FIXED_COLUMNS: Mapping[str, Check] = {
    "shared": _each(_fields({"value": Cursor.text, "product": Cursor.text})),
    "lower_bound_cycles": Cursor.integer,
    "bound": Cursor.text,
    "reason": Cursor.text,
    "impossible": _each(Cursor.text),
}

SAID: Mapping[str, Check] = {
    "status": _status,
    "lower_bound_cycles": Cursor.integer,
    "optimal": _optimal,
    "bound_reason": Cursor.text,
    "max_stages": Cursor.integer,
    "utilisation": _any_key(_number),
    "bounds": _each(_fields(_BOUND)),
    "impossible": _each(Cursor.text),
    "refuted": _each(_fields(_REFUTED)),
    "fixed_columns": _or_null(_fields(_FIXED_COLUMNS)),
    "search": _fields(_SEARCH),
}
"""The top-level keys that are checked for their form only."""
