"""Places in SMEM and TMEM for what lives outside the loop, and the check that everything fits."""

from __future__ import annotations

from collections.abc import Iterable

from twillgpu.costs.record import Problem
from twillgpu.errors import InputError
from twillgpu.graph.outside import BARRIER_BYTES
from twillgpu.lower.record import Memory, Ring

BARRIER = 8
"""Bytes of an mbarrier."""


class Room:
    """What is taken in each memory; ``rings`` are there already, and ``scratch`` bytes of SMEM are left free."""

    def __init__(self, problem: Problem, rings: Iterable[Ring], scratch: int = 0) -> None:
        self.memories = {memory.name: memory for memory in problem.memories}
        self.taken = [ring for ring in rings if ring.bytes]
        self.first = {"smem": BARRIER_BYTES + scratch, "tmem": 0}

    def aligned(self, memory: Memory, size: int) -> int:
        """Return ``size`` in bytes, rounded up to the memory's alignment."""
        step = self.memories[memory].alignment_bytes if memory in self.memories else 1
        return -(-size // step) * step

    def place(self, memory: Memory, size: int, beside: Iterable[Ring] | None = None) -> int | None:
        """Return the lowest place for ``size`` bytes (aligned) beside the rings given, by default all there are;
        ``None`` where there is none.
        """
        rings = sorted(
            (ring for ring in (self.taken if beside is None else beside) if ring.memory == memory),
            key=lambda ring: ring.offset_bytes,
        )
        start = self.aligned(memory, self.first[memory])
        for ring in rings:
            if start + size <= ring.offset_bytes:
                break
            start = max(start, ring.offset_bytes + ring.depth * ring.bytes)
        limit = self.memories.get(memory)
        return start if limit is None or start + size <= limit.capacity_bytes else None

    def add(self, ring: Ring) -> Ring:
        """Note that a ring is there now."""
        self.taken.append(ring)
        return ring

    def fail(self, what: str, memory: Memory, size: int) -> InputError:
        """Return the error that ``what`` finds no room."""
        used = self._used(memory)
        limit = self.memories[memory].capacity_bytes
        return InputError(
            f"buffer {what}",
            f"it needs {size:,} bytes of {memory}; {used:,} of {limit:,} are taken",
            "use a smaller tile",
        )

    def _used(self, memory: Memory) -> int:
        """Return the bytes that are taken, those of several rings once."""
        total, reached = self.first[memory], self.first[memory]
        for ring in sorted(self.taken, key=lambda one: one.offset_bytes):
            end = ring.offset_bytes + ring.depth * ring.bytes
            if ring.memory == memory and end > reached:
                total += end - max(reached, ring.offset_bytes)
                reached = end
        return total


def check_barriers(copies: int) -> None:
    """Raise ``InputError`` where the mbarriers need more bytes than are set aside for them."""
    if copies * BARRIER > BARRIER_BYTES:
        raise InputError(
            "barriers",
            f"{copies} mbarriers take {copies * BARRIER:,} bytes, {BARRIER_BYTES:,} are set aside for them",
            "use fewer warp groups (--max-groups)",
        )
