"""The rings of a program, and which graph op reads or writes which of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from twillgpu.frontend.kernel import KernelOp, TileType
from twillgpu.lower.flow import in_memory, loaded_value, staged_value
from twillgpu.lower.record import Memory, Ring
from twillgpu.lower.sheet import Sheet
from twillgpu.schedule.record import Buffer

STAGING = ".staging"
_WRITTEN = {"ttng.tc_gen5_mma": 2, "ttng.tc_gen5_mma_scaled": 2, "ttng.tmem_store": 0, "ttg.local_store": 1}
"""Position of the memory tile that an op writes in place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Touch:
    """A step of iteration i reads, or writes, instance i - ``distance`` of a ring."""

    step: str
    ring: str
    writes: bool
    distance: int


def ring_of(sheet: Sheet, name: str) -> str:
    """Return the ring that holds the result of a graph op in SMEM or TMEM. Members of an alias class with tiles of
    different types (the product S and the operand P in its columns) have rings of their own in one place.
    """
    value = sheet.priced[name].value
    if value is None or value.alias is None:
        return name
    mates = _class_of(sheet, value.alias)
    same = [mate for mate in mates if _kind(sheet, mate) == _kind(sheet, name)]
    return value.alias if len(same) == len(mates) else same[0]


def _class_of(sheet: Sheet, alias: str) -> tuple[str, ...]:
    """Return the graph ops whose results in SMEM or TMEM share a storage."""
    values = ((name, sheet.priced[name].value) for name in sheet.ops if in_memory(sheet, name))
    return tuple(name for name, value in values if value is not None and value.alias == alias)


def _kind(sheet: Sheet, name: str) -> tuple[str, tuple[int, ...], str]:
    tile = _tile(sheet, name)
    return tile.space, tile.shape, tile.dtype


def pinned(sheet: Sheet, ring: str) -> bool:
    """Return whether a ring is one storage for all iterations: an alias class that is carried on."""
    members = [name for name in sheet.ops if in_memory(sheet, name) and ring_of(sheet, name) == ring]
    alias = any(sheet.priced[name].value.alias is not None for name in members)  # type: ignore[union-attr]
    return alias and any(edge.tail in members and edge.kind == "data" and edge.distance for edge in sheet.edges)


def loop_rings(sheet: Sheet, imported: dict[str, str]) -> tuple[Ring, ...]:
    """Return the rings of the schedule's buffers; ``imported`` says which value each staging buffer hands over."""
    return tuple(ring for buffer in sheet.schedule.buffers for ring in _rings(sheet, buffer, imported))


def _rings(sheet: Sheet, buffer: Buffer, imported: dict[str, str]) -> Iterator[Ring]:
    held = _class_of(sheet, buffer.name) or ((buffer.name,) if buffer.name in sheet.ops else ())
    if not held:
        value = imported[buffer.name]
        kind = sheet.type_of(value)
        tile = TileType(space="smem", shape=kind.shape, dtype=kind.dtype, mutable=True)
        yield _ring(buffer, buffer.name, tile, (value,))
        return
    members: dict[str, list[str]] = {}
    for name in held:
        members.setdefault(ring_of(sheet, name), []).append(name)
    for ring, names in members.items():
        values = dict.fromkeys(value for name in names for value in written(sheet, name))
        yield _ring(buffer, ring, _tile(sheet, names[-1]), tuple(values))


def _ring(buffer: Buffer, name: str, tile: TileType, values: tuple[str, ...]) -> Ring:
    memory: Memory = "tmem" if buffer.space == "tmem" else "smem"
    return Ring(
        name=name,
        memory=memory,
        bytes=buffer.bytes,
        depth=buffer.depth,
        offset_bytes=buffer.offset_bytes,
        scope="iteration",
        tile=tile,
        values=values,
    )


def _tile(sheet: Sheet, name: str) -> TileType:
    """Return the type of the memory tile that a graph op writes."""
    op = sheet.ops[name]
    if op.kind in ("tma_load", "async_copy"):
        tile, kind = op.work[0].results[0], sheet.type_of(written(sheet, name)[0])
        return replace(tile, shape=kind.shape)
    if not op.members:
        return op.work[0].operands[1]
    return sheet.type_of(written(sheet, name)[0])


def written(sheet: Sheet, name: str) -> tuple[str, ...]:
    """Return the values that name the memory tile which a graph op writes."""
    op = sheet.ops[name]
    if not op.members:
        return (staged_value(sheet, name),)
    members = sheet.members(name)
    if op.kind == "async_copy":
        loaded = members[0].results[0].name
        made = [one.results[0].name for one in members if one.opcode == "ttg.local_alloc"]
        return tuple(made) if len(copied(sheet, name)) == len(members) else (*made, loaded)
    if op.kind == "tma_load":
        read = {operand for member in members for operand in member.operands}
        made = [result.name for member in members for result in member.results if result.name not in read]
        loads = [edge.head for edge in sheet.edges if edge.tail == name and not sheet.ops[edge.head].members]
        return tuple(dict.fromkeys((*made, *(loaded_value(sheet, load) for load in loads))))
    last = members[-1]
    position = _WRITTEN.get(last.opcode)
    return (last.results[0].name,) if position is None else (sheet.root(last.operands[position]),)


def copied(sheet: Sheet, name: str) -> tuple[str, ...]:
    """Return the members of a copy to SMEM that are done on the way: the load, and what leads to an allocation."""
    members = sheet.members(name)
    if not any(one.opcode == "ttg.local_alloc" for one in members):
        return (members[0].name,)
    made = [one.results[0].name for one in members if one.opcode == "ttg.local_alloc"]
    wanted = _behind(members, made)
    return tuple(one.name for one in members if one.name in wanted)


def members_of(sheet: Sheet, name: str) -> tuple[str, ...]:
    """Return the kernel ops that run as one graph op. A copy leaves to its readers what they do with the tile when
    they read it: change its layout for ``tt.dot``.
    """
    op = sheet.ops[name]
    if op.kind == "async_copy":
        return copied(sheet, name)
    found: dict[str, None] = {}
    for edge in sheet.edges:
        if edge.head == name and edge.kind == "data" and sheet.ops[edge.tail].kind == "async_copy":
            staged = sheet.members(edge.tail)
            wanted = _behind(staged, (value for member in sheet.members(name) for value in member.operands))
            done = copied(sheet, edge.tail)
            found |= {one.name: None for one in staged if one.name in wanted and one.name not in done}
    return (*found, *op.members)


def _behind(members: Sequence[KernelOp], values: Iterable[str]) -> set[str]:
    """Return the names of the members that values are made by, one after the other."""
    found: set[str] = set()
    pending = list(values)
    while pending:
        value = pending.pop()
        for one in members:
            if one.results[0].name == value and one.name not in found:
                found.add(one.name)
                pending += one.operands
    return found


def op_touches(sheet: Sheet, name: str) -> tuple[Touch, ...]:
    """Return what a graph op does to rings of the loop."""
    found: dict[Touch, None] = {}
    for edge in sheet.edges:
        if edge.head == name and edge.kind == "data" and in_memory(sheet, edge.tail):
            touch = Touch(step=name, ring=ring_of(sheet, edge.tail), writes=False, distance=edge.distance)
            found[touch] = None
    if in_memory(sheet, name):
        found[Touch(step=name, ring=ring_of(sheet, name), writes=True, distance=0)] = None
    return tuple(found)
