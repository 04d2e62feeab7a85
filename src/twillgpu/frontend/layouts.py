"""Layout attributes of Triton's dialects as text: ``#ttg.slice<{dim = 1, parent = #ttg.blocked<{...}>}>``."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from twillgpu.frontend.tile_types import split_top

Vector = tuple[int, ...]
_TEXT = re.compile(r"(#(?:\w+\.)*)(\w+)<\{?(.*?)\}?>", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A layout attribute taken apart; ``braces`` is whether its parameters stand in ``<{...}>`` or ``<...>``."""

    prefix: str
    name: str
    entries: tuple[tuple[str, str], ...]
    braces: bool

    def get(self, key: str) -> str:
        """Return the text of one parameter, empty where it is missing."""
        return dict(self.entries).get(key, "")

    def number(self, key: str) -> int:
        """Return an integer parameter, without its type."""
        return int(self.get(key).split()[0])

    def numbers(self, key: str) -> Vector:
        """Return a parameter that is a list of integers."""
        return integers(self.get(key))

    def vectors(self, key: str) -> tuple[Vector, ...]:
        """Return a parameter that is a list of lists of integers."""
        return tuple(integers(inner) for inner in re.findall(r"\[([^\[\]]+)\]", self.get(key)[1:-1]))

    def with_entry(self, key: str, value: object) -> Layout:
        """Return the layout with one parameter changed; tuples are written as lists."""
        return replace(
            self, entries=tuple((name, _text(value) if name == key else old) for name, old in self.entries)
        )

    def __str__(self) -> str:
        inner = ", ".join(f"{key} = {value}" if value else key for key, value in self.entries)
        return f"{self.prefix}{self.name}<{{{inner}}}>" if self.braces else f"{self.prefix}{self.name}<{inner}>"


def parse_layout(text: str) -> Layout | None:
    """Return the layout attribute that ``text`` is, ``None`` for text of another form."""
    match = _TEXT.fullmatch(text)
    if match is None:
        return None
    prefix, name, inner = match.groups()
    parts = [part.partition(" = ") for part in split_top(inner) if part]
    entries = tuple((key.strip(), value.strip()) for key, _, value in parts)
    return Layout(prefix=prefix, name=name, entries=entries, braces=text.endswith("}>"))


def integers(text: str) -> Vector:
    """Return the integers in a list such as ``[8, 1]``."""
    return tuple(int(number) for number in re.findall(r"-?\d+", text))


def _text(value: object) -> str:
    return f"[{', '.join(map(_text, value))}]" if isinstance(value, tuple) else str(value)
