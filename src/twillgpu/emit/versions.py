"""Which variable holds a value that one iteration makes and a later step of the pipelined loop reads.

A value made in the loop is in the variable of its name. Just before it is made again, the old one moves to
``prev_NAME`` if anything still reads it after that, and the one before to ``prev2_NAME``, and so on. So at a place
before the definition in the body, the value made k steps ago (k >= 1) is in variable k - 1 of this chain; after it,
the value made k steps ago (k >= 0) is in variable k.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from twillgpu.errors import UnsupportedError
from twillgpu.frontend.kernel import Loop


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a name read in the loop comes from: the value of the body that an earlier iteration made (``distance``
    iterations before the reader's), and the values that stand for it in the first ``distance`` iterations, from the
    reader's iteration 0 on.
    """

    value: str
    distance: int
    initial: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """Where a group makes a value in its loop: position in the body, and local stage."""

    position: int
    stage: int


def origin(name: str, loop: Loop) -> Origin:
    """Follow block arguments of the loop to the value that the body makes.

    Raises:
        UnsupportedError: arguments that only hand each other on.
    """
    carried = {one.argument.name: one for one in loop.carried}
    initial: list[str] = []
    while name in carried:
        if len(initial) > len(carried):
            raise UnsupportedError(
                loop.source, "values that the loop only hands on to itself", "carry what it computes"
            )
        initial.append(carried[name].initial)
        name = carried[name].yielded
    return Origin(value=name, distance=len(initial), initial=tuple(initial))


def age(reader_stage: int, distance: int, definition: Definition) -> int:
    """Return how many steps ago the value was made that a reader of local stage ``reader_stage`` wants."""
    return reader_stage + distance - definition.stage


def index(steps: int, position: int, definition: Definition) -> int:
    """Return the variable of the chain that holds, at ``position`` of the body, what was made ``steps`` steps ago."""
    return steps if position > definition.position else steps - 1


def variable(name: str, at: int) -> str:
    """Return the name of variable ``at`` of the chain of ``name``."""
    return name if at == 0 else f"prev_{name}" if at == 1 else f"prev{at}_{name}"


def moves(name: str, last: int) -> tuple[tuple[str, str], ...]:
    """Return the assignments (target, source) that make room before the value is made again, for a chain up to
    variable ``last``.
    """
    return tuple((variable(name, at), variable(name, at - 1)) for at in range(last, 0, -1))


def chains(reads: Iterable[tuple[str, int]]) -> Mapping[str, int]:
    """Return the last variable of each chain, from (value, index) of every read."""
    found: dict[str, int] = {}
    for value, at in reads:
        found[value] = max(found.get(value, 0), at)
    return found
