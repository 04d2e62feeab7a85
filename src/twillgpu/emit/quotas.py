"""Registers of the groups as Gluon gives them out, and moving them to where they are needed.

A block of W warps (rounded up to a multiple of 4) is launched with an equal share for all; each worker asks for its
quota, and the first group of the source gets what is left. Groups of fewer than 4 warps are packed into warpgroups
whose warps all have the largest quota among them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from twillgpu.emit.record import Compiled
from twillgpu.lower.record import GroupProgram, WarpProgram

STEP = 8
MOST = 248
MARGIN = 8
"""Registers above those live that the assembler needs: operands of wide instructions must be consecutive."""


def packed(groups: Sequence[GroupProgram]) -> tuple[int, int]:
    """Return warps and quota of what groups of fewer than 4 warps share."""
    narrow = [group for group in groups if group.warps < 4]
    warps = sum(group.warps for group in narrow)
    return -(-warps // 4) * 4, max((group.registers_per_thread for group in narrow), default=0)


def expected_quotas(groups: Sequence[GroupProgram], launched: int, warps: int) -> tuple[int, ...]:
    """Return the ``setmaxnreg`` of every group, the first of which gets the remainder.

    Args:
        groups: in the order of the source.
        launched: registers per thread that the block is launched with.
        warps: warps of the block.
    """
    narrow_warps, narrow = packed(groups)
    wide = sum(group.warps * group.registers_per_thread for group in groups[1:] if group.warps >= 4)
    rest = (launched * warps - wide - narrow_warps * narrow) // groups[0].warps // STEP * STEP
    others = (narrow if group.warps < 4 else group.registers_per_thread for group in groups[1:])
    return (min(rest, 256), *others)


def with_registers(program: WarpProgram, quotas: Mapping[str, int]) -> WarpProgram:
    """Return the program with other quotas for the groups named."""
    groups = (
        replace(group, registers_per_thread=quotas.get(group.name, group.registers_per_thread))
        for group in program.groups
    )
    return replace(program, groups=tuple(groups))


def moved(groups: Sequence[GroupProgram], compiled: Compiled) -> Mapping[str, int] | None:
    """Return quotas that give every group that spills more, out of what others do not use; ``None`` where nothing
    can be moved.
    """
    code = dict(zip((group.name for group in groups), compiled.groups, strict=True))
    spilling = {name for name, one in code.items() if one.spills}
    pool = compiled.registers_per_thread * compiled.warps
    quotas = {group.name: group.registers_per_thread for group in groups}
    narrow = {group.name for group in groups if group.warps < 4}
    if narrow & spilling:
        quotas.update(dict.fromkeys(narrow, max(quotas[name] for name in narrow) + STEP))
    for group in groups:
        if group.warps >= 4 and group.name not in spilling:
            quotas[group.name] = min(quotas[group.name], _rounded(code[group.name].live_registers + MARGIN))
    given = [replace(group, registers_per_thread=quotas[group.name]) for group in groups]
    narrow_warps, narrow_quota = packed(given)
    wide = [group for group in given if group.warps >= 4]
    needy = [group for group in wide if group.name in spilling] or wide
    rest = pool - narrow_warps * narrow_quota - sum(one.warps * one.registers_per_thread for one in wide)
    for group in sorted(needy, key=lambda one: one.registers_per_thread) * (MOST // STEP):
        if rest >= STEP * group.warps and quotas[group.name] + STEP <= MOST:
            quotas[group.name] += STEP
            rest -= STEP * group.warps
    old = {group.name: group.registers_per_thread for group in groups}
    helped = all(quotas[name] > old[name] for name in spilling)
    return quotas if rest >= 0 and helped and spilling else None


def _rounded(count: int) -> int:
    return -(-count // STEP) * STEP
