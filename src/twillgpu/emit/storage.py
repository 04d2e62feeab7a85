"""Allocation of rings and barriers in the emitted kernel."""

from __future__ import annotations

from collections.abc import Iterator

from twillgpu.emit.frame import Frame
from twillgpu.emit.layouts import dtype
from twillgpu.errors import UnsupportedError
from twillgpu.graph.body import element_bits
from twillgpu.lower.record import Ring


CHUNK = 1024
"""Bytes of a chunk of the pool: SMEM buffers are placed at multiples of it."""


def allocations(frame: Frame) -> Iterator[str]:
    """Yield the statements that allocate every ring and every barrier, and initialise the barriers.

    Raises:
        UnsupportedError: rings that share storage in a way that Gluon cannot write.
    """
    yield from _pool(frame)
    done: list[Ring] = []
    for ring in sorted(frame.program.rings, key=lambda one: (-one.bytes * one.depth, one.offset_bytes)):
        if ring.name in pooled(frame):
            continue
        host = next((one for one in done if overlap(one, ring)), None)
        yield _own(frame, ring) if host is None else _shared(frame, ring, host)
        done.append(ring)
    for barrier in frame.program.barriers:
        name = frame.barrier_name(barrier.name)
        yield f"{name} = gl.allocate_shared_memory(gl.int64, [{barrier.copies}, 1], mbarrier.MBarrierLayout())"
    for barrier in frame.program.barriers:
        name = frame.barrier_name(barrier.name)
        if barrier.copies == 1:
            yield f"mbarrier.init({name}.index(0), count={barrier.arrivals})"
        else:
            yield f"for copy in gl.static_range({barrier.copies}):"
            yield f"    mbarrier.init({name}.index(copy), count={barrier.arrivals})"


def overlap(one: Ring, other: Ring) -> bool:
    """Return whether two rings share bytes of one memory."""
    if one.memory != other.memory:
        return False
    ends = [ring.offset_bytes + ring.depth * ring.bytes for ring in (one, other)]
    return one.offset_bytes < ends[1] and other.offset_bytes < ends[0]


def pooled(frame: Frame) -> dict[str, Ring]:
    """Return the SMEM rings that share bytes with another one, by name: they are pieces of one pool."""
    rings = [ring for ring in frame.program.rings if ring.memory == "smem"]
    return {one.name: one for one in rings if any(overlap(one, other) for other in rings if other is not one)}


def _pool(frame: Frame) -> Iterator[str]:
    rings = pooled(frame).values()
    if not rings:
        return
    first = min(ring.offset_bytes for ring in rings) // CHUNK
    last = max(-(-(ring.offset_bytes + ring.depth * ring.bytes) // CHUNK) for ring in rings)
    flat = "gl.SwizzledSharedLayout(1, 1, 1, order=[0])"
    yield f"pool = gl.allocate_shared_memory(gl.int8, [{last - first}, {CHUNK}], {flat})"
    for ring in rings:
        at, size = ring.offset_bytes // CHUNK - first, -(-ring.depth * ring.bytes // CHUNK)
        element, layout = dtype(ring.tile.dtype, ring.name), frame.layouts.name(shared_layout(ring), ring.name)
        shape = [ring.depth, *ring.tile.shape]
        yield f"{frame.ring_name(ring)} = piece(pool, {at}, {size}).reinterpret({element}, {shape}, {layout})"


def shared_layout(ring: Ring) -> str:
    """Return the layout of a ring; one that hands register tiles over has rows swizzled in vectors of 16 bytes."""
    if ring.tile.layout:
        return ring.tile.layout
    order = list(reversed(range(len(ring.tile.shape))))
    vector = max(1, min(128 // element_bits(ring.tile.dtype), ring.tile.shape[-1])) if len(order) > 1 else 1
    phases = max(1, min(8, ring.tile.shape[-1] // vector)) if len(order) > 1 else 1
    return f"#ttg.swizzled_shared<{{vec = {vector}, perPhase = 1, maxPhase = {phases}, order = {order}}}>"


def _own(frame: Frame, ring: Ring) -> str:
    shape = [ring.depth, *ring.tile.shape]
    element, layout = dtype(ring.tile.dtype, ring.name), frame.layouts.name(shared_layout(ring), ring.name)
    call = "gl.allocate_shared_memory" if ring.memory == "smem" else "allocate_tensor_memory"
    return f"{frame.ring_name(ring)} = {call}({element}, {shape}, {layout})"


def _shared(frame: Frame, ring: Ring, host: Ring) -> str:
    """Return the statement that makes a ring a view of the ring that it overlaps."""
    copy, inside = divmod(ring.offset_bytes - host.offset_bytes, host.bytes)
    if ring.depth != 1 or copy < 0 or inside + ring.bytes > host.bytes:
        raise UnsupportedError(
            ring.name, f"the buffer shares part of the copies of {host.name}", "schedule with --columns fixed"
        )
    text = f"{frame.ring_name(host)}.index({copy})"
    if inside:
        columns = host.tile.shape[-1]
        first, width = inside * columns // host.bytes, ring.bytes * columns // host.bytes
        text += f".slice({first}, {width})"
    element, layout = dtype(ring.tile.dtype, ring.name), frame.layouts.name(shared_layout(ring), ring.name)
    return f"{frame.ring_name(ring)} = {text}.reinterpret({element}, {[1, *ring.tile.shape]}, {layout})"
