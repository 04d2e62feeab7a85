"""A cursor over text, shared by the parsers of MLIR's generic form and of the kernel text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TypeVar

from twillgpu.errors import InputError

Item = TypeVar("Item")

_SPACE = re.compile(r"(?:\s+|//[^\n]*)*")
_ESCAPE = re.compile(rb"\\([0-9A-Fa-f]{2}|\\)")
_STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
_CLOSING = {"(": ")", "{": "}", "[": "]", "<": ">"}


class Scanner:
    """Text, a position, and the name of the text for errors.

    Every method that reads skips white space and ``//`` comments first; those that demand something raise
    ``InputError`` at the line where the text differs.
    """

    def __init__(self, text: str, *, where: str, remedy: str) -> None:
        self.text = text
        self.where = where
        self.remedy = remedy
        self.at = 0

    @property
    def line(self) -> int:
        """Line of the position, counted from 1."""
        return self.text.count("\n", 0, self.at) + 1

    @property
    def done(self) -> bool:
        """Whether only white space and comments are left."""
        self.skip()
        return self.at >= len(self.text)

    def skip(self) -> None:
        """Move past white space and comments."""
        if match := _SPACE.match(self.text, self.at):
            self.at = match.end()

    def peek(self, literal: str) -> bool:
        """Return whether ``literal`` comes next."""
        self.skip()
        return self.text.startswith(literal, self.at)

    def eat(self, literal: str) -> bool:
        """Move past ``literal`` if it comes next, and return whether it did."""
        if not self.peek(literal):
            return False
        self.at += len(literal)
        return True

    def expect(self, literal: str) -> None:
        """Move past ``literal``."""
        if not self.eat(literal):
            raise self.error(f"expected {literal!r}")

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Move past a match of ``pattern`` and return it, or ``None``."""
        self.skip()
        found = pattern.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
        return found

    def at_match(self, pattern: re.Pattern[str]) -> bool:
        """Return whether a match of ``pattern`` comes next, without moving past it."""
        self.skip()
        return pattern.match(self.text, self.at) is not None

    def token(self, pattern: re.Pattern[str], what: str) -> str:
        """Move past a match of ``pattern`` and return its text; ``what`` names it in the error."""
        found = self.match(pattern)
        if found is None:
            raise self.error(f"expected {what}")
        return found.group(0)

    def string(self, what: str) -> str:
        """Move past a string in double quotes and return the text with its quotes."""
        return self.token(_STRING, what)

    def json_string(self, what: str) -> str:
        """Move past a JSON string and return its value."""
        raw = self.string(what)
        try:
            value: str = json.loads(raw)
        except ValueError:
            raise self.error(f"{raw} is not a JSON string") from None
        return value

    def mlir_string(self, what: str) -> str:
        r"""Move past an MLIR string and return its value; ``\\`` is a backslash, ``\C3`` a byte of UTF-8."""
        raw = self.string(what)[1:-1].encode()
        data = _ESCAPE.sub(lambda found: b"\\" if found[1] == b"\\" else bytes.fromhex(found[1].decode()), raw)
        return data.decode(errors="replace")

    def items(self, close: str, item: Callable[[], Item]) -> tuple[Item, ...]:
        """Read items separated by commas up to and past ``close``; the opening bracket is already read."""
        found: list[Item] = []
        while not self.eat(close):
            if found:
                self.expect(",")
            found.append(item())
        return tuple(found)

    def balanced(self, stop: str) -> str:
        """Move to the next character of ``stop`` outside brackets, strings and ``->``; return what is before."""
        self.skip()
        start = self.at
        brackets: list[str] = []
        while self.at < len(self.text):
            character = self.text[self.at]
            if not brackets and character in stop:
                break
            if character == '"':
                self.string("the end of the string")
                continue
            if self.text.startswith("->", self.at):
                self.at += 2
                continue
            if character in _CLOSING:
                brackets.append(_CLOSING[character])
            elif brackets and character == brackets[-1]:
                brackets.pop()
            self.at += 1
        if brackets:
            self.at = start
            raise self.error(f"a bracket is not closed: expected {brackets[-1]!r}")
        return self.text[start : self.at].strip()

    def error(self, what: str) -> InputError:
        """Return the error ``what`` at the current line, with what the text has there."""
        self.skip()
        rest = self.text[self.at : self.at + 40].split("\n", 1)[0]
        return InputError(f"{self.where}:{self.line}", f"{what}, found {rest or 'the end'!r}", self.remedy)
