"""Errors that a user may meet: where, what, and what to do about it.

Every error of this family ends the command with exit status 1 and one message; a proved infeasibility and a
limit that was reached are statuses of a result, never exceptions.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class TwillError(Exception):
    """A user's mistake or an unsupported input.

    Attributes:
        where: place of the mistake: a file, ``file:line``, an option, or a path inside a document.
        what: what is wrong, in one sentence without a trailing full stop.
        remedy: what to do about it, in one sentence without a trailing full stop.
    """

    def __init__(self, where: str, what: str, remedy: str) -> None:
        super().__init__(where, what, remedy)
        self.where = where
        self.what = what
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.where}: {self.what}; {self.remedy}"


class InputError(TwillError):
    """A file, option or document that cannot be used as given."""


class UnsupportedError(TwillError):
    """A kernel that is valid for Triton but that this version declines, with the source line and the reason."""


def nearest(name: str, valid: Iterable[str]) -> str:
    """Return a hint that names the nearest valid spelling, or lists all of them when none is near."""
    choices = sorted(valid)
    close = difflib.get_close_matches(name, choices, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return "use one of " + ", ".join(choices) if choices else "none is defined"
