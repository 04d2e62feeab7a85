"""Which families of rules a problem has, what their amounts are, and how finely each may be raised."""

from __future__ import annotations

from collections.abc import Iterator

from twillgpu.costs.record import Bound, Problem
from twillgpu.explain.record import Family
from twillgpu.explain.variant import Variant
from twillgpu.machine.record import Groups, Registers
from twillgpu.schedule.partition import designated
from twillgpu.schedule.resolution import MOST_STAGES

STEPS = 64
"""A memory or a register file is doubled in at most so many steps."""

UNIT_STEP = 5
"""Percent by which the speed of a unit is raised in each step."""


def families_of(variant: Variant) -> tuple[Family, ...]:
    """Return the families that could keep ``variant`` from a smaller interval, by kind and name."""
    problem = variant.problem
    found = [*_units(problem), *_memories(problem), *_registers(problem)]
    if problem.groups.max < len(problem.ops):
        found.append(Family(kind="groups"))
    if _widest_block(problem) > problem.groups.max_warps:
        found.append(Family(kind="warps"))
    if variant.stages < MOST_STAGES:
        found.append(Family(kind="stages"))
    return (*found, *_between_groups(problem))


def _units(problem: Problem) -> Iterator[Family]:
    used = {use.unit for op in problem.ops for use in op.uses if use.cycles}
    yield from (Family(kind="unit", name=unit.name) for unit in problem.units if unit.name in used)


def _memories(problem: Problem) -> Iterator[Family]:
    used = {op.value.space for op in problem.ops if op.value is not None and op.value.bytes}
    staged = problem.groups.max > 1 and any(op.staging_bytes for op in problem.ops)
    for memory in problem.memories:
        if memory.name in used or (memory.name == "smem" and staged):
            yield Family(kind="memory", name=memory.name)


def _registers(problem: Problem) -> Iterator[Family]:
    held = any(op.value is not None and op.value.registers_per_thread for op in problem.ops)
    if problem.registers is not None and (held or problem.residents):
        yield Family(kind="registers")
        yield Family(kind="register_file")


def _widest_block(problem: Problem) -> int:
    """Return the warps of a block in which every group is as wide as the widest op needs."""
    return problem.groups.max * _width(problem.groups, max(op.warps for op in problem.ops))


def _width(groups: Groups, warps: int) -> int:
    return min((width for width in groups.warps if width >= warps), default=warps)


def _between_groups(problem: Problem) -> Iterator[Family]:
    several = problem.groups.max > 1
    if several and (not problem.rules.cross_group or any(edge.handoff_cycles for edge in problem.edges)):
        yield Family(kind="handoff")
    if several or any(edge.blocking for edge in problem.edges):
        yield Family(kind="concurrency")
    if designated(problem):
        yield Family(kind="variable_latency")
    for name in dict.fromkeys(pair.rule for pair in problem.legality):
        yield Family(kind="legality", name=name)


def family_of(bound: Bound, problem: Problem) -> Family | None:
    """Return the family that an analytic bound is about; ``None`` for ``consistency``.

    That of a recurrence is the latency of the slowest op of its circuit.
    """
    if bound.name == "consistency":
        return None
    if bound.name == "recurrence":
        latency = {op.name: op.latency_cycles for op in problem.ops}
        return Family(kind="latency", name=max(bound.ops, key=lambda name: latency[name]))
    if bound.name == "registers":
        return Family(kind="registers")
    if bound.name == "register file":
        return Family(kind="register_file")
    memory = any(memory.name == bound.name for memory in problem.memories)
    return Family(kind="memory" if memory else "unit", name=bound.name)


def amount_of(variant: Variant, family: Family) -> int:
    """Return the amount of a family in ``variant``, in the units of ``Change``; 1 for rules that are only lifted."""
    problem = variant.problem
    limits = problem.registers or Registers(per_thread=0, per_sm=0)
    amounts = {
        "unit": 100,
        "registers": limits.per_thread,
        "register_file": limits.per_sm,
        "groups": problem.groups.max,
        "warps": problem.groups.max_warps,
        "stages": variant.stages,
        "handoff": 100,
    }
    if family.kind == "memory":
        return next(memory.capacity_bytes for memory in problem.memories if memory.name == family.name)
    if family.kind == "latency":
        return next(op.latency_cycles for op in problem.ops if op.name == family.name)
    return amounts.get(family.kind, 1)


def raised(variant: Variant, family: Family, percent: int) -> int:
    """Return the amount of a family raised by ``percent``: the next one that makes a difference."""
    before = amount_of(variant, family)
    more = -(-before * percent // 100)
    step = step_of(variant, family)
    if family.kind == "memory":
        return before + max(step, more // step * step)
    return before + max(step, more)


def amounts(variant: Variant, family: Family) -> tuple[int, ...]:
    """Return the amounts to try, from the least relaxation to twice as much; empty for rules that are only lifted."""
    if family.kind == "handoff":
        return (75, 50, 25) if variant.problem.rules.cross_group else ()
    if family.kind in ("concurrency", "variable_latency", "legality", "latency"):
        return ()
    before, step = amount_of(variant, family), step_of(variant, family)
    last = max(2 * before, before + step)
    if family.kind == "stages":
        last = min(last, MOST_STAGES)
    return tuple(range(before + step, last + 1, step))


def step_of(variant: Variant, family: Family) -> int:
    """Return the least step by which an amount is raised."""
    problem = variant.problem
    if family.kind == "unit":
        return UNIT_STEP
    if family.kind == "memory":
        memory = next(memory for memory in problem.memories if memory.name == family.name)
        return _step(memory.capacity_bytes, memory.alignment_bytes)
    if family.kind == "registers" and problem.registers is not None:
        return problem.registers.quota_step
    if family.kind == "register_file" and problem.registers is not None:
        return _step(problem.registers.per_sm, 32 * problem.registers.quota_step)
    return 1


def _step(whole: int, least: int) -> int:
    """Return the multiple of ``least`` by which ``whole`` is doubled in at most ``STEPS`` steps."""
    return max(1, -(-whole // (STEPS * least))) * least
