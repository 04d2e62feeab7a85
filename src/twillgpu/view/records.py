"""Generic forms of any record: JSON for programs, indented text for people."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

from twillgpu.costs.record import Bound, Bounds
from twillgpu.view.text import number, table

Plain = None | bool | int | float | str | list["Plain"] | dict[str, "Plain"]


def plain(value: object) -> Plain:
    """Return a record as JSON values: dataclasses as objects, tuples as arrays.

    Raises ``TypeError`` for anything that is no record, which would be a programming error.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    raise TypeError(f"{type(value).__name__} has no JSON form")


def record_json(value: object, *, schema: str) -> str:
    """Return one JSON document that names its ``schema`` first, ending in a newline."""
    body = plain(value)
    document: dict[str, Plain] = {"schema": schema, **(body if isinstance(body, dict) else {"items": body})}
    return json.dumps(document, indent=2) + "\n"


def record_text(value: object) -> str:
    """Return a record as indented ``name: value`` lines, one record of a list per line where it is flat."""
    return "\n".join(_lines(plain(value), 0)) + "\n"


def _lines(value: Plain, depth: int) -> list[str]:
    indent = "  " * depth
    if isinstance(value, dict):
        return [line for key, item in value.items() for line in _entry(key, item, depth)]
    if isinstance(value, list):
        return [line for item in value for line in _item(item, depth)]
    return [indent + _scalar(value)]


def _entry(key: str, item: Plain, depth: int) -> list[str]:
    indent = "  " * depth
    if isinstance(item, dict | list) and item and not _flat(item):
        return [f"{indent}{key}:", *_lines(item, depth + 1)]
    return [f"{indent}{key}: {_scalar(item)}"]


def _item(item: Plain, depth: int) -> list[str]:
    indent = "  " * depth
    if isinstance(item, dict | list) and not _flat(item):
        first, *rest = _lines(item, depth + 1)
        return [f"{indent}- {first.strip()}", *rest]
    return [f"{indent}- {_scalar(item)}"]


def _flat(item: dict[str, Any] | list[Any]) -> bool:
    inner: Sequence[Any] = list(item.values()) if isinstance(item, dict) else item
    return not any(isinstance(part, dict | list) and part for part in inner)


def _scalar(value: Plain) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}={_scalar(item)}" for key, item in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(_scalar(item) for item in value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None or value == "" else str(value)


def bound_reason(bound: Bound) -> str:
    """Return the reason of a bound without the bound's name in front of it."""
    return bound.reason.removeprefix(f"{bound.name}: ")


def bounds_text(bounds: Bounds) -> str:
    """Return all lower bounds as a table, largest (the binding one) first."""
    rows = [(number(bound.cycles), bound.name, bound_reason(bound)) for bound in bounds.bounds]
    rows += [("none", "impossible", reason) for reason in bounds.impossible]
    return "\n".join(table(("cycles", "bound", "reason"), rows, right=(0,))) + "\n"
