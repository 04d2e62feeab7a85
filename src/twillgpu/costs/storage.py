"""Bounds from storage: values that are alive at least so long need so many bytes (registers) in every period.

Over one period the bytes alive, summed over its cycles, are ``sum(bytes x lifetime)``, and at most
``capacity x I``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from twillgpu.costs.lifetimes import Lifetimes, Span, Tenant
from twillgpu.costs.record import Bound, PricedOp, PricedValue, Problem
from twillgpu.machine.record import Registers

LONGEST = 1 << 41
"""Beyond every interval of interest; a storage that is too small even there is too small at any interval."""

SHOWN = 3
"""Values named in a reason; the others are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """A memory or registers: its capacity for the loop's values in ``unit``, and who lives there."""

    name: str
    unit: str
    capacity: int
    tenants: tuple[Tenant, ...]

    def excess(self, interval: int) -> int:
        """Return by how many unit-cycles the values of one period are too many; at most 0 where they may fit."""
        return sum(tenant.amount * tenant.least(interval) for tenant in self.tenants) - self.capacity * interval

    def smallest(self) -> int | None:
        """Return the smallest interval without excess, ``None`` where there is none.

        The excess is convex (for each value a maximum of lines); where the values that are alive all the time
        fit, it never rises, so that bisection finds where it ends.
        """
        if sum(tenant.amount * tenant.periods for tenant in self.tenants) > self.capacity:
            return None
        low, high = 0, 1
        while self.excess(high) > 0:
            low, high = high, high * 2
            if high > LONGEST:
                return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.excess(middle) > 0 else (low, middle)
        return high


def storage_bounds(storages: Iterable[Storage]) -> Iterator[Bound]:
    """Yield a bound for each storage that needs an interval of more than one cycle."""
    for storage in storages:
        cycles = storage.smallest()
        if cycles is not None and cycles > 1:
            yield _bound(storage, cycles)


def impossible_storages(storages: Iterable[Storage]) -> tuple[str, ...]:
    """Return a sentence for each storage that is too small at any interval."""
    return tuple(_too_small(storage) for storage in storages if storage.smallest() is None)


def _bound(storage: Storage, cycles: int) -> Bound:
    held = sorted(storage.tenants, key=lambda one: (-one.amount * one.least(cycles), one.name))
    shares = ", ".join(f"{one.name} {one.amount} for {one.least(cycles)} cycles" for one in held[:SHOWN])
    more = f" and {len(held) - SHOWN} more" if len(held) > SHOWN else ""
    reason = f"{storage.name}: {shares}{more} fit in {storage.capacity} {storage.unit} only from {cycles} cycles on"
    return Bound(name=storage.name, cycles=cycles, reason=reason, ops=tuple(one.name for one in storage.tenants))


def _too_small(storage: Storage) -> str:
    always = ", ".join(f"{one.name} {one.amount}" for one in storage.tenants if one.periods)
    have = f"there are {storage.capacity} {storage.unit}, too few at any interval"
    return f"{storage.name}: alive all the time: {always}; {have}"


def storages_of(problem: Problem) -> Iterator[Storage]:
    """Yield the memories, the registers of the threads, and the register file, where they are limited."""
    lifetimes = Lifetimes(problem)
    fixed = dict(problem.fixed_bytes)
    for memory in problem.memories:
        yield Storage(
            name=memory.name,
            unit="bytes",
            capacity=memory.capacity_bytes - fixed.get(memory.name, 0),
            tenants=lifetimes.tenants(memory.name, lambda _op, value: value.bytes),
        )
    if problem.registers is not None:
        yield _threads(problem, problem.registers, lifetimes)
        yield _file(problem, problem.registers, lifetimes)


def _threads(problem: Problem, limits: Registers, lifetimes: Lifetimes) -> Storage:
    """Registers of one thread of each group allowed, less what is reserved."""
    tenants = lifetimes.tenants("registers", _per_thread)
    groups = problem.groups.max
    return Storage(
        name="registers",
        unit=f"registers per thread ({groups} groups)" if groups > 1 else "registers per thread",
        capacity=groups * (limits.per_thread - limits.overhead_per_thread),
        tenants=tenants + _residents(problem, warps=False),
    )


def _file(problem: Problem, limits: Registers, lifetimes: Lifetimes) -> Storage:
    """The register file of the SM, less what is reserved for the warps of the widest op."""
    tenants = lifetimes.tenants("registers", lambda op, value: 32 * op.warps * value.registers_per_thread)
    widest = max((op.warps for op in problem.ops), default=0)
    return Storage(
        name="register file",
        unit="registers",
        capacity=limits.per_sm - 32 * widest * limits.overhead_per_thread,
        tenants=tenants + _residents(problem, warps=True),
    )


def _per_thread(_op: PricedOp, value: PricedValue) -> int:
    return value.registers_per_thread


def _residents(problem: Problem, *, warps: bool) -> tuple[Tenant, ...]:
    """Values that live through the loop in every group with a user: at least once."""
    widths = {op.name: op.warps for op in problem.ops}
    return tuple(
        Tenant(
            name=one.name,
            amount=one.registers_per_thread * (32 * max(widths[user] for user in one.users) if warps else 1),
            spans=(Span(constant_cycles=0, periods=1),),
        )
        for one in problem.residents
        if one.users
    )
