"""Where and when values live: registers of each group, buffers in SMEM and TMEM, staging copies.

The definitions are those of ``docs/formulation.md``, "Which registers are live where" and "Staging". All spans
are of iteration 0, in cycles.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from twillgpu.costs.record import PricedEdge, PricedOp, PricedValue
from twillgpu.graph.record import ValueSpace
from twillgpu.verify.expand import Span
from twillgpu.verify.sheet import Sheet


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """An op with the value it produces."""

    op: PricedOp
    value: PricedValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """One storage per iteration: a value, or an alias class of values.

    Attributes:
        name: the op's name, or that of the alias class.
        members: the ops that write it.
        pinned: a data edge of distance 1 or more leaves a member: one storage for all iterations.
    """

    name: str
    space: ValueSpace
    members: tuple[Member, ...]
    pinned: bool

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the member ops."""
        return tuple(member.op.name for member in self.members)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """What needs a buffer: bytes of one copy and the span during which iteration 0 occupies it."""

    name: str
    space: ValueSpace
    bytes: int
    span: Span
    pinned: bool = False
    optional: bool = False
    """A buffer may be absent: an empty staging copy, or one where the machine has no SMEM to charge."""


def storages(sheet: Sheet) -> tuple[Storage, ...]:
    """Return every storage of the loop body, alias classes as one, in the order of their first op."""
    classes: dict[tuple[str, str, bool], list[Member]] = defaultdict(list)
    for op in sheet.ops.values():
        if op.value is not None:
            alias = op.value.alias
            key = (op.value.space, op.name if alias is None else alias, alias is None)
            classes[key].append(Member(op=op, value=op.value))
    return tuple(
        Storage(
            name=name,
            space=members[0].value.space,
            members=tuple(members),
            pinned=not single and any(_carried(sheet, member.op.name) for member in members),
        )
        for (_, name, single), members in classes.items()
    )


def tenants(sheet: Sheet) -> tuple[Tenant, ...]:
    """Return everything that needs a buffer: values in SMEM and TMEM, and staging copies."""
    stored = tuple(_stored(sheet, storage) for storage in storages(sheet) if storage.space != "registers")
    staged = tuple(staging for op in sheet.ops.values() for staging in _staging(sheet, op))
    return stored + staged


def register_spans(sheet: Sheet, group: int) -> tuple[Span, ...]:
    """Return what occupies the registers of ``group``, in registers per thread: values, copies, residents."""
    spans: list[Span] = []
    for storage in storages(sheet):
        if storage.space == "registers":
            spans.extend(_in_group(sheet, storage, group))
    spans.extend(
        _always(sheet, resident.name, resident.registers_per_thread)
        for resident in sheet.problem.residents
        if any(sheet.group.get(user) == group for user in resident.users)
    )
    return tuple(spans)


def crossing(sheet: Sheet, name: str) -> tuple[PricedEdge, ...]:
    """Return the data edges from op ``name`` to consumers in other groups."""
    return tuple(edge for edge in sheet.readers(name) if sheet.crosses(edge))


def written_out(sheet: Sheet, op: PricedOp) -> int:
    """Return the cycle until which a register value is in its own group's registers for its own sake: it is
    being computed, and written out where another group consumes it.
    """
    handoff = op.handoff_cycles if crossing(sheet, op.name) else 0
    return sheet.start[op.name] + op.latency_cycles + handoff


def _carried(sheet: Sheet, name: str) -> bool:
    return any(edge.distance >= 1 for edge in sheet.readers(name))


def _always(sheet: Sheet, name: str, amount: int) -> Span:
    """Return a span that every iteration takes over from the one before: occupied all the time, once."""
    return Span(subject=name, start=0, end=sheet.interval, amount=amount)


def _in_group(sheet: Sheet, storage: Storage, group: int) -> Iterator[Span]:
    here = tuple(member.op for member in storage.members if sheet.group[member.op.name] == group)
    if here:
        yield _own(sheet, storage, here)
    for member in storage.members:
        if sheet.group[member.op.name] != group:
            yield from _copy(sheet, storage, member, group)


def _own(sheet: Sheet, storage: Storage, here: tuple[PricedOp, ...]) -> Span:
    """Return the span of a register storage in the group that holds the members ``here``."""
    amount = max(member.value.registers_per_thread for member in storage.members)
    if storage.pinned:
        return _always(sheet, storage.name, amount)
    return Span(
        subject=storage.name,
        start=min(sheet.start[op.name] for op in here),
        end=max(_register_end(sheet, op) for op in here),
        amount=amount,
    )


def _register_end(sheet: Sheet, op: PricedOp) -> int:
    reads = (
        sheet.at(edge.head, edge.distance) + edge.read_cycles
        for edge in sheet.readers(op.name)
        if not sheet.crosses(edge)
    )
    return max([written_out(sheet, op), *reads])


def _copy(sheet: Sheet, storage: Storage, member: Member, group: int) -> Iterator[Span]:
    """Yield the span of the copy that ``group`` receives, if a consumer there is no member itself."""
    edges = tuple(
        edge
        for edge in sheet.readers(member.op.name)
        if sheet.group[edge.head] == group and edge.head not in storage.names
    )
    if edges:
        yield Span(
            subject=f"{member.op.name} (copy)",
            start=min(sheet.at(edge.head, edge.distance) for edge in edges),
            end=max(
                sheet.at(edge.head, edge.distance) + max(edge.read_cycles, sheet.ops[edge.head].issue_cycles)
                for edge in edges
            ),
            amount=member.value.registers_per_thread,
        )


def _stored(sheet: Sheet, storage: Storage) -> Tenant:
    size = max(member.value.bytes for member in storage.members)
    start = min(sheet.start[name] for name in storage.names)
    end = max(_memory_end(sheet, member.op) for member in storage.members)
    if storage.pinned:
        start, end = 0, sheet.interval
    span = Span(subject=storage.name, start=start, end=max(end, start + 1), amount=1)
    return Tenant(name=storage.name, space=storage.space, bytes=size, span=span, pinned=storage.pinned)


def _memory_end(sheet: Sheet, op: PricedOp) -> int:
    readers = sheet.readers(op.name)
    latency = op.latency_cycles if readers else op.real_latency_cycles
    reads = (sheet.at(edge.head, edge.distance) + edge.read_cycles for edge in readers)
    return max([sheet.start[op.name] + latency, *reads])


def _staging(sheet: Sheet, op: PricedOp) -> Iterator[Tenant]:
    edges = crossing(sheet, op.name)
    if op.value is None or op.value.space != "registers" or not edges:
        return
    start = sheet.start[op.name] + op.latency_cycles
    end = max(sheet.at(edge.head, edge.distance) for edge in edges)
    limited = any(memory.name == "smem" for memory in sheet.problem.memories)
    yield Tenant(
        name=f"{op.name}.staging",
        space="smem",
        bytes=op.staging_bytes,
        span=Span(subject=f"{op.name}.staging", start=start, end=max(end, start + 1), amount=1),
        optional=not limited or op.staging_bytes == 0,
    )
