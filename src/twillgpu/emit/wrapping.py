"""Long lines broken as the formatters of the field do it: the last pair of brackets is opened up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

WIDTH = 118
INDENT = "    "
_PAIRS = {")": "(", "]": "[", "}": "{"}


def wrapped_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines of at most ``WIDTH`` columns where brackets allow; comments and strings are left as they are."""
    for line in lines:
        if len(line) <= WIDTH or line.lstrip().startswith(("#", '"')):
            yield line
        else:
            yield from _broken(line)


def _broken(line: str) -> Iterator[str]:
    """Yield a line as head, contents of its last brackets, and tail."""
    indent = line[: len(line) - len(line.lstrip())]
    first, last = _last_brackets(line)
    if last < 0 or last == first + 1:
        yield line
        return
    head, body, tail = line[: first + 1], line[first + 1 : last], line[last:]
    inner = indent + INDENT
    parts = split_commas(body)
    single = f"{inner}{body.rstrip(', ')}"
    yield head
    if len(single) <= WIDTH and not (len(parts) > 1 and body.rstrip().endswith(",")):
        yield single
    elif len(parts) > 1 or _is_call(line[: first + 1]):
        for part in parts:
            yield from wrapped_lines([f"{inner}{part},"])
    else:
        yield from wrapped_lines([single])
    yield f"{indent}{tail}"


def _is_call(head: str) -> bool:
    return len(head) > 1 and (head[-2].isalnum() or head[-2] in "_])")


def _last_brackets(line: str) -> tuple[int, int]:
    """Return the places of the last closing bracket at the outermost level and of its opening one, -1 for none."""
    stack: list[int] = []
    found = (-1, -1)
    for at, sign in _code(line):
        if sign in "([{":
            stack.append(at)
        elif sign in _PAIRS and stack:
            first = stack.pop()
            if not stack and at > first + 1:
                found = (first, at)
    return found


def split_commas(text: str) -> list[str]:
    """Split at the commas that stand in no brackets."""
    parts, level, start = [], 0, 0
    for at, sign in _code(text):
        level += (sign in "([{") - (sign in ")]}")
        if sign == "," and level == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def _code(text: str) -> Iterator[tuple[int, str]]:
    """Yield places and characters that are not in string literals."""
    quote = ""
    for at, sign in enumerate(text):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'":
            quote = sign
        else:
            yield at, sign
