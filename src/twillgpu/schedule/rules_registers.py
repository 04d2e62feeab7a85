"""Registers: which values are live in which group, slot by slot, against the group's quota."""

from __future__ import annotations

from collections.abc import Iterator

from twillgpu.costs.record import PricedEdge, PricedOp
from twillgpu.machine.record import Registers
from twillgpu.schedule.core import Core
from twillgpu.schedule.literals import Literal, Order, Term, negate
from twillgpu.schedule.storage import Storage, storages

Terms = list[list[Term]]
"""Per slot, the weighted literals of what is live."""


def register_limit(core: Core) -> None:
    """Sum of registers per thread of live values, residents and overhead <= quota, per group and slot."""
    limits = core.problem.registers
    if limits is None:
        return
    if limits.smallest > limits.largest:
        core.clauses.add(False)
        return
    quotas = [_quota(core, limits, group) for group in range(core.group_count)]
    values = storages(core.problem, "registers")
    for group in range(core.group_count):
        _group_limit(core, limits, values, quotas[group], group)
    _register_file(core, limits, quotas)


def _quota(core: Core, limits: Registers, group: int) -> Order:
    """Return the quota of a group in steps above the smallest."""
    steps = (limits.largest - limits.smallest) // limits.quota_step
    return Order(core.clauses, f"quota {group}", 0, steps)


def _group_limit(core: Core, limits: Registers, values: list[Storage], quota: Order, group: int) -> None:
    constant: list[tuple[int, Literal]] = [
        (
            resident.registers_per_thread,
            core.any_of(resident.name, [core.groups[user][group] for user in resident.users]),
        )
        for resident in core.problem.residents
    ]
    slots: Terms = [[] for _ in range(core.interval)]
    for value in values:
        _add_value(core, value, group, constant, slots)
    # quota = largest - step * (steps that are missing): move these to the left side.
    missing = quota.below(limits.quota_step)
    limit = limits.smallest + limits.quota_step * quota.last - limits.overhead_per_thread
    for terms in slots:
        core.clauses.at_most([*terms, *constant], limit, chain=missing)


def _add_value(core: Core, value: Storage, group: int, constant: list[tuple[int, Literal]], slots: Terms) -> None:
    """Add one storage to the sums of a group: always, counted once, or slot by slot."""
    weight = value.registers_per_thread
    members = [core.groups[name][group] for name in value.members]
    if value.pinned:
        constant.append((weight, core.any_of(value.name, members)))
        for time, literal in _copies(core, value, group):
            slots[time % core.interval].append((weight, literal))
    elif weight <= core.question.small_registers:
        if core.question.rounding != "down":
            constant.append((weight, core.any_of(value.name, members)))
            constant.append((weight, core.any_of(value.name, [core.received(name, group) for name in value.members])))
    else:
        for time, literal in _live(core, value, group):
            slots[time % core.interval].append((weight, literal))


def _live(core: Core, value: Storage, group: int) -> Iterator[tuple[int, Literal]]:
    """Yield (time, literal "the storage of iteration 0 is live in ``group`` at time")."""
    names = value.members
    first = min(core.starts[name].first for name in names)
    last = max(_latest_end(core, core.ops[name]) for name in names)
    homes = [name for name in names if core.groups[name][group] is not False]
    readers = {name: _readers_in(core, value, name, group) for name in names}
    for time in range(first, last):
        live = core.clauses.fresh(f"{value.name} live in {group} at {time}")
        for member in homes:
            for ender in homes:
                _home(core, member, core.ops[ender], group, time, live)
        for name, edges in readers.items():
            _away(core, name, edges, group, time, live)
        yield time, live


def _copies(core: Core, value: Storage, group: int) -> Iterator[tuple[int, Literal]]:
    """Yield the same for copies of a pinned storage, in groups of consumers that are no members."""
    if core.group_count == 1 or not any(_readers(core, value, name) for name in value.members):
        return
    readers = {name: _readers_in(core, value, name, group) for name in value.members}
    first = min(core.starts[name].first for name in value.members)
    last = max(_latest_end(core, core.ops[name]) for name in value.members)
    for time in range(first, last):
        live = core.clauses.fresh(f"copy of {value.name} live in {group} at {time}")
        for name, edges in readers.items():
            _away(core, name, edges, group, time, live)
        yield time, live


def _readers(core: Core, value: Storage, name: str) -> list[PricedEdge]:
    """Return the data edges of ``name`` to ops that are no members of its class: these read a copy elsewhere."""
    return [edge for edge in core.consumers(name) if edge.head not in value.members]


def _readers_in(core: Core, value: Storage, name: str, group: int) -> list[PricedEdge]:
    """Return those whose head may be in ``group``, where ``name`` may not be."""
    if core.groups[name][group] is True:
        return []
    return [edge for edge in _readers(core, value, name) if core.groups[edge.head][group] is not False]


def _latest_end(core: Core, op: PricedOp) -> int:
    ends = [
        core.starts[edge.head].last
        + edge.distance * core.interval
        + max(edge.read_cycles, core.ops[edge.head].issue_cycles)
        for edge in core.consumers(op.name)
    ]
    return max([core.starts[op.name].last + op.latency_cycles + op.handoff_cycles, *ends])


def _home(core: Core, member: str, ender: PricedOp, group: int, time: int, live: Literal) -> None:
    """In its own group: from ``member``'s start to the last use of ``ender``'s value there, or its way out."""
    here = [
        negate(core.groups[member][group]),
        negate(core.groups[ender.name][group]),
        core.starts[member].ge(time + 1),
    ]
    start = core.starts[ender.name]
    consumers = core.consumers(ender.name)
    if all(edge.latency_cycles < ender.latency_cycles for edge in consumers):
        core.clauses.add(*here, start.lt(time + 1 - ender.latency_cycles), live)
    written = start.lt(time + 1 - ender.latency_cycles - ender.handoff_cycles)
    for edge in consumers:
        read = core.starts[edge.head].lt(time + 1 - edge.distance * core.interval - edge.read_cycles)
        core.clauses.add(*here, negate(core.groups[edge.head][group]), read, live)
        if core.group_count > 1:
            core.clauses.add(*here, core.groups[edge.head][group], written, live)


def _away(core: Core, name: str, consumers: list[PricedEdge], group: int, time: int, live: Literal) -> None:
    """In a group that received a copy: from the first consumer's start there to the last one's end."""
    if core.group_count == 1:
        return
    for opener in consumers:
        for closer in consumers:
            core.clauses.add(
                core.groups[name][group],
                negate(core.groups[opener.head][group]),
                negate(core.groups[closer.head][group]),
                core.starts[opener.head].ge(time + 1 - opener.distance * core.interval),
                core.starts[closer.head].lt(time + 1 - closer.distance * core.interval - _held(core, closer)),
                live,
            )


def _held(core: Core, edge: PricedEdge) -> int:
    return max(edge.read_cycles, core.ops[edge.head].issue_cycles)


def _register_file(core: Core, limits: Registers, quotas: list[Order]) -> None:
    """Sum over groups of 32 x warps x quota, padding to 4 warps included, <= what a block of so many warps gets."""
    most = -(-core.problem.groups.max_warps // 4)
    if all(32 * 4 * fours * limits.largest <= limits.pool(4 * fours) for fours in range(1, most + 1)):
        return
    shares = [(32, _share(core, limits, quota, group)) for group, quota in enumerate(quotas)]
    widths = core.width_terms()
    widest = sum(weight for weight, _ in widths)
    sizes = [core.clauses.fresh(f"{4 * fours} warps") for fours in range(1, most + 1)]
    core.clauses.exactly_one(sizes)
    for fours, size in enumerate(sizes, 1):
        missing = [(weight, negate(wide)) for weight, wide in widths]
        core.clauses.at_most_if(size, widths, 4 * fours)
        core.clauses.at_most_if(size, missing, widest - 4 * fours + 3)
        # Padding, 4 x fours - warps, is 4 x fours - widest and what is missing from the widest.
        padding = [(32 * limits.quota_min * weight, narrow) for weight, narrow in missing]
        left = limits.pool(4 * fours) - 32 * limits.quota_min * (4 * fours - widest)
        core.clauses.at_most_if(size, padding, left, integers=shares)


def _share(core: Core, limits: Registers, quota: Order, group: int) -> int:
    """Return warps x quota of one group as an integer."""
    share = core.clauses.integer(f"share {group}", limits.per_sm // 32)
    for width in core.problem.groups.warps:
        wide = core.at_least_as_wide(group, width)
        core.clauses.at_least(share, wide, width * limits.smallest, quota.above(width * limits.quota_step))
    return share
