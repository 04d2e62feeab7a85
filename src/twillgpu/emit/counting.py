"""Copies and phases of rings and barriers as Gluon expressions.

Instance n of c copies is copy ``n mod c``, phase parity ``(n div c) & 1``. Division of negative numbers differs
between Python and the chip, so an instance that may be negative is counted from ``n + c``, with the parity turned
round: a lag is at most the number of copies.
"""

from __future__ import annotations

from dataclasses import dataclass

from twillgpu.lower.record import Instance, Iteration


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Expressions of the copy and of the phase parity of one instance."""

    copy: str
    phase: str


def iteration_text(iteration: Iteration) -> str:
    """Return an iteration as an expression of ``t`` and ``trips``, without parentheses."""
    if iteration.anchor == "first":
        return str(iteration.offset)
    return _plus("t" if iteration.anchor == "loop" else "trips", iteration.offset)


def place(instance: Instance, copies: int, least: int, *, persistent: bool) -> Place:
    """Return copy and phase of an instance.

    Args:
        instance: what is counted.
        copies: copies of the ring or barrier.
        least: the smallest value that ``t`` (anchor ``loop``) or ``trips`` (anchor ``last``) has there.
        persistent: whether ``base`` and ``tile`` count on from tile to tile.
    """
    variable, offset = _variable(instance)
    smallest = offset + (least if variable else 0)
    running = "" if not persistent else "tile" if instance.scope == "tile" else "base"
    if not variable and not running:
        return Place(copy=str(offset % copies), phase=str(offset // copies & 1))
    turned = smallest < 0
    return _counted(_sum(running, variable, offset + (copies if turned else 0)), copies, turned=turned)


def _counted(count: str, copies: int, *, turned: bool) -> Place:
    simple = count if count.isidentifier() else f"({count})"
    copy = "0" if copies == 1 else f"{simple} % {copies}"
    phase = f"{simple} & 1" if copies == 1 else f"({simple} // {copies}) & 1"
    return Place(copy=copy, phase=f"({phase}) ^ 1" if turned else phase)


def _variable(instance: Instance) -> tuple[str, int]:
    if instance.scope == "tile" or instance.iteration is None:
        return "", -instance.lag
    anchor = instance.iteration.anchor
    variable = "" if anchor == "first" else "t" if anchor == "loop" else "trips"
    return variable, instance.iteration.offset - instance.lag


def _sum(running: str, variable: str, offset: int) -> str:
    names = " + ".join(name for name in (running, variable) if name)
    return _plus(names, offset)


def _plus(text: str, offset: int) -> str:
    return text if offset == 0 else f"{text} {'+' if offset > 0 else '-'} {abs(offset)}"
