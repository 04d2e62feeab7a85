"""Mutants of emitted sources, made by substitution in their text, one statement at a time."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

DROPPED = (
    "mbarrier.wait(", "mbarrier.arrive(", "mbarrier.expect(", "tcgen05_commit(", "fence_async_shared()",
    "tma.store_wait(", "tma_load(", "tma_store(", "tma_add(", "tcgen05_mma(", ".store(", "gl.store(",
)  # fmt: skip
"""Statements that are dropped."""

DOUBLED = ("mbarrier.arrive(", "mbarrier.expect(", "tcgen05_commit(", "tma_load(", "tma_add(")
"""Statements that are made twice."""

EDITS = (
    ("parity flipped", re.compile(r"^(mbarrier\.wait\(.*), ([^,]*)\)$"), r"\1, (\2) ^ 1)"),
    (
        "other copy",
        re.compile(r"\.index\((\w+ \+ )?(\(?t(?:rips)?(?: - \d+\))?) % (\d+)\)"),
        r".index(\1(\2 + 1) % \3)",
    ),
    ("use_acc flipped", re.compile(r"use_acc=False"), "use_acc=True"),
    ("use_acc flipped", re.compile(r"use_acc=True"), "use_acc=False"),
    ("use_acc flipped", re.compile(r"use_acc=t > 0"), "use_acc=t > 1"),
    ("bytes halved", re.compile(r"^(mbarrier\.expect\(.*), (\d+)\)$"), r"\1, \2 // 2)"),
    ("coordinate moved", re.compile(r"\bt \* (\d+)"), r"(t + 1) * \1"),
    ("coordinate moved", re.compile(r"^(tma_(?:store|load)\(\w+, \[)(\w+)"), r"\1\2 + 1"),
    ("rows shifted", re.compile(r"\.slice\((64|128), "), ".slice(0, "),
    ("not transposed", re.compile(r"\.permute\(\[1, 0\]\)"), ""),
    ("waits for less", re.compile(r"warpgroup_mma_wait\(0, "), "warpgroup_mma_wait(3, "),
    ("count raised", re.compile(r"^(mbarrier\.init\(.*count=)(\d+)\)$"), r"\1\2 + 1)"),
    ("previous value", re.compile(r"\bprev_(\w+)"), r"\1"),
)  # fmt: skip
"""Substitutions: what they do, what they look for, what they put there. The first match of a statement counts."""

HELPERS = ("piece", "tma_add")
"""Functions of the source that differ between versions of Triton."""


class Mutant(NamedTuple):
    """A changed source: what was done, the number of the line, the statement as it was, and the text."""

    what: str
    line: int
    old: str
    text: str

    def __str__(self) -> str:
        return f"{self.what} at line {self.line}: {self.old}"


def mutants(text: str) -> Iterator[Mutant]:
    """Yield every mutant of a source."""
    lines = text.split("\n")
    for statement in _statements(ast.parse(text)):
        old, indent = ast.unparse(statement), " " * statement.col_offset
        first, last = statement.lineno - 1, statement.end_lineno or statement.lineno
        for what, new in _changes(old):
            changed = "\n".join([*lines[:first], *(indent + line for line in new), *lines[last:]])
            yield Mutant(what, statement.lineno, old, changed)


def _statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """Yield what the groups and the kernel do, statement by statement."""
    for function in tree.body:
        if isinstance(function, ast.FunctionDef) and function.decorator_list and function.name not in HELPERS:
            yield from (one for one in ast.walk(function) if isinstance(one, ast.Expr | ast.Assign))


def _changes(statement: str) -> Iterator[tuple[str, list[str]]]:
    if any(word in statement for word in DROPPED):
        yield "dropped", ["pass"]
    if any(word in statement for word in DOUBLED):
        yield "doubled", [statement, statement]
    for what, pattern, new in EDITS:
        changed = pattern.sub(new, statement, count=1)
        if changed != statement:
            yield what, [changed]
