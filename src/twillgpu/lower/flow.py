"""Which values a warp group needs from others, which cheap ops it computes for itself, and what it needs from before
the loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from twillgpu.frontend.kernel import KernelOp
from twillgpu.lower.sheet import Sheet

IN_MEMORY = ("smem", "tmem")


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """``op`` of iteration i uses something of iteration i - ``distance``."""

    op: str
    distance: int


@dataclass(slots=True, kw_only=True)
class Needs:
    """What one group needs.

    Attributes:
        imports: register values of other groups, by (graph op that makes it, value).
        idle: ops of the loop body that are no work, by name.
        outer: values from before the loop, arguments and the loop counter included.
    """

    imports: dict[tuple[str, str], list[Use]] = field(default_factory=dict)
    idle: dict[str, list[Use]] = field(default_factory=dict)
    outer: dict[str, None] = field(default_factory=dict)


def needs_of(sheet: Sheet, group: int) -> Needs:
    """Return what the ops of one group need."""
    found = Needs()
    for name in sheet.ops:
        if sheet.group[name] == group:
            search = _Search(sheet, group, found)
            for value in values_read(sheet, name):
                search.resolve(value, Use(op=name, distance=0), frozenset())
    return found


def values_read(sheet: Sheet, name: str) -> Iterator[str]:
    """Yield the values that a graph op reads and does not make itself; a tile that another graph op stages for it in
    SMEM is not among them.
    """
    op = sheet.ops[name]
    if not op.members:
        if op.kind == "local_store":
            yield staged_value(sheet, name)
        return
    made: set[str] = set()
    for member in sheet.members(name):
        skipped = 1 if op.kind in ("tma_store", "tma_reduce") else -1
        yield from (value for at, value in enumerate(member.operands) if value not in made and at != skipped)
        made.update(result.name for result in member.results)


def staged_value(sheet: Sheet, name: str) -> str:
    """Return the register value that a ``local_store`` without members writes: the source of the TMA store."""
    store = next(edge.head for edge in sheet.edges if edge.tail == name and sheet.ops[edge.head].members)
    return sheet.members(store)[0].operands[1]


def loaded_value(sheet: Sheet, name: str) -> str:
    """Return the register value that a ``local_load`` without members makes: the tile of the TMA load."""
    load = next(edge.tail for edge in sheet.edges if edge.head == name and edge.kind == "data")
    return sheet.members(load)[0].results[0].name


def maker_of(sheet: Sheet, value: str, use: Use) -> str | None:
    """Return the graph op whose result of iteration i - distance the use reads as ``value``, if one makes it."""
    op = sheet.body.inner.get(value)
    if op is None:
        return None
    makers = set(sheet.makers.get(op.name, ()))
    makers |= {
        edge.head
        for edge in sheet.edges
        if edge.tail in makers and sheet.ops[edge.head].kind == "local_load" and not sheet.ops[edge.head].members
    }
    found = [
        edge.tail
        for edge in sheet.edges
        if edge.kind == "data" and (edge.head, edge.distance) == (use.op, use.distance) and edge.tail in makers
    ]
    return found[0] if found else None


class _Search:
    """Follows what one op reads to where it comes from; ``seen``: values with their distance in iterations."""

    def __init__(self, sheet: Sheet, group: int, found: Needs) -> None:
        self.sheet = sheet
        self.group = group
        self.found = found
        self.seen: set[tuple[str, int]] = set()

    def resolve(self, value: str, use: Use, passed: frozenset[str]) -> None:
        """Note what ``use`` of ``value`` needs; ``passed``: the carried values on the way to it."""
        sheet, found = self.sheet, self.found
        if (value, use.distance) in self.seen or value in passed or sheet.type_of(value).space == "token":
            return
        self.seen.add((value, use.distance))
        carried = sheet.carried(value)
        if carried is not None:
            found.outer[carried.initial] = None
            # A carried value that is made from itself (a pointer that moves on) needs to be looked at once.
            self.resolve(carried.yielded, Use(op=use.op, distance=use.distance + 1), passed | {value})
            return
        op = sheet.body.inner.get(value)
        if op is None:
            found.outer[value] = None
            return
        maker = maker_of(sheet, value, use)
        if maker is None:
            found.idle.setdefault(op.name, []).append(use)
            for operand in op.operands:
                self.resolve(operand, use, passed)
        elif not in_memory(sheet, maker) and sheet.group[maker] != self.group:
            found.imports.setdefault((maker, value), []).append(use)


def in_memory(sheet: Sheet, name: str) -> bool:
    """Return whether the result of a graph op is in SMEM or TMEM."""
    value = sheet.priced[name].value
    return value is not None and value.space in IN_MEMORY


def only_index(sheet: Sheet, op: KernelOp) -> bool:
    """Return whether an op follows from the loop counter and from what is known before the loop alone."""
    seen: set[str] = set()
    pending = list(op.operands)
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        carried, inner = sheet.carried(value), sheet.body.inner.get(value)
        if carried is not None:
            pending.append(carried.yielded)
        elif inner is not None:
            if sheet.makers.get(inner.name):
                return False
            pending += inner.operands
    return True
