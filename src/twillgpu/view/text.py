"""Plain text: numbers, columns, wrapped lists."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

WIDTH = 80
TIE = "\N{NO-BREAK SPACE}"
"""A blank at which no line is broken; printed as an ordinary one."""


def number(value: float) -> str:
    """Return a number with thousands separators; whole numbers without a decimal point."""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.4g}"


def plural(count: int, noun: str) -> str:
    """Return ``1 cycle``, ``2 cycles``."""
    return f"{number(count)} {noun}" + ("" if count == 1 else "s")


def wrap(text: str, *, indent: str = "  ", hang: str = "", width: int = WIDTH) -> list[str]:
    """Break one paragraph into lines of at most ``width`` columns; ``hang`` is added to all but the first."""
    lines = textwrap.wrap(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=indent + hang,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(TIE, " ") for line in lines] or [indent.rstrip()]


def table(
    header: Sequence[str], rows: Iterable[Sequence[str]], *, right: Iterable[int] = (), width: int = WIDTH
) -> list[str]:
    """Lay out rows under a header, two blanks apart; the last column is wrapped to ``width``.

    Args:
        header: titles of the columns.
        rows: one string per column.
        right: indices of the columns that are flush right.
        width: columns of the whole line; a table that is wider without its last column is not cut.
    """
    body = [tuple(row) for row in rows]
    if not body:
        return []
    sizes = [max(len(row[column]) for row in (tuple(header), *body)) for column in range(len(header))]
    flush = frozenset(right)
    lead = 2 + sum(size + 2 for size in sizes[:-1])
    room = max(width - lead, 16)
    lines: list[str] = []
    for row in (tuple(header), *body):
        cells = [
            cell.rjust(size) if column in flush else cell.ljust(size)
            for column, (cell, size) in enumerate(zip(row, sizes, strict=True))
        ]
        tail = [cells[-1]] if len(header) - 1 in flush else wrap(row[-1], indent="", width=room)
        lines.append(("  " + "  ".join((*cells[:-1], tail[0]))).rstrip())
        lines.extend(" " * lead + rest for rest in tail[1:])
    return lines


def section(title: str, lines: Sequence[str]) -> list[str]:
    """Return a titled block with one blank line before it, or nothing where there are no lines."""
    return ["", title, *lines] if lines else []
