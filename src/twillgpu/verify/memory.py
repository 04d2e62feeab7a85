"""The rule on buffers in SMEM and TMEM: they exist, are deep enough, are in the memory, and share bytes only
where no two instances that touch the same byte are live together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from math import lcm

from twillgpu.costs.record import Problem
from twillgpu.machine.record import Memory
from twillgpu.schedule.record import Buffer, Schedule
from twillgpu.verify.expand import peak
from twillgpu.verify.lifetimes import Tenant, tenants
from twillgpu.verify.record import Violation
from twillgpu.verify.sheet import sheet

LONGEST_PERIOD = 100_000
"""Iterations after which two rings that share bytes must be back where they began, for the expansion to end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ring:
    """A buffer with what lives in it."""

    buffer: Buffer
    tenant: Tenant

    def cycles(self, iteration: int, interval: int) -> tuple[int, int]:
        """Return the cycles during which the instance of ``iteration`` lives."""
        shift = iteration * interval
        return self.tenant.span.start + shift, self.tenant.span.end + shift

    def bytes(self, iteration: int) -> tuple[int, int]:
        """Return the bytes that the instance of ``iteration`` touches."""
        first = self.buffer.offset_bytes + iteration % self.buffer.depth * self.buffer.bytes
        return first, first + self.buffer.bytes


def memory_capacity(problem: Problem, schedule: Schedule) -> Iterable[Violation]:
    """Check that every value in SMEM or TMEM, and every staging copy, has a buffer of its name that is large
    and deep enough, with the true number of live instances as its floor, at an aligned place in the memory
    above the fixed bytes; and that buffers share bytes only in turn, instance i being in copy i mod depth.
    """
    needed = tenants(sheet(problem, schedule))
    yield from _names(needed, schedule)
    by_name = {tenant.name: tenant for tenant in needed}
    rings = tuple(
        _Ring(buffer=buffer, tenant=by_name[buffer.name]) for buffer in schedule.buffers if buffer.name in by_name
    )
    for ring in rings:
        yield from _size(ring)
        yield from _depth(ring, schedule.ii_cycles)
        yield from _place(ring.buffer, problem)
    for first, second in combinations(rings, 2):
        yield from _sharing(first, second, schedule.ii_cycles)


def _broken(names: Iterable[str], message: str) -> Violation:
    return Violation(rule="memory_capacity", subjects=tuple(names), message=message)


def _names(needed: tuple[Tenant, ...], schedule: Schedule) -> Iterator[Violation]:
    given = Counter(buffer.name for buffer in schedule.buffers)
    wanted = Counter(tenant.name for tenant in needed)
    for name in sorted(name for name in wanted if wanted[name] > 1):
        yield _broken([name], f"{wanted[name]} storages of the graph are called {name}: a buffer cannot name one")
    for name in sorted(name for name in given if given[name] > 1):
        yield _broken([name], f"{given[name]} buffers are called {name}, 1 is needed")
    for name in sorted(set(given) - set(wanted)):
        yield _broken([name], f"the buffer {name} holds no value of the graph")
    for tenant in needed:
        if tenant.name not in given and not tenant.optional:
            cycles = f"cycles {tenant.span.start} to {tenant.span.end} of iteration 0"
            yield _broken(
                [tenant.name], f"{tenant.name} ({tenant.bytes} bytes in {tenant.space}, {cycles}) has no buffer"
            )


def _size(ring: _Ring) -> Iterator[Violation]:
    buffer, tenant = ring.buffer, ring.tenant
    if buffer.space != tenant.space:
        yield _broken([buffer.name], f"the buffer {buffer.name} is in {buffer.space}, its value in {tenant.space}")
    if buffer.bytes < tenant.bytes:
        yield _broken(
            [buffer.name], f"a copy of {buffer.name} has {buffer.bytes} bytes, its value needs {tenant.bytes}"
        )


def _depth(ring: _Ring, interval: int) -> Iterator[Violation]:
    buffer, span = ring.buffer, ring.tenant.span
    most = peak([span], interval)
    live = most.amount if most else 0
    when = f"cycle {most.cycle} sees {live} of them" if most else "none is ever live"
    lives = f"instances of {buffer.name} live {span.end - span.start} cycles of an interval of {interval}: {when}"
    if buffer.depth_floor != live:
        yield _broken([buffer.name], f"the depth floor of {buffer.name} is given as {buffer.depth_floor}; {lives}")
    if buffer.depth < max(live, 1):
        yield _broken([buffer.name], f"{buffer.name} has {buffer.depth} copies and needs {max(live, 1)}; {lives}")
    if ring.tenant.pinned and buffer.depth > 1:
        yield _broken(
            [buffer.name], f"{buffer.name} is updated in place: {buffer.depth} copies are given, 1 is right"
        )


def _place(buffer: Buffer, problem: Problem) -> Iterator[Violation]:
    memory = next((item for item in problem.memories if item.name == buffer.space), None)
    fixed = dict(problem.fixed_bytes).get(buffer.space, 0)
    end = buffer.offset_bytes + max(buffer.depth, 1) * buffer.bytes
    where = f"{buffer.name} takes bytes {buffer.offset_bytes} to {end} of {buffer.space}"
    if buffer.offset_bytes < fixed:
        yield _broken([buffer.name], f"{where}, of which the first {fixed} are taken outside the loop")
    if memory is not None and end > memory.capacity_bytes:
        yield _broken([buffer.name], f"{where}, which has {memory.capacity_bytes}")
    if memory is not None:
        yield from _alignment(buffer, memory)


def _alignment(buffer: Buffer, memory: Memory) -> Iterator[Violation]:
    step = memory.alignment_bytes
    if buffer.offset_bytes % step or buffer.bytes % step:
        place = f"{buffer.name} begins at byte {buffer.offset_bytes} with {buffer.bytes} bytes a copy"
        yield _broken([buffer.name], f"{place}; both must be multiples of {step} in {memory.name}")


def _sharing(first: _Ring, second: _Ring, interval: int) -> Iterator[Violation]:
    """Yield the first conflict of two rings, over all iterations until both are back at copy 0."""
    if min(first.buffer.depth, second.buffer.depth) < 1 or not _common_bytes(first, second):
        return
    names = [first.buffer.name, second.buffer.name]
    period = lcm(first.buffer.depth, second.buffer.depth)
    if period > LONGEST_PERIOD:
        depths = f"{first.buffer.depth} and {second.buffer.depth}"
        yield _broken(names, f"they share bytes with depths {depths}: {period} iterations are too many to check")
        return
    # So late that every instance of the second that lives together with one of the first exists.
    begin = max(0, -(-(second.tenant.span.end - first.tenant.span.start) // interval))
    for iteration in range(begin, begin + period):
        for other in _together(first, iteration, second, interval):
            if _overlap(first.bytes(iteration), second.bytes(other)):
                yield _broken(names, _conflict(first, iteration, second, other, interval))
                return


def _common_bytes(first: _Ring, second: _Ring) -> bool:
    if first.buffer.space != second.buffer.space:
        return False
    one, two = (
        (ring.buffer.offset_bytes, ring.buffer.offset_bytes + ring.buffer.depth * ring.buffer.bytes)
        for ring in (first, second)
    )
    return _overlap(one, two)


def _together(first: _Ring, iteration: int, second: _Ring, interval: int) -> Iterator[int]:
    """Yield the iterations whose instance in ``second`` lives together with that of ``iteration`` in ``first``."""
    start, end = first.cycles(iteration, interval)
    other = (start - second.tenant.span.end) // interval
    while second.cycles(other, interval)[0] < end:
        if _overlap((start, end), second.cycles(other, interval)):
            yield other
        other += 1


def _overlap(one: tuple[int, int], two: tuple[int, int]) -> bool:
    """Return whether two half-open ranges have something in common."""
    return max(one[0], two[0]) < min(one[1], two[1])


def _conflict(first: _Ring, iteration: int, second: _Ring, other: int, interval: int) -> str:
    def one(ring: _Ring, number: int) -> str:
        (low, high), (start, end) = ring.bytes(number), ring.cycles(number, interval)
        return f"{ring.buffer.name} of iteration {number} holds bytes {low} to {high} in cycles {start} to {end}"

    return f"{one(first, iteration)}; {one(second, other)}"
