"""Storages: what holds a value. One per value, or one per alias class."""

from __future__ import annotations

from dataclasses import dataclass

from twillgpu.costs.record import Problem
from twillgpu.graph.record import ValueSpace


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """A value or an alias class.

    Attributes:
        name: the alias class, or the op whose value it is.
        members: ops whose values it holds, in program order.
        space, bytes, registers_per_thread: the largest member's.
        pinned: occupied all the time, once (an accumulator updated in place across iterations).
    """

    name: str
    members: tuple[str, ...]
    space: ValueSpace
    bytes: int
    registers_per_thread: int
    pinned: bool


def storages(problem: Problem, space: ValueSpace) -> list[Storage]:
    """Return the storages of one space, in program order of their first members."""
    classes: dict[str, list[str]] = {}
    values = {op.name: op.value for op in problem.ops if op.value is not None and op.value.space == space}
    for name, value in values.items():
        classes.setdefault(f"alias {value.alias}" if value.alias else f"op {name}", []).append(name)
    carried = {edge.tail for edge in problem.edges if edge.kind == "data" and edge.distance >= 1}
    result = []
    for members in classes.values():
        held = [values[name] for name in members]
        alias = held[0].alias
        result.append(
            Storage(
                name=alias or members[0],
                members=tuple(members),
                space=space,
                bytes=max(value.bytes for value in held),
                registers_per_thread=max(value.registers_per_thread for value in held),
                pinned=alias is not None and any(name in carried for name in members),
            )
        )
    return result
