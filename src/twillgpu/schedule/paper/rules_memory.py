"""Memory capacity: the paper's Figure 5 as published, or lifetimes as docs/formulation.md defines them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from twillgpu.costs.record import PricedEdge
from twillgpu.machine.record import Memory
from twillgpu.schedule.paper.liveness import live
from twillgpu.schedule.paper.places import Ring, place
from twillgpu.schedule.paper.program import Program
from twillgpu.schedule.paper.smt import FALSE, TRUE, Terms, conjunction, disjunction, negation
from twillgpu.schedule.storage import Storage, storages


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """Units of a memory that are taken while a formula holds: (first, last) cycle of copy 0, formulas in between;
    no formulas where they are taken all the time.
    """

    units: int
    first: int = 0
    lives: tuple[str, ...] | None = None

    def at(self, cycle: int) -> str:
        """Return the formula "taken by copy 0 at ``cycle``"."""
        if self.lives is None or not self.first <= cycle < self.first + len(self.lives):
            return FALSE
        return self.lives[cycle - self.first]


def memory_capacity(program: Program) -> None:
    """For all m and t: sum over v and i of live[v, i, t] times footprint(v, m) <= capacity(m) - fixed(m)."""
    for memory in program.problem.memories:
        fixed = dict(program.problem.fixed_bytes).get(memory.name, 0)
        room = (memory.capacity_bytes - fixed) // memory.alignment_bytes
        if program.literal:
            _as_published(program, memory, room)
            continue
        tenants = list(_tenants(program, memory))
        always = sum(tenant.units for tenant in tenants if tenant.lives is None)
        last = max((tenant.first + len(tenant.lives) for tenant in tenants if tenant.lives is not None), default=0)
        for moment in program.moments(last):
            terms: Terms = [(tenant.units, tenant.at(cycle)) for tenant in tenants for _, cycle in moment]
            program.script.at_most([(always, TRUE), *terms], room)
        if program.question.places:
            place(program, memory.name, [_slots(program, tenant, last) for tenant in tenants], room)


def _slots(program: Program, tenant: Tenant, last: int) -> Ring:
    """Return, per slot of the period, the formulas of the instances that may be live in it."""
    if tenant.lives is None:
        return Ring(units=tenant.units, lives=((TRUE,),) * program.interval)
    moments = program.moments(last)
    lives = tuple(tuple(tenant.at(cycle) for _, cycle in moment if tenant.at(cycle) != FALSE) for moment in moments)
    return Ring(units=tenant.units, lives=lives)


def _as_published(program: Program, memory: Memory, room: int) -> None:
    held = [
        (_units(op.value.bytes, memory), op.name)
        for op in program.problem.ops
        if op.value is not None and op.value.space == memory.name and op.value.bytes
    ]
    for moment in program.moments(program.end):
        terms = [(units, live(program, name, copy, cycle)) for units, name in held for copy, cycle in moment]
        program.script.at_most(terms, room)


def _units(size: int, memory: Memory) -> int:
    return -(-size // memory.alignment_bytes)


def _tenants(program: Program, memory: Memory) -> Iterator[Tenant]:
    for value in (*storages(program.problem, "smem"), *storages(program.problem, "tmem")):
        if value.space == memory.name and value.bytes:
            yield _value(program, value, _units(value.bytes, memory))
    if memory.name != "smem" or program.groups == 1:
        return
    for value in storages(program.problem, "registers"):
        for name in value.members:
            crossing = [edge for edge in program.consumers(name) if edge.head != name]
            if program.ops[name].staging_bytes and crossing:
                yield _staging(program, name, crossing, _units(program.ops[name].staging_bytes, memory))


def _value(program: Program, value: Storage, units: int) -> Tenant:
    """From the first member's start to the last reader's end."""
    if value.pinned:
        return Tenant(units=units)
    ends = [(name, _filling(program, name)) for name in value.members]
    ends += [(edge.head, _end(program, edge)) for name in value.members for edge in program.consumers(name)]
    first = min(program.ranges[name][0] for name in value.members)
    last = max(program.ranges[name][1] + later for name, later in ends)
    lives = (
        program.script.named(f"kept {value.name} {value.space} {cycle}", _kept(program, value, ends, cycle))
        for cycle in range(first, last)
    )
    return Tenant(units=units, first=first, lives=tuple(lives))


def _kept(program: Program, value: Storage, ends: list[tuple[str, int]], cycle: int) -> str:
    begun = disjunction(program.begun(name, 0, cycle) for name in value.members)
    ahead = disjunction(negation(program.begun(name, 0, cycle - later)) for name, later in ends)
    return conjunction((begun, ahead))


def _filling(program: Program, name: str) -> int:
    op = program.ops[name]
    return max(1, op.latency_cycles if program.consumers(name) else op.real_latency_cycles)


def _end(program: Program, edge: PricedEdge) -> int:
    return edge.distance * program.interval + edge.read_cycles


def _staging(program: Program, name: str, crossing: list[PricedEdge], units: int) -> Tenant:
    """From the end of the op's latency to the last consumer's start in another group."""
    latency = program.ops[name].latency_cycles
    first = program.ranges[name][0] + latency
    last = max(program.ranges[edge.head][1] + edge.distance * program.interval for edge in crossing)
    lives = []
    for cycle in range(first, last):
        ahead = disjunction(
            conjunction(
                (
                    negation(program.same(name, edge.head)),
                    negation(program.begun(edge.head, edge.distance, cycle)),
                )
            )
            for edge in crossing
        )
        term = conjunction((program.begun(name, 0, cycle - latency), ahead))
        lives.append(program.script.named(f"staged {name} {cycle}", term))
    return Tenant(units=units, first=first, lives=tuple(lives))
