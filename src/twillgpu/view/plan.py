"""Sections of a report that show the schedule itself: ops, groups, buffers, utilisation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from twillgpu.costs.record import PricedOp, Problem
from twillgpu.schedule.record import Buffer, Schedule
from twillgpu.verify.registers import register_peak
from twillgpu.view.period import utilisation
from twillgpu.view.picture import marks
from twillgpu.view.text import TIE, number, plural, section, table

TMEM_COLUMN_BYTES = 512
"""A TMEM column: 128 lanes of 32 bits."""
BAR = 30


def ops_section(problem: Problem, schedule: Schedule) -> list[str]:
    """Every op in order of start: letter in the picture, source, busiest unit, start, stage, slot, group."""
    letters = marks(schedule)
    priced = {op.name: op for op in problem.ops}
    file = _common_file(op.source for op in problem.ops)
    header = ["", "op", "line" if file else "source", "unit", "start", "stage", "slot", "group"]
    right = {4, 5, 6, 2} if file else {4, 5, 6}
    rows = []
    for op in sorted(schedule.ops, key=lambda op: op.start_cycle):
        stage, slot = divmod(op.start_cycle, schedule.ii_cycles)
        what = priced[op.name]
        figures = (number(op.start_cycle), str(stage), number(slot))
        place = (_line(what.source, file), _unit(what))
        rows.append([letters[op.name], op.name, *place, *figures, schedule.groups[op.group].name])
    if not any(op.source for op in problem.ops):
        right = {3, 4, 5}
        for row in (header, *rows):
            del row[2]
    where = f" (lines of {file})" if file else ""
    return section(f"Ops{where}; start and slot in cycles", table(header, rows, right=right))


def _common_file(sources: Iterable[str]) -> str:
    files = Counter(source.rpartition(":")[0] for source in sources if source)
    return next(iter(files)) if len(files) == 1 else ""


def _line(source: str, file: str) -> str:
    return source.removeprefix(f"{file}:") if file else source


def _unit(op: PricedOp) -> str:
    if not op.uses:
        return "-"
    held: Counter[str] = Counter()
    for use in op.uses:
        held[use.unit] += use.cycles
    return max(held, key=lambda unit: held[unit])


def groups_section(problem: Problem, schedule: Schedule) -> list[str]:
    """Warp groups with width, registers per thread needed and given (quota), and ops; the sums against the machine's.

    A need is the most that is live at once, with the machine's overhead; quotas also share out what is left over.

    The sum of registers counts the warps that fill the last warpgroup up, at the smallest quota.
    """
    letters = marks(schedule)
    rows = []
    for index, group in enumerate(schedule.groups):
        ops = sorted((op for op in schedule.ops if op.group == index), key=lambda op: op.start_cycle)
        need, quota = "-", "-"
        if problem.registers is not None:
            most = register_peak(problem, schedule, index)
            need = str((most.amount if most else 0) + problem.registers.overhead_per_thread)
            quota = str(group.registers_per_thread)
        names = ", ".join(f"{letters[op.name]}{TIE}{op.name}" for op in ops)
        rows.append((group.name, str(group.warps), need, quota, names))
    warps = sum(group.warps for group in schedule.groups)
    title = f"Warp groups: {number(warps)} of {plural(problem.groups.max_warps, 'warp')}"
    if problem.registers is not None:
        held = sum(32 * group.warps * group.registers_per_thread for group in schedule.groups)
        held += 32 * (-warps % 4) * problem.registers.quota_min
        title += f", {number(held)} of {plural(problem.registers.per_sm, 'register')}"
    return section(title, table(("group", "warps", "regs needed", "quota", "ops"), rows, right=(1, 2, 3)))


def buffers_section(problem: Problem, schedule: Schedule) -> list[str]:
    """Rings in SMEM and TMEM: bytes of one copy, copies (and the least that the lifetimes need), place."""
    rows = [
        (buffer.name, buffer.space, number(buffer.bytes), str(buffer.depth), str(buffer.depth_floor), _place(buffer))
        for buffer in sorted(schedule.buffers, key=lambda buffer: (buffer.space, buffer.offset_bytes, buffer.name))
    ]
    header = ("buffer", "space", "bytes", "depth", "floor", "place")
    return section("Buffers" + _memory_use(problem, schedule), table(header, rows, right=(2, 3, 4)))


def _place(buffer: Buffer) -> str:
    stop = buffer.offset_bytes + buffer.depth * buffer.bytes
    if buffer.space == "tmem" and buffer.offset_bytes % TMEM_COLUMN_BYTES == 0:
        return f"columns {buffer.offset_bytes // TMEM_COLUMN_BYTES}..{(stop - 1) // TMEM_COLUMN_BYTES}"
    return f"bytes {number(buffer.offset_bytes)}..{number(stop - 1)}"


def _memory_use(problem: Problem, schedule: Schedule) -> str:
    parts = []
    for memory in problem.memories:
        buffers = [buffer for buffer in schedule.buffers if buffer.space == memory.name]
        fixed = dict(problem.fixed_bytes).get(memory.name, 0)
        top = max((buffer.offset_bytes + buffer.depth * buffer.bytes for buffer in buffers), default=fixed)
        if top:
            parts.append(f"{memory.name} {number(top)} of {number(memory.capacity_bytes)} bytes")
    return ": " + ", ".join(parts) if parts else ""


def utilisation_section(problem: Problem, schedule: Schedule) -> list[str]:
    """Share of the period for which each unit is held, as a figure and a bar."""
    shares = [(name, share) for name, share in utilisation(problem, schedule.ii_cycles) if share > 0]
    size = max((len(name) for name, _ in shares), default=0)
    lines = [f"  {name:<{size}}  {share:6.1%}  {'#' * round(share * BAR)}".rstrip() for name, share in shares]
    return section("Utilisation", lines)
