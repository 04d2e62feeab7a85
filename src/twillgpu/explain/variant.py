"""A problem with its stages, and every way to relax it: lifted altogether, or by an amount."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from twillgpu.costs.record import PricedEdge, PricedOp, Problem
from twillgpu.explain.faster import faster
from twillgpu.explain.record import Change, Family, Kind
from twillgpu.machine.record import Registers
from twillgpu.schedule.resolution import MOST_STAGES

REGISTERS = frozenset({Family(kind="registers"), Family(kind="register_file")})

UNLIMITED = 10**6
"""Instances of a unit that no schedule can use up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A problem, and the stages that its schedules may have.

    ``pace``: whether ops go faster with a unit that is made faster, see ``twillgpu.explain.faster``.
    """

    problem: Problem
    stages: int
    pace: bool = True


def lifted(variant: Variant, families: Iterable[Family]) -> Variant:
    """Return ``variant`` without the rules of ``families``.

    Of groups there are half as many again instead, of stages a third, and twice the warps, since models grow with
    them. Without ``concurrency`` an op issues in no time; without ``handoff`` a value is handed over at once, and
    needs no staging.
    """
    families = frozenset(families)
    if families >= REGISTERS:
        variant = _with(variant, replace(variant.problem, registers=None))
        families -= REGISTERS
    for family in sorted(families):
        variant = LIFT[family.kind](variant, family.name)
    return variant


def changed(variant: Variant, changes: Iterable[Change]) -> Variant:
    """Return ``variant`` with each family at the amount ``after``, or lifted."""
    for change in changes:
        if change.after is None:
            variant = lifted(variant, (change.family,))
        else:
            variant = RAISE[change.family.kind](variant, change.family.name, change.after)
    return variant


def _unit(variant: Variant, name: str) -> Variant:
    units = (replace(unit, capacity=UNLIMITED) if unit.name == name else unit for unit in variant.problem.units)
    return _with(variant, replace(variant.problem, units=tuple(units)))


def _memory(variant: Variant, name: str) -> Variant:
    kept = tuple(memory for memory in variant.problem.memories if memory.name != name)
    return _with(variant, replace(variant.problem, memories=kept))


def _registers(variant: Variant, _name: str) -> Variant:
    """Let one warp have the whole register file."""
    limits = _limits(variant)
    return _with_registers(variant, replace(limits, per_thread=max(limits.per_thread, limits.per_sm // 32)))


def _register_file(variant: Variant, _name: str) -> Variant:
    """Give every warp of the block the most that a thread may have."""
    limits, most = _limits(variant), -(-variant.problem.groups.max_warps // 4) * 4
    return _with_registers(variant, replace(limits, per_sm=max(limits.per_sm, 32 * most * limits.per_thread)))


def _groups(variant: Variant, _name: str) -> Variant:
    groups = variant.problem.groups
    most = min(len(variant.problem.ops), groups.max + max(1, groups.max // 2))
    return raise_groups(variant, "", max(groups.max, most))


def _warps(variant: Variant, _name: str) -> Variant:
    return raise_warps(variant, "", 2 * variant.problem.groups.max_warps)


def _stages(variant: Variant, _name: str) -> Variant:
    return raise_stages(variant, "", min(MOST_STAGES, variant.stages + max(1, variant.stages // 3)))


def _handoff(variant: Variant, _name: str) -> Variant:
    free = raise_handoff(variant, "", 0)
    ops = tuple(replace(op, staging_bytes=0) for op in free.problem.ops)
    rules = replace(free.problem.rules, cross_group=True)
    return _with(variant, replace(free.problem, ops=ops, rules=rules))


def _concurrency(variant: Variant, _name: str) -> Variant:
    ops = tuple(replace(op, issue_cycles=0) for op in variant.problem.ops)
    rules = replace(variant.problem.rules, concurrency="issue")
    return _with(variant, replace(variant.problem, ops=ops, rules=rules))


def _variable_latency(variant: Variant, _name: str) -> Variant:
    rules = replace(variant.problem.rules, variable_latency="free")
    return _with(variant, replace(variant.problem, rules=rules))


def _legality(variant: Variant, name: str) -> Variant:
    kept = tuple(pair for pair in variant.problem.legality if pair.rule != name)
    return _with(variant, replace(variant.problem, legality=kept))


def _latency(variant: Variant, name: str) -> Variant:
    return raise_latency(variant, name, 0)


def raise_unit(variant: Variant, name: str, percent: int) -> Variant:
    """Make a unit ``percent / 100`` times as fast."""
    return _with(variant, faster(variant.problem, name, percent, pace=variant.pace))


def raise_memory(variant: Variant, name: str, size: int) -> Variant:
    """Give a memory ``size`` bytes."""
    memories = (replace(one, capacity_bytes=size) if one.name == name else one for one in variant.problem.memories)
    return _with(variant, replace(variant.problem, memories=tuple(memories)))


def raise_registers(variant: Variant, _name: str, per_thread: int) -> Variant:
    """Let a thread have ``per_thread`` registers."""
    return _with_registers(variant, replace(_limits(variant), per_thread=per_thread))


def raise_register_file(variant: Variant, _name: str, per_sm: int) -> Variant:
    """Give the SM ``per_sm`` registers."""
    return _with_registers(variant, replace(_limits(variant), per_sm=per_sm))


def raise_groups(variant: Variant, _name: str, count: int) -> Variant:
    """Allow ``count`` warp groups."""
    groups = replace(variant.problem.groups, max=count)
    return _with(variant, replace(variant.problem, groups=groups))


def raise_warps(variant: Variant, _name: str, count: int) -> Variant:
    """Allow ``count`` warps in the block."""
    groups = replace(variant.problem.groups, max_warps=count)
    return _with(variant, replace(variant.problem, groups=groups))


def raise_stages(variant: Variant, _name: str, count: int) -> Variant:
    """Allow ``count`` stages."""
    return replace(variant, stages=count)


def raise_handoff(variant: Variant, _name: str, percent: int) -> Variant:
    """Let handing a value to another group cost ``percent`` of its cycles."""

    def part(cycles: int) -> int:
        return -(-cycles * percent // 100)

    def op(one: PricedOp) -> PricedOp:
        return replace(one, handoff_cycles=part(one.handoff_cycles))

    def edge(one: PricedEdge) -> PricedEdge:
        return replace(one, handoff_cycles=part(one.handoff_cycles))

    problem = variant.problem
    return _with(variant, replace(problem, ops=tuple(map(op, problem.ops)), edges=tuple(map(edge, problem.edges))))


def raise_latency(variant: Variant, name: str, cycles: int) -> Variant:
    """Let the result of op ``name``, and of the ops like it (its sub-tiles), be there after ``cycles``."""
    problem = variant.problem
    like = alike(problem, name)
    sooner = {op.name: max(0, op.latency_cycles - cycles) for op in problem.ops if op.name in like}
    ops = tuple(
        replace(
            op,
            latency_cycles=op.latency_cycles - sooner[op.name],
            real_latency_cycles=max(0, op.real_latency_cycles - sooner[op.name]),
        )
        if op.name in sooner
        else op
        for op in problem.ops
    )
    edges = tuple(
        replace(edge, latency_cycles=max(0, edge.latency_cycles - sooner[edge.tail])) if edge.tail in sooner else edge
        for edge in problem.edges
    )
    return _with(variant, replace(problem, ops=ops, edges=edges))


def alike(problem: Problem, name: str) -> frozenset[str]:
    """Return op ``name`` and its sub-tiles: ops of the same kind, source line and latency."""
    model = next(op for op in problem.ops if op.name == name)
    traits = (model.kind, model.source, model.latency_cycles)
    same = {op.name for op in problem.ops if op.source and (op.kind, op.source, op.latency_cycles) == traits}
    return frozenset(same | {name})


def _with(variant: Variant, problem: Problem) -> Variant:
    return replace(variant, problem=problem)


def _limits(variant: Variant) -> Registers:
    return variant.problem.registers or Registers(per_thread=255, per_sm=UNLIMITED)


def _with_registers(variant: Variant, limits: Registers) -> Variant:
    return _with(variant, replace(variant.problem, registers=limits))


LIFT: dict[Kind, Callable[[Variant, str], Variant]] = {
    "unit": _unit,
    "memory": _memory,
    "registers": _registers,
    "register_file": _register_file,
    "groups": _groups,
    "warps": _warps,
    "stages": _stages,
    "handoff": _handoff,
    "concurrency": _concurrency,
    "variable_latency": _variable_latency,
    "legality": _legality,
    "latency": _latency,
}
"""How each kind of family is lifted."""

RAISE: dict[Kind, Callable[[Variant, str, int], Variant]] = {
    "unit": raise_unit,
    "memory": raise_memory,
    "registers": raise_registers,
    "register_file": raise_register_file,
    "groups": raise_groups,
    "warps": raise_warps,
    "stages": raise_stages,
    "handoff": raise_handoff,
    "latency": raise_latency,
}
"""How the kinds that have an amount are set to one."""
