"""The rings of a program, and which graph op reads or writes which of them."""

from __future__ import annotations

from dataclasses import dataclass

from twillgpu.frontend.kernel import TileType
from twillgpu.lower.flow import IN_MEMORY, in_memory, loaded_value, staged_value
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
    """Return the ring that holds the result of a graph op in SMEM or TMEM."""
    value = sheet.priced[name].value
    return name if value is None or value.alias is None else value.alias


def pinned(sheet: Sheet, ring: str) -> bool:
    """Return whether a ring is one storage for all iterations: an alias class that is carried on."""
    members = [name for name in sheet.ops if in_memory(sheet, name) and ring_of(sheet, name) == ring]
    alias = any(sheet.priced[name].value.alias is not None for name in members)  # type: ignore[union-attr]
    return alias and any(edge.tail in members and edge.kind == "data" and edge.distance for edge in sheet.edges)


def loop_rings(sheet: Sheet, imported: dict[str, str]) -> tuple[Ring, ...]:
    """Return the rings of the schedule's buffers; ``imported`` says which value each staging buffer hands over."""
    return tuple(_ring(sheet, buffer, imported) for buffer in sheet.schedule.buffers)


def _ring(sheet: Sheet, buffer: Buffer, imported: dict[str, str]) -> Ring:
    memory: Memory = "tmem" if buffer.space == "tmem" else "smem"
    members = [name for name in sheet.ops if in_memory(sheet, name) and ring_of(sheet, name) == buffer.name]
    if members:
        tile = _tile(sheet, members[-1])
        values = tuple(dict.fromkeys(value for name in members for value in written(sheet, name)))
    else:
        value = imported[buffer.name]
        kind = sheet.type_of(value)
        tile = TileType(space="smem", shape=kind.shape, dtype=kind.dtype, mutable=True)
        values = (value,)
    return Ring(
        name=buffer.name,
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
        return op.work[0].results[0]
    if not op.members:
        return op.work[0].operands[1]
    return sheet.type_of(written(sheet, name)[0])


def written(sheet: Sheet, name: str) -> tuple[str, ...]:
    """Return the values that name the memory tile which a graph op writes."""
    op = sheet.ops[name]
    if not op.members:
        return (staged_value(sheet, name),)
    members = sheet.members(name)
    if op.kind in ("tma_load", "async_copy"):
        read = {operand for member in members for operand in member.operands}
        made = [result.name for member in members for result in member.results if result.name not in read]
        loads = [edge.head for edge in sheet.edges if edge.tail == name and not sheet.ops[edge.head].members]
        return tuple(dict.fromkeys((*made, *(loaded_value(sheet, load) for load in loads))))
    last = members[-1]
    position = _WRITTEN.get(last.opcode)
    return (last.results[0].name,) if position is None else (sheet.root(last.operands[position]),)


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


def is_memory(space: str) -> bool:
    """Return whether a value of this space is a name for SMEM or TMEM."""
    return space in IN_MEMORY
