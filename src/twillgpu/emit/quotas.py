"""Registers of the groups as Gluon gives them out, and moving them to where they are needed.

A block of W warps (rounded up to a multiple of 4) is launched with an equal share for all; each worker asks for its
quota, and the first group of the source gets what is left. Groups of fewer than 4 warps are packed into warpgroups
whose warps all have the largest quota among them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from twillgpu.emit.record import Compiled, GroupCode
from twillgpu.lower.record import GroupProgram, WarpProgram

STEP = 8
MOST = 248
MARGIN = 8
"""Registers above those live that the assembler needs: operands of wide instructions must be consecutive."""


LEAST_OUTSIDE = 72
"""What a group keeps at least for its work before and after the loop."""


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


def moved(
    groups: Sequence[GroupProgram], compiled: Compiled, *, loops_only: bool = False
) -> Mapping[str, int] | None:
    """Return quotas that give every group that spills in its main loop more, out of what others do not use; ``None``
    where nothing can be moved.

    ``loops_only``: what a group keeps is what its main loop needs, even if it then spills before or after the loop.
    """
    code = dict(zip((group.name for group in groups), compiled.groups, strict=True))
    spilling = {name for name, one in code.items() if one.loop is not None and one.loop.spills}
    old = {group.name: group.registers_per_thread for group in groups}
    quotas = dict(old)
    narrow = [group.name for group in groups if group.warps < 4]
    if spilling.intersection(narrow):
        quotas.update(dict.fromkeys(narrow, max(old[name] for name in narrow) + STEP))
    for group in groups:
        if group.warps >= 4 and group.name not in spilling:
            quotas[group.name] = min(old[group.name], _kept(code[group.name], loops_only=loops_only))
    given = _shared_out(groups, quotas, compiled.registers_per_thread * compiled.warps, spilling)
    helped = spilling and given is not None and all(given[name] > old[name] for name in spilling)
    return given if helped else None


def _kept(code: GroupCode, *, loops_only: bool) -> int:
    """Return the registers that a group which does not spill needs; before and after the loop it needs some, too."""
    live = code.loop.live_registers if loops_only and code.loop is not None else code.live_registers
    return max(_rounded(live + MARGIN), LEAST_OUTSIDE)


def _shared_out(
    groups: Sequence[GroupProgram], quotas: dict[str, int], pool: int, spilling: set[str]
) -> dict[str, int] | None:
    """Give what is left of the pool to the wide groups that spill, the poorest first; ``None`` if it is too small."""
    wide = [group for group in groups if group.warps >= 4]
    narrow_warps, narrow = packed([replace(one, registers_per_thread=quotas[one.name]) for one in groups])
    rest = pool - narrow_warps * narrow - sum(one.warps * quotas[one.name] for one in wide)
    if rest < 0:
        return None
    needy = [group for group in wide if group.name in spilling] or wide
    while True:
        open_ = [one for one in needy if quotas[one.name] + STEP <= MOST and STEP * one.warps <= rest]
        if not open_:
            return quotas
        poorest = min(open_, key=lambda one: quotas[one.name])
        quotas[poorest.name] += STEP
        rest -= STEP * poorest.warps


def _rounded(count: int) -> int:
    return -(-count // STEP) * STEP
