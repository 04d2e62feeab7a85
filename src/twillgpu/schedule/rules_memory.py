"""SMEM and TMEM: what is live slot by slot, and, where the sum does not settle it, places."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import gcd

from twillgpu.costs.record import PricedEdge
from twillgpu.machine.record import Memory
from twillgpu.schedule.core import Core
from twillgpu.schedule.literals import Literal, Order, negate
from twillgpu.schedule.storage import Storage, storages

SPARE = 6
"""One part in so many of SMEM is left free where a question asks for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """Something that occupies bytes of a memory while its literal at a time holds."""

    name: str
    units: int
    pinned: bool
    first: int
    last: int
    live: Callable[[int, Literal], None]


def memory_capacity(core: Core) -> None:
    """Sum of bytes of live instances <= capacity - fixed, per memory and slot; and places, if asked for."""
    for memory in core.problem.memories:
        room = (memory.capacity_bytes - dict(core.problem.fixed_bytes).get(memory.name, 0)) // memory.alignment_bytes
        tenants = list(_tenants(core, memory))
        if _always_fits(core, tenants, room):
            continue
        lives = [_lives(core, tenant) for tenant in tenants]
        spare = room // SPARE if core.question.spare and memory.name == "smem" else 0
        _limit(core, tenants, lives, room - spare)
        if core.question.placement:
            _place(core, tenants, lives, room)


def _tenants(core: Core, memory: Memory) -> Iterator[Tenant]:
    values = [*storages(core.problem, "smem"), *storages(core.problem, "tmem")]
    for value in values:
        if value.space == memory.name and value.bytes:
            yield _value_tenant(core, value, memory)
    # Rounded down, when a staging copy begins is not known in slots (see costs/scale.py): it is left out.
    crossing = core.group_count > 1 and core.problem.rules.cross_group and core.question.rounding != "down"
    if memory.name != "smem" or not crossing:
        return
    for value in storages(core.problem, "registers"):
        for name in value.members:
            if core.ops[name].staging_bytes and any(edge.head != name for edge in core.consumers(name)):
                yield _staging_tenant(core, name, memory)


def _units(size: int, memory: Memory) -> int:
    return -(-size // memory.alignment_bytes)


def _value_tenant(core: Core, value: Storage, memory: Memory) -> Tenant:
    def live(time: int, literal: Literal) -> None:
        for member in value.members:
            for ender in value.members:
                started = core.starts[member].ge(time + 1)
                core.clauses.add(started, core.starts[ender].lt(time + 1 - _filling(core, ender)), literal)
                for edge in core.consumers(ender):
                    core.clauses.add(started, core.starts[edge.head].lt(time + 1 - _end(core, edge)), literal)

    ends = [core.starts[edge.head].last + _end(core, edge) for name in value.members for edge in core.consumers(name)]
    ends += [core.starts[name].last + _filling(core, name) for name in value.members]
    first = min(core.starts[name].first for name in value.members)
    units = _units(value.bytes, memory)
    return Tenant(name=value.name, units=units, pinned=value.pinned, first=first, last=max(ends), live=live)


def _filling(core: Core, name: str) -> int:
    """Return how long a buffer is held at least: while it is written, one slot where slots are cycles."""
    op = core.ops[name]
    latency = op.latency_cycles if core.consumers(name) else op.real_latency_cycles
    return latency if core.question.rounding == "down" else max(1, latency)


def _end(core: Core, edge: PricedEdge) -> int:
    return edge.distance * core.interval + edge.read_cycles


def _staging_tenant(core: Core, name: str, memory: Memory) -> Tenant:
    # Rounded up, a latency may end a slot too late; the copy must not seem shorter than it is in cycles.
    early = 1 if core.question.rounding == "up" and core.question.placement else 0
    latency = max(0, core.ops[name].latency_cycles - early)
    crossing = [edge for edge in core.consumers(name) if edge.head != name]

    def live(time: int, literal: Literal) -> None:
        for edge in crossing:
            core.clauses.add(
                core.starts[name].ge(time + 1 - latency),
                core.same(name, edge.head),
                core.starts[edge.head].lt(time + 1 - edge.distance * core.interval),
                literal,
            )

    last = max(core.starts[edge.head].last + edge.distance * core.interval for edge in crossing)
    first = core.starts[name].first + latency
    units = _units(core.ops[name].staging_bytes, memory)
    return Tenant(name=f"{name}.staging", units=units, pinned=False, first=first, last=last, live=live)


def _always_fits(core: Core, tenants: list[Tenant], room: int) -> bool:
    """Return whether all instances that could ever be live at once fit (a lifetime of n slots: ceil(n/I))."""
    worst = 0
    for tenant in tenants:
        longest = max(1, tenant.last - tenant.first)
        worst += tenant.units * (1 if tenant.pinned else -(-longest // core.interval))
    return worst <= room


def _lives(core: Core, tenant: Tenant) -> list[list[Literal]]:
    """Return, per slot, the literals of the instances that may be live in it."""
    if tenant.pinned:
        return [[True] for _ in range(core.interval)]
    slots: list[list[Literal]] = [[] for _ in range(core.interval)]
    for time in range(tenant.first, tenant.last):
        literal = core.clauses.fresh(f"{tenant.name} live at {time}")
        tenant.live(time, literal)
        slots[time % core.interval].append(literal)
    return slots


def _limit(core: Core, tenants: list[Tenant], lives: list[list[list[Literal]]], room: int) -> None:
    for slot in range(core.interval):
        terms = [(tenant.units, live) for tenant, slots in zip(tenants, lives, strict=True) for live in slots[slot]]
        core.clauses.at_most(terms, room)


def _place(core: Core, tenants: list[Tenant], lives: list[list[list[Literal]]], room: int) -> None:
    """Give every tenant one place for all its copies; two tenants that are ever live together lie apart.

    This forbids sharing between single copies of two rings, which an exact packing might use; so it only ever
    serves to find schedules, never to refute an interval. Pushed down as far as they go, all begin at multiples of
    the common divisor of their sizes.
    """
    grain = gcd(*(tenant.units for tenant in tenants))
    extents = [
        _extent(core, tenant, slots, grain, room // grain) for tenant, slots in zip(tenants, lives, strict=True)
    ]
    occupied = [_occupied(core, tenant, slots) for tenant, slots in zip(tenants, lives, strict=True)]
    for right in range(len(tenants)):
        for left in range(right):
            before, after = core.clauses.fresh("before"), core.clauses.fresh("after")
            _not_beyond(core, extents[left][1], extents[right][0], before)
            _not_beyond(core, extents[right][1], extents[left][0], after)
            for mine, other in zip(occupied[left], occupied[right], strict=True):
                core.clauses.add(negate(mine), negate(other), before, after)


def _occupied(core: Core, tenant: Tenant, slots: list[list[Literal]]) -> list[Literal]:
    """Return, per slot, the literal "some instance is live"."""
    return [core.any_of(f"{tenant.name} in {slot}", live) for slot, live in enumerate(slots)]


def _extent(core: Core, tenant: Tenant, slots: list[list[Literal]], grain: int, room: int) -> tuple[Order, Order]:
    """Return where the copies of a tenant begin and end, in units of ``grain``."""
    units = tenant.units // grain
    copies = _copies(core, tenant, slots, max(1, room // units))
    begin = Order(core.clauses, f"{tenant.name} begins", 0, max(0, room - units))
    end = Order(core.clauses, f"{tenant.name} ends", 0, room)
    for count in range(1, copies.last + 1):
        for place in range(begin.last + 1):
            core.clauses.imply([copies.ge(count), begin.ge(place)], end.ge(place + count * units))
    return begin, end


def _copies(core: Core, tenant: Tenant, slots: list[list[Literal]], most: int) -> Order:
    """Return the copies of a tenant: at least the instances live at once."""
    copies = Order(core.clauses, f"{tenant.name} copies", 1, min(most, max(1, *(len(live) for live in slots))))
    for live in slots:
        core.clauses.at_most(((1, literal) for literal in live), copies.last, chain=copies.below(1))
    return copies


def _not_beyond(core: Core, end: Order, begin: Order, condition: Literal) -> None:
    """If ``condition`` holds, ``end`` is not beyond ``begin``."""
    for place in range(1, end.last + 1):
        core.clauses.imply([condition, end.ge(place)], begin.ge(place))
