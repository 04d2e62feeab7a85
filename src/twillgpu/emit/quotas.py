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
LEAST = 24
MOST = 248
REGISTER_FILE = 65_536
MARGIN = 8
"""Registers above those live that the assembler needs: operands of wide instructions must be consecutive."""


ROOM = 32
"""Registers above those live with which a group that spilled should not."""

ROOMY = 48
"""Registers that a narrow group is given at most so that nothing is reloaded."""

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


def filled(groups: Sequence[GroupProgram]) -> tuple[GroupProgram, ...]:
    """Return the groups with quotas where a schedule with unlimited registers has none: the least for narrow groups,
    equal shares for the others.
    """
    if all(group.registers_per_thread for group in groups):
        return tuple(groups)
    warps = -(-sum(group.warps for group in groups) // 4) * 4
    launched = REGISTER_FILE // (32 * warps) // STEP * STEP
    narrow_warps = sum(group.warps for group in groups if group.warps < 4)
    wide_warps = sum(group.warps for group in groups if group.warps >= 4)
    rest = launched * warps - -(-narrow_warps // 4) * 4 * LEAST
    share = min(MOST, rest // max(1, wide_warps) // STEP * STEP)
    return tuple(replace(one, registers_per_thread=share if one.warps >= 4 else LEAST) for one in groups)


def with_registers(program: WarpProgram, quotas: Mapping[str, int]) -> WarpProgram:
    """Return the program with other quotas for the groups named."""
    groups = (
        replace(group, registers_per_thread=quotas.get(group.name, group.registers_per_thread))
        for group in program.groups
    )
    return replace(program, groups=tuple(groups))


def moved(groups: Sequence[GroupProgram], compiled: Compiled) -> Mapping[str, int] | None:
    """Return quotas that give every group that spills in its main loop more, out of what others do not use; ``None``
    where nothing can be moved.

    Others keep what their main loops need. What is left goes to those that spill until they have enough, then to what
    the others need before and after their loops, and then to those that spill again; the poorest first.
    """
    code = dict(zip((group.name for group in groups), compiled.groups, strict=True))
    spilling = {name for name, one in code.items() if one.loop is not None and one.loop.stores}
    old = {group.name: group.registers_per_thread for group in groups}
    quotas = dict(old)
    narrow = [group.name for group in groups if group.warps < 4]
    if spilling.intersection(narrow):
        quotas.update(dict.fromkeys(narrow, max(old[name] for name in narrow) + STEP))
    wide = {group.name: group.warps for group in groups if group.warps >= 4}
    for name in wide:
        if name not in spilling:
            quotas[name] = min(old[name], _in_loop(code[name]))
    narrow_warps, asked = packed([replace(one, registers_per_thread=quotas[one.name]) for one in groups])
    pool = compiled.registers_per_thread * compiled.warps - narrow_warps * asked
    rest = pool - sum(warps * quotas[name] for name, warps in wide.items())
    needy = {name: warps for name, warps in wide.items() if name in spilling}
    others = {name: warps for name, warps in wide.items() if name not in spilling}
    rest = _raise(quotas, needy, {name: _enough(code[name], old[name]) for name in needy}, rest)
    rest = _raise(quotas, others, {name: _rounded(code[name].live_registers + MARGIN) for name in others}, rest)
    rest = _raise(quotas, needy or others, dict.fromkeys(needy or others, MOST), rest)
    helped = bool(spilling) and rest >= 0 and all(quotas[name] > old[name] for name in spilling)
    return quotas if helped else None


def roomier(groups: Sequence[GroupProgram], compiled: Compiled) -> Mapping[str, int] | None:
    """Return quotas that give the groups of fewer than 4 warps what the others do not use, ``None`` where nothing is
    reloaded in a main loop, or nothing is left.

    What several groups need is computed before they part, in code that has the registers of the smallest quota.
    """
    code = dict(zip((group.name for group in groups), compiled.groups, strict=True))
    narrow_warps, old = packed(groups)
    if not narrow_warps or not any(one.loop is not None and one.loop.spills for one in code.values()):
        return None
    wide = {group.name: group.warps for group in groups if group.warps >= 4}
    needed = {name: _rounded(code[name].live_registers + MARGIN) for name in wide}
    pool = compiled.registers_per_thread * compiled.warps
    left = (pool - sum(warps * needed[name] for name, warps in wide.items())) // narrow_warps // STEP * STEP
    quota = min(left, ROOMY)
    if quota <= old:
        return None
    quotas = needed | {group.name: quota for group in groups if group.warps < 4}
    _raise(
        quotas,
        wide,
        dict.fromkeys(wide, MOST),
        pool - narrow_warps * quota - sum(warps * needed[name] for name, warps in wide.items()),
    )
    return quotas


def _in_loop(code: GroupCode) -> int:
    """Return the registers that the main loop of a group needs, and some for its work outside."""
    live = code.loop.live_registers if code.loop is not None else code.live_registers
    return max(_rounded(live + MARGIN), LEAST_OUTSIDE)


def _enough(code: GroupCode, old: int) -> int:
    """Return the registers with which a group that spills now should not: at least two steps more."""
    live = code.loop.live_registers if code.loop is not None else 0
    return min(MOST, max(old + 2 * STEP, _rounded(live + ROOM)))


def _raise(quotas: dict[str, int], warps: Mapping[str, int], upto: Mapping[str, int], rest: int) -> int:
    """Raise quotas step by step, the poorest first, while there is something left; return what is left."""
    while True:
        open_ = [
            name for name in warps if quotas[name] + STEP <= min(upto[name], MOST) and STEP * warps[name] <= rest
        ]
        if not open_:
            return rest
        poorest = min(open_, key=lambda name: quotas[name])
        quotas[poorest] += STEP
        rest -= STEP * warps[poorest]


def _rounded(count: int) -> int:
    return -(-count // STEP) * STEP
