"""Allocation of rings and barriers in the emitted kernel."""

from __future__ import annotations

from collections.abc import Iterator

from twillgpu.emit.frame import Frame
from twillgpu.emit.layouts import dtype
from twillgpu.errors import UnsupportedError
from twillgpu.lower.record import Ring


def allocations(frame: Frame) -> Iterator[str]:
    """Yield the statements that allocate every ring and every barrier, and initialise the barriers.

    Raises:
        UnsupportedError: rings that share storage in a way that Gluon cannot write.
    """
    done: list[Ring] = []
    for ring in sorted(frame.program.rings, key=lambda one: (-one.bytes * one.depth, one.offset_bytes)):
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


def _own(frame: Frame, ring: Ring) -> str:
    shape = [ring.depth, *ring.tile.shape]
    element, layout = dtype(ring.tile.dtype, ring.name), frame.layouts.name(ring.tile.layout, ring.name)
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
    element, layout = dtype(ring.tile.dtype, ring.name), frame.layouts.name(ring.tile.layout, ring.name)
    return f"{frame.ring_name(ring)} = {text}.reinterpret({element}, {[1, *ring.tile.shape]}, {layout})"
