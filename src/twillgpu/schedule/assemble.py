"""From starts and groups to a schedule: quotas of registers, ring depths, places, names of groups."""

from __future__ import annotations

from collections.abc import Mapping

from twillgpu.costs.record import PricedOp, Problem
from twillgpu.machine.record import Memory, Registers
from twillgpu.schedule.allocate import Ring, place
from twillgpu.schedule.lifetimes import Lifetime, buffer_lifetimes, instances, peak, register_lifetimes
from twillgpu.schedule.partition import widths
from twillgpu.schedule.polish import Draft
from twillgpu.schedule.record import Buffer, Group, Schedule, ScheduledOp

BUSY = 4
"""Latency of a TMA load while every SM loads, as a multiple of that on an idle chip: 1.4 to 4.6 thousand cycles for
tiles of 8 to 32 KB against 460 + 6 per KB (SemiAnalysisAI/microbench-blackwell; facebookexperimental/triton)."""


def assemble(problem: Problem, draft: Draft) -> Schedule | None:
    """Return the schedule, or ``None`` where registers or a memory do not suffice."""
    warps = widths(problem, draft.groups)
    quotas = _quotas(problem, draft, warps)
    if quotas is None:
        return None
    buffers = _buffers(problem, draft)
    if buffers is None:
        return None
    names = _names(problem, draft.groups)
    return Schedule(
        graph=problem.name,
        machine=problem.machine,
        ii_cycles=draft.ii_cycles,
        ops=tuple(
            ScheduledOp(name=op.name, start_cycle=draft.starts[op.name], group=draft.groups[op.name])
            for op in problem.ops
        ),
        groups=tuple(
            Group(name=name, warps=width, registers_per_thread=quota)
            for name, width, quota in zip(names, warps, quotas, strict=True)
        ),
        buffers=buffers,
        graph_sha256=problem.graph_sha256,
        machine_sha256=problem.machine_sha256,
        problem_sha256=problem.sha256,
    )


def _quotas(problem: Problem, draft: Draft, warps: list[int]) -> list[int] | None:
    """Return quotas that cover every group's peak; what the register file has left goes to the widest groups."""
    limits = problem.registers
    if limits is None:
        return [0] * len(warps)
    lifetimes = register_lifetimes(problem, draft.groups)
    needs = []
    for group in range(len(warps)):
        mine = [life for life in lifetimes if life.holder == str(group)]
        held = sum(
            resident.registers_per_thread
            for resident in problem.residents
            if any(draft.groups[user] == group for user in resident.users)
        )
        needs.append(peak(mine, draft.starts, draft.ii_cycles) + held + limits.overhead_per_thread)
    quotas = [_rounded(need, limits) for need in needs]
    if any(quota > limits.largest for quota in quotas) or not _fits(quotas, warps, limits):
        return None
    return _spread(quotas, needs, warps, limits, limits.largest)


def _rounded(need: int, limits: Registers) -> int:
    return max(limits.smallest, -(-need // limits.quota_step) * limits.quota_step)


def _fits(quotas: list[int], warps: list[int], limits: Registers) -> bool:
    padding = -sum(warps) % 4
    taken = sum(quota * width for quota, width in zip(quotas, warps, strict=True)) + padding * limits.quota_min
    return 32 * taken <= limits.pool(sum(warps) + padding)


def _spread(quotas: list[int], needs: list[int], warps: list[int], limits: Registers, most: int) -> list[int]:
    """Raise the tightest of the widest groups step by step: the assembler needs more than the model counts."""
    widest = max(warps)
    while True:
        open_groups = [
            group
            for group, width in enumerate(warps)
            if width == widest and width > 1 and quotas[group] + limits.quota_step <= most
        ]
        if not open_groups:
            return quotas
        tightest = min(open_groups, key=lambda group: (quotas[group] - needs[group], group))
        raised = [quota + (limits.quota_step if group == tightest else 0) for group, quota in enumerate(quotas)]
        if not _fits(raised, warps, limits):
            return quotas
        quotas = raised


def _buffers(problem: Problem, draft: Draft) -> tuple[Buffer, ...] | None:
    lifetimes = buffer_lifetimes(problem, draft.groups)
    result: list[Buffer] = []
    for space in ("smem", "tmem"):
        mine = [life for life in lifetimes if life.holder == space]
        memory = next((memory for memory in problem.memories if memory.name == space), None)
        placed = _place(problem, draft, memory or Memory(name=space, capacity_bytes=1 << 62), mine)
        if placed is None:
            return None
        result += placed
    return tuple(result)


def _place(problem: Problem, draft: Draft, memory: Memory, lifetimes: list[Lifetime]) -> list[Buffer] | None:
    """Return buffers with depths for the real latency of streaming loads, or as much of it as there is room for."""
    unit = memory.alignment_bytes
    fixed = -(-dict(problem.fixed_bytes).get(memory.name, 0) // unit)
    room = memory.capacity_bytes // unit - fixed
    floors = {life.name: _floor(life, draft) for life in lifetimes}
    units = {life.name: -(-life.weight // unit) for life in lifetimes}
    # No more copies than the memory holds, however long a load may take: the loop below then ends soon.
    wanted = {
        life.name: min(_residency(problem, life, draft), room // max(1, units[life.name])) for life in lifetimes
    }
    depths = {name: max(floors[name], depth) for name, depth in wanted.items()}
    while sum(units[name] * depth for name, depth in depths.items()) > room:
        spare = [name for name in depths if depths[name] > floors[name]]
        if not spare:
            break
        depths[max(spare, key=lambda name: (depths[name] - floors[name], units[name], name))] -= 1
    rings = [
        Ring(
            name=life.name,
            units=units[life.name],
            depth=depths[life.name],
            span=None if life.pinned else life.span(draft.starts, draft.ii_cycles),
        )
        for life in lifetimes
    ]
    places = place(rings, draft.ii_cycles, room)
    if places is None:
        return None
    return [
        Buffer(
            name=ring.name,
            space="tmem" if memory.name == "tmem" else "smem",
            bytes=ring.units * unit,
            depth=ring.depth,
            depth_floor=floors[ring.name],
            offset_bytes=(fixed + places[ring.name]) * unit,
        )
        for ring in rings
    ]


def _floor(life: Lifetime, draft: Draft) -> int:
    return 1 if life.pinned else instances(life.span(draft.starts, draft.ii_cycles), draft.ii_cycles)


def _residency(problem: Problem, life: Lifetime, draft: Draft) -> int:
    """Return the copies wanted so that a streaming load is issued its latency on a busy chip before its data is
    needed; the latency of the machine file is that of an idle one.
    """
    op = next((op for op in problem.ops if op.name == life.name), None)
    if op is None or not op.streaming:
        return 1
    begin, end = life.span(draft.starts, draft.ii_cycles)
    return instances((begin - BUSY * op.real_latency_cycles, end), draft.ii_cycles)


def _names(problem: Problem, groups: Mapping[str, int]) -> list[str]:
    """Return a name for every group after what it does; a number is added where two would be equal."""
    roles = [
        _role([op for op in problem.ops if groups[op.name] == group]) for group in range(max(groups.values()) + 1)
    ]
    names: list[str] = []
    for index, role in enumerate(roles):
        names.append(f"{role}{roles[:index].count(role)}" if roles.count(role) > 1 else role)
    return names


def _role(ops: list[PricedOp]) -> str:
    kinds = {op.kind for op in ops}
    if all(op.variable_latency for op in ops):
        return "load"
    if kinds <= {"mma"}:
        return "mma"
    if "exp" in kinds and "reduce" in kinds:
        return "softmax"
    if kinds <= {"tma_store", "store", "atomic", "tma_reduce"}:
        return "store"
    return "rescale" if kinds <= {"tmem_load", "tmem_store", "elementwise"} and "tmem_store" in kinds else "compute"
