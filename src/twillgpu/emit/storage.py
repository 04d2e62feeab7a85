"""Allocation of rings and barriers in the emitted kernel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from twillgpu.emit.frame import BARRIERS, Frame
from twillgpu.emit.layouts import dtype
from twillgpu.errors import UnsupportedError
from twillgpu.graph.body import element_bits
from twillgpu.lower.record import Ring

CHUNK = 1024
"""Bytes of a chunk of the pool: SMEM buffers are placed at multiples of it."""

POOL = "gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=8)"
"""Layout of a chunk, 8 rows of 128 bytes: the compiler aligns what has it to 1,024 bytes."""

COLUMN = 512
"""Bytes of a column of TMEM: 128 lanes of 4 bytes."""

LEAST_COLUMNS = 32
"""Columns of an allocation of TMEM at least (PTX ISA, tcgen05.alloc)."""


def allocations(frame: Frame) -> Iterator[str]:
    """Yield the statements that allocate every ring and every barrier, and initialise the barriers."""
    shared = {*pooled(frame)}
    yield from _smem_pool(frame)
    yield from _tmem_pool(frame)
    yield from (_own(frame, ring) for ring in frame.program.rings if ring.name not in shared)
    copies = sum(barrier.copies for barrier in frame.program.barriers)
    if not copies:
        return
    yield f"{BARRIERS} = gl.allocate_shared_memory(gl.int64, [{copies}, 1], mbarrier.MBarrierLayout())"
    for barrier in frame.program.barriers:
        name = frame.barrier_name(barrier.name)
        if barrier.copies == 1:
            yield f"mbarrier.init({BARRIERS}.index({name}), count={barrier.arrivals})"
        else:
            yield f"for copy in gl.static_range({barrier.copies}):"
            yield f"    mbarrier.init({BARRIERS}.index({name} + copy), count={barrier.arrivals})"


def barrier_places(frame: Frame) -> Iterator[str]:
    """Yield the constants that say where in the array of barriers each one's first copy is. One array takes less room
    than many, and groups are handed one value for all of them.
    """
    at = 0
    for barrier in frame.program.barriers:
        yield f"{frame.barrier_name(barrier.name)} = gl.constexpr({at})"
        at += barrier.copies


def overlap(one: Ring, other: Ring) -> bool:
    """Return whether two rings share bytes of one memory."""
    if one.memory != other.memory:
        return False
    ends = [ring.offset_bytes + ring.depth * ring.bytes for ring in (one, other)]
    return one.offset_bytes < ends[1] and other.offset_bytes < ends[0]


def pooled(frame: Frame) -> dict[str, Ring]:
    """Return the rings that are pieces of a pool, by name: all rings of a memory where two of them share bytes."""
    rings = frame.program.rings
    shared = {one.memory for one in rings for other in rings if other is not one and overlap(one, other)}
    return {ring.name: ring for ring in rings if ring.memory in shared}


def pool_columns(rings: Iterable[Ring]) -> int:
    """Return the columns of a pool of TMEM: a power of two, 32 at least, as the hardware allocates."""
    used = max(-(-(ring.offset_bytes + ring.depth * ring.bytes) // COLUMN) for ring in rings)
    return max(LEAST_COLUMNS, 1 << (used - 1).bit_length())


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Columns of a pool that a ring is named by: the first one, how many, and copies in it before the ring's own."""

    first: int
    size: int
    skipped: int


def window(ring: Ring, columns: int) -> Window:
    """Return the smallest window of a pool of so many columns: Triton only names powers of two of them.

    Raises:
        UnsupportedError: there is none, as the ring does not begin at a multiple of its copy.
    """
    at, copy = ring.offset_bytes // COLUMN, max(1, ring.bytes // COLUMN)
    size = 1 << (copy * ring.depth - 1).bit_length()
    while size <= columns:
        for skipped in range(size // copy - ring.depth + 1):
            first = at - skipped * copy
            if 0 <= first <= columns - size:
                return Window(first=first, size=size, skipped=skipped)
        size *= 2
    raise UnsupportedError(
        f"buffer {ring.name}",
        f"{ring.depth} copies of {copy} columns of TMEM from column {at} on are in no power of two of columns",
        "search again with another --seed",
    )


def skipped(frame: Frame) -> dict[str, int]:
    """Return the copies in front of the first one of each ring that is named by a larger window of TMEM."""
    rings = [ring for ring in pooled(frame).values() if ring.memory == "tmem"]
    return {ring.name: window(ring, pool_columns(rings)).skipped for ring in rings}


def _tmem_pool(frame: Frame) -> Iterator[str]:
    rings = [ring for ring in pooled(frame).values() if ring.memory == "tmem"]
    if not rings:
        return
    columns = pool_columns(rings)
    layout = f"TensorMemoryLayout((128, {columns}), col_stride=1)"
    yield f"columns: gl.constexpr = {layout}"
    yield f"tmem = allocate_tensor_memory(gl.float32, [128, {columns}], columns)"
    for ring in rings:
        found = window(ring, columns)
        form = _form(frame, ring, found.size * COLUMN // ring.bytes)
        yield f"{frame.ring_name(ring)} = tmem.slice({found.first}, {found.size}).reinterpret({form})"


def _form(frame: Frame, ring: Ring, copies: int = 0) -> str:
    """Return element type, shape and layout of a ring as arguments."""
    element, layout = dtype(ring.tile.dtype, ring.name), frame.layouts.name(shared_layout(ring), ring.name)
    return f"{element}, {[copies or ring.depth, *ring.tile.shape]}, {layout}"


def _smem_pool(frame: Frame) -> Iterator[str]:
    rings = [ring for ring in pooled(frame).values() if ring.memory == "smem"]
    if not rings:
        return
    first = min(ring.offset_bytes for ring in rings) // CHUNK
    last = max(-(-(ring.offset_bytes + ring.depth * ring.bytes) // CHUNK) for ring in rings)
    yield f"chunk: gl.constexpr = {POOL}"
    yield f"pool = gl.allocate_shared_memory(gl.int8, [{last - first}, 8, 128], chunk)"
    for ring in rings:
        at, size = ring.offset_bytes // CHUNK - first, -(-ring.depth * ring.bytes // CHUNK)
        yield f"{frame.ring_name(ring)} = piece(pool, {at}, {size}).reinterpret({_form(frame, ring)})"


def shared_layout(ring: Ring) -> str:
    """Return the layout of a ring; one that hands register tiles over has rows swizzled in vectors of 16 bytes."""
    if ring.tile.layout:
        return ring.tile.layout
    order = list(reversed(range(len(ring.tile.shape))))
    vector = max(1, min(128 // element_bits(ring.tile.dtype), ring.tile.shape[-1])) if len(order) > 1 else 1
    phases = max(1, min(8, ring.tile.shape[-1] // vector)) if len(order) > 1 else 1
    return f"#ttg.swizzled_shared<{{vec = {vector}, perPhase = 1, maxPhase = {phases}, order = {order}}}>"


def _own(frame: Frame, ring: Ring) -> str:
    call = "gl.allocate_shared_memory" if ring.memory == "smem" else "allocate_tensor_memory"
    return f"{frame.ring_name(ring)} = {call}({_form(frame, ring)})"
