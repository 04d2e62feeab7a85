"""Strict reading of JSON documents: every wrong key, type or number is an error with its path."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass

from twillgpu.errors import InputError, nearest

LARGEST = 10**12
"""The largest number that a document may hold: far beyond any cycle or byte count of one kernel, and small
enough for sums and products of a few of them to fit the solvers' 64-bit integers."""

_NAMES = {
    dict: "an object",
    list: "a list",
    str: "a string",
    bool: "true or false",
    int: "an integer",
    float: "a number with a fraction",
    type(None): "null",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """A value inside a document, with the path that leads to it (``ops[3].uses[0].unit``).

    Every method that expects a certain form raises ``InputError`` with the path where the value has another one.
    """

    value: object
    where: str
    path: str = ""

    def fail(self, what: str, remedy: str) -> InputError:
        """Return the error to raise about this value."""
        place = f"{self.where}: {self.path}" if self.path else self.where
        return InputError(place, what, remedy)

    def wrong(self, expected: str) -> InputError:
        """Return the error that says what was expected here and what was found."""
        found = _NAMES.get(type(self.value), "something else")
        shown = "" if isinstance(self.value, dict | list) or self.value is None else f" ({_shown(self.value)})"
        return self.fail(f"expected {expected}, found {found}{shown}", f"write {expected}")

    def object(self, required: Iterable[str], optional: Iterable[str] = ()) -> Cursor:
        """Check that this is an object with all ``required`` keys and no key beyond the ``optional`` ones."""
        if not isinstance(self.value, dict):
            raise self.wrong("an object")
        required = tuple(required)
        allowed = (*required, *optional)
        for key in self.value:
            if key not in allowed:
                raise self.child(key).fail(f"unknown key {_shown(key)}", nearest(key, allowed))
        for key in required:
            if key not in self.value:
                raise self.child(key).fail("the key is missing", f"add {key!r}")
        return self

    def child(self, key: str) -> Cursor:
        """Return the cursor of one key of this object; its value is ``None`` where the key is missing."""
        value = self.value.get(key) if isinstance(self.value, dict) else None
        shown = key if key.isprintable() else _shown(key)
        return Cursor(value=value, where=self.where, path=f"{self.path}.{shown}" if self.path else shown)

    def has(self, key: str) -> bool:
        """Return whether this object has ``key``."""
        return isinstance(self.value, dict) and key in self.value

    def items(self) -> tuple[Cursor, ...]:
        """Return the cursors of the elements of this list."""
        if not isinstance(self.value, list):
            raise self.wrong("a list")
        return tuple(
            Cursor(value=value, where=self.where, path=f"{self.path}[{index}]")
            for index, value in enumerate(self.value)
        )

    def integer(self, *, low: int = 0) -> int:
        """Return this integer, at least ``low``; a boolean or ``1.0`` is not an integer."""
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            raise self.wrong("an integer")
        if self.value < low:
            raise self.fail(f"{self.value} is too small", f"write an integer of at least {low}")
        return self.value

    def flag(self) -> bool:
        """Return this boolean."""
        if not isinstance(self.value, bool):
            raise self.wrong("true or false")
        return self.value

    def text(self) -> str:
        """Return this string of printable characters, possibly empty."""
        if not isinstance(self.value, str):
            raise self.wrong("a string")
        if not self.value.isprintable():
            raise self.fail(
                f"{_shown(self.value)} has a character that cannot be printed", "use printable characters"
            )
        return self.value

    def name(self) -> str:
        """Return this non-empty string."""
        text = self.text()
        if not text.strip():
            raise self.fail("the name is empty", "give it a name")
        return text

    def choice(self, names: Iterable[str]) -> str:
        """Return this string, which is one of ``names``."""
        names = tuple(names)
        text = self.text()
        if text not in names:
            raise self.fail(f"unknown name {text!r}", nearest(text, names))
        return text


def parse(text: str, where: str) -> Cursor:
    """Parse a JSON document.

    Raises ``InputError`` for text that is not JSON (with line and column), for a key given twice in one object,
    and for a number that is not finite or larger than ``LARGEST``.
    """
    root = Cursor(value=None, where=where)
    try:
        value = json.loads(text, parse_int=_integer, object_pairs_hook=lambda pairs: _object(pairs, where))
        root = Cursor(value=value, where=where)
        _check_numbers(root)
    except json.JSONDecodeError as error:
        place = f"{where}:{error.lineno}:{error.colno}"
        raise InputError(
            place, f"this is not JSON: {error.msg}", "correct the text at this line and column"
        ) from None
    except RecursionError:
        raise root.fail("the document is nested too deeply", "graph JSON needs at most five levels") from None
    return root


def _integer(digits: str) -> int | float:
    """Keep a number of absurd length out of Python's integer parser; ``_check_numbers`` refuses it by its path."""
    return int(digits) if len(digits) < 20 else float(digits)


def _object(pairs: list[tuple[str, object]], where: str) -> dict[str, object]:
    result: dict[str, object] = {}
    for key, value in pairs:
        if key in result:
            raise InputError(where, f"the key {_shown(key)} is given twice in one object", "remove one of them")
        result[key] = value
    return result


def _check_numbers(cursor: Cursor) -> None:
    value = cursor.value
    if isinstance(value, dict):
        for key in value:
            _check_numbers(cursor.child(key))
    elif isinstance(value, list):
        for item in cursor.items():
            _check_numbers(item)
    elif isinstance(value, float) and not math.isfinite(value):
        raise cursor.fail("the number is infinite or not a number", "write a finite number")
    elif isinstance(value, int | float) and abs(value) > LARGEST:
        raise cursor.fail(f"the number {value:.6g} is too large", f"write a number of at most {LARGEST}")


def _shown(value: object) -> str:
    """Return a short JSON form of a scalar for a message."""
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
