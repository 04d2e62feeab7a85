"""The space: axes from text, their product, and what each candidate means to the question."""

from __future__ import annotations

import hashlib
import itertools
import math
import string
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from twillgpu.errors import InputError, nearest
from twillgpu.frontend.launch import parse_options
from twillgpu.tune.expressions import check, evaluate
from twillgpu.tune.record import SPECIAL, SUBTILE, Axis, Candidate, Outcome, Question, Task, Value

MOST = 20_000
"""Candidates of a space: more would fill memory before the first is solved."""


def parse_axis(text: str) -> Axis:
    """Return the axis that ``NAME=VALUE,VALUE`` spells.

    ``default`` is the value that no option gives, for axes that are no constexpr; ``subtile=none`` is no sub-tiling.
    Raises ``InputError`` for anything else.
    """
    name, sign, values = (part.strip() for part in text.partition("="))
    if not name.isidentifier() or not sign or not all(part.strip() for part in values.split(",")):
        raise InputError(f"--space {text}", "this is no axis", "write --space NAME=VALUE,VALUE")
    return Axis(name=name, values=tuple(_value(name, part.strip()) for part in values.split(",")))


def _value(name: str, text: str) -> Value:
    if name not in SPECIAL:
        return parse_options(constexprs=[f"{name}={text}"]).constexprs[0][1]
    if text == "default":
        return None
    if name == SUBTILE and text == "none":
        return 0
    if not text.isdecimal() or (int(text) == 0 and name != "registers"):
        more = "none, " if name == SUBTILE else ""
        raise InputError(f"--space {name}={text}", f"{text!r} is no number", f"use numbers, {more}or default")
    return int(text)


def product(axes: Sequence[Axis]) -> tuple[Candidate, ...]:
    """Return every candidate, the last axis fastest.

    Raises ``InputError`` where an axis is given twice, there is none, or the space is too large.
    """
    names = [axis.name for axis in axes]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"--space {name}", "the axis is given twice", "give all of its values at once")
    if not axes:
        raise InputError("--space", "there is nothing to choose from", "add --space NAME=VALUE,VALUE")
    size = math.prod(len(axis.values) for axis in axes)
    if size > MOST:
        raise InputError("--space", f"the space has {size:,} candidates", f"leave at most {MOST:,}")
    points = itertools.product(*(axis.values for axis in axes))
    return tuple(Candidate(values=tuple(zip(names, point, strict=True))) for point in points)


def check_question(question: Question, axes: Sequence[Axis]) -> None:
    """Raise ``InputError`` where an expression or a file's template names something unknown."""
    names = _constants(question) | {axis.name for axis in axes}
    for text in question.grid:
        check(text, "--grid", names)
    for text in question.where:
        check(text, "--where", names)
    if question.trips is not None:
        check(question.trips, "--trips", names)
    for template in (question.source, question.graphs or ""):
        for field in _fields(template):
            if field not in names:
                raise InputError(template, f"{{{field}}} is no axis", nearest(field, names))


def _constants(question: Question) -> set[str]:
    return {name for name, _ in (*question.shape, *question.load.constexprs)}


def _fields(template: str) -> tuple[str, ...]:
    try:
        return tuple(field for _, field, _, _ in string.Formatter().parse(template) if field is not None)
    except ValueError as error:
        raise InputError(template, f"is no file name with {{NAME}} in it ({error})", "pair the braces") from None


def names_of(question: Question, candidate: Candidate) -> dict[str, object]:
    """Return the values that expressions may use, an axis before a size or constant of the same name."""
    return {**dict(question.load.constexprs), **dict(question.shape), **dict(candidate.values)}


def tasks_of(question: Question, candidates: Iterable[Candidate]) -> tuple[tuple[Task, ...], tuple[Outcome, ...]]:
    """Return the tasks of all candidates that meet the conditions, and the rows of those that do not."""
    digests: dict[str, str] = {}
    tasks, declined = [], []
    for candidate in candidates:
        values = names_of(question, candidate)
        try:
            reason = _unmet(question, values)
            blocks, trips = _launch(question, values)
        except (ArithmeticError, TypeError, ValueError) as error:
            reason, blocks, trips = str(error), 0, None
        if reason:
            declined.append(Outcome(candidate=candidate, status="declined", reason=reason))
            continue
        files = _files(question, values)
        tasks.append(
            Task(
                question=question,
                candidate=candidate,
                files=files,
                digests=tuple(_digest(file, digests) for file in files),
                blocks=blocks,
                trips=trips,
            )
        )
    return tuple(tasks), tuple(declined)


def _unmet(question: Question, values: Mapping[str, object]) -> str:
    unmet = (text for text in question.where if not evaluate(text, values))
    return next((f"{text} does not hold" for text in unmet), "")


def _launch(question: Question, values: Mapping[str, object]) -> tuple[int, int | None]:
    blocks = math.prod(_count(text, values) for text in question.grid)
    return blocks, None if question.trips is None else _count(question.trips, values)


def _count(text: str, values: Mapping[str, object]) -> int:
    found = evaluate(text, values)
    if not isinstance(found, int | float) or found != int(found) or found < 1:
        raise ValueError(f"{text} is {found}, not a positive whole number")
    return int(found)


def _files(question: Question, values: Mapping[str, object]) -> tuple[str, ...]:
    """Return the candidate's source and, where there is one, the graph that stands in for it, as whole paths."""
    named = question.source.format(**values) if _fields(question.source) else question.source
    source = str(Path(named).absolute())
    if question.graphs is None:
        return (source,)
    graph = str(Path(question.graphs.format(**values)).absolute())
    return (source, graph) if Path(graph).is_file() else (source,)


def _digest(file: str, known: dict[str, str]) -> str:
    """Return the SHA-256 of a file, ``""`` where it cannot be read: the worker says why."""
    if file not in known:
        known[file] = file_digest(file)
    return known[file]


def file_digest(file: str) -> str:
    """Return the SHA-256 of a file's bytes in hex, ``""`` where it cannot be read."""
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except (OSError, ValueError):
        return ""
