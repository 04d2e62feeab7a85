"""Machine code as records, for tests of feedback: what a clean compilation of a warp program would report."""

from __future__ import annotations

import sys
from pathlib import Path

from twillgpu.emit.feedback import Judged, Limits, overlaps
from twillgpu.emit.gluon import ordered
from twillgpu.emit.quotas import expected_quotas
from twillgpu.emit.record import Compiled, GroupCode, LoopCode, Run
from twillgpu.lower.record import GroupProgram, WarpProgram

sys.path.append(str(Path(__file__).parents[1] / "emulate"))

import emitted

LIMITS = Limits(smem_bytes=232_448, tmem_columns=512)
LAUNCHED = 168


def program(name: str, machine: str) -> WarpProgram:
    """Return an example's warp program."""
    return emitted.program(name, machine)


def loop_code(
    *, stores: int = 0, reloads: int = 0, counts: dict[str, int] | None = None, order: tuple[Run, ...] = ()
) -> LoopCode:
    """Return the code of a main loop."""
    return LoopCode(
        live_registers=100,
        spills=stores + reloads,
        stores=stores,
        instructions=100,
        waits=0,
        counts=tuple(sorted((counts or {}).items())),
        order=order,
    )


def group_code(name: str, maxreg: int, loop: LoopCode | None, live: int = 100, outside: int = 0) -> GroupCode:
    """Return the code of a group."""
    spills = outside + (loop.spills if loop is not None else 0)
    return GroupCode(
        name=name, maxreg=maxreg, live_registers=live, spills=spills, instructions=200, counts=(), order=(), loop=loop
    )


def clean(found: WarpProgram, tensor: dict[str, dict[str, int]]) -> Judged:
    """Return a program with code that says what it says; ``tensor``: tensor core instructions of each group."""
    groups = ordered(found)
    warps = -(-sum(group.warps for group in groups) // 4) * 4
    ops = {op.name: op for op in (*found.kernel.before, *found.kernel.loop.body, *found.kernel.after)}
    quotas = expected_quotas(groups, LAUNCHED, warps)
    codes = tuple(
        group_code(
            group.name,
            quota,
            loop_code(counts=tensor.get(group.name), order=_order(group, overlaps(group.loop, ops))),
        )
        for group, quota in zip(groups, quotas, strict=True)
    )
    compiled = Compiled(
        target=found.kernel.target,
        triton="3.9.0",
        seconds=1.0,
        warps=warps,
        registers_per_thread=LAUNCHED,
        spill_bytes=0,
        smem_bytes=1024,
        tmem_columns=256,
        warnings=(),
        groups=codes,
    )
    return Judged(program=found, groups=groups, compiled=compiled, limits=LIMITS)


def _order(group: GroupProgram, overlapping: int) -> tuple[Run, ...]:
    del group
    runs = (Run(kind="tensor", count=8), Run(kind="exp", count=64), Run(kind="drain", count=1))
    return runs * overlapping
