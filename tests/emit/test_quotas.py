"""Registers as Gluon gives them out, and how they move to the groups that spill."""

import compiled_code as code

from twillgpu.emit.quotas import expected_quotas, filled, moved, roomier
from twillgpu.emit.record import Compiled, GroupCode
from twillgpu.lower.record import GroupProgram


def group(name: str, warps: int, registers: int) -> GroupProgram:
    return GroupProgram(
        name=name,
        warps=warps,
        registers_per_thread=registers,
        stages=1,
        before=(),
        prologue=(),
        loop=(),
        epilogue=(),
        after=(),
    )


def compiled(launched: int, warps: int, *groups: GroupCode) -> Compiled:
    return Compiled(
        target="sm_100a",
        triton="3.9.0",
        seconds=1.0,
        warps=warps,
        registers_per_thread=launched,
        spill_bytes=0,
        smem_bytes=0,
        tmem_columns=0,
        warnings=(),
        groups=groups,
    )


HOPPER = (group("a", 4, 240), group("b", 4, 240), group("load", 1, 24))
BLACKWELL = (group("s0", 4, 168), group("s1", 4, 160), group("r", 4, 160), group("load", 1, 24), group("mma", 1, 24))


def test_the_first_group_gets_the_remainder() -> None:
    """168 x 12 warps less 240 x 4 and 24 x 4 leaves 960, 240 for each of four warps."""
    assert expected_quotas(HOPPER, 168, 12) == (240, 240, 24)


def test_narrow_groups_share_a_warpgroup() -> None:
    """128 x 16 less (160 + 160 + 24) x 4 leaves 672: 168."""
    assert expected_quotas(BLACKWELL, 128, 16) == (168, 160, 160, 24, 24)


def blackwell_code(stores: int) -> Compiled:
    spilling = code.loop_code(stores=stores)
    idle = code.loop_code()
    return compiled(
        128,
        16,
        code.group_code("s0", 168, spilling, live=140),
        code.group_code("s1", 160, spilling, live=140),
        code.group_code("r", 160, idle, live=139),
        code.group_code("load", 24, idle, live=4),
        code.group_code("mma", 24, idle, live=6),
    )


def test_registers_move_to_groups_that_spill() -> None:
    """The rescaling group's loop needs 108, rounded up 112: the two that spill get two steps more, and it keeps the
    rest.
    """
    quotas = moved(BLACKWELL, blackwell_code(stores=3))
    assert quotas == {"s0": 184, "s1": 176, "r": 128, "load": 24, "mma": 24}
    assert sum(one.warps * quotas[one.name] for one in BLACKWELL if one.warps == 4) + 4 * 24 <= 128 * 16


def test_nothing_moves_where_nothing_spills() -> None:
    assert moved(BLACKWELL, blackwell_code(stores=0)) is None


def test_nothing_moves_where_nobody_has_registers_to_spare() -> None:
    full = code.loop_code(stores=9)
    found = compiled(
        168,
        12,
        code.group_code("a", 240, full, live=238),
        code.group_code("b", 240, full, live=238),
        code.group_code("load", 24, code.loop_code(), live=4),
    )
    assert moved(HOPPER, found) is None


def test_narrow_groups_that_spill_get_a_step_from_the_wide_ones() -> None:
    found = compiled(
        168,
        12,
        code.group_code("a", 240, code.loop_code(), live=180),
        code.group_code("b", 240, code.loop_code(), live=180),
        code.group_code("load", 24, code.loop_code(stores=2), live=24),
    )
    quotas = moved(HOPPER, found)
    assert quotas is not None
    assert quotas["load"] == 32
    assert 4 * (quotas["a"] + quotas["b"] + quotas["load"]) <= 168 * 12


def test_groups_without_quotas_share_the_registers() -> None:
    """20 warps launch with 96 registers each: 1,920, less 24 for each of the 4 narrow ones, is 114 for each of 16."""
    found = filled((group("a", 8, 0), group("b", 8, 0), group("load", 1, 0)))
    assert [one.registers_per_thread for one in found] == [112, 112, 24]
    assert filled(HOPPER) == HOPPER


def test_narrow_groups_get_what_is_left_where_something_is_reloaded() -> None:
    """128 x 16 less (152 + 152 + 120) x 4 is 352, 88 for each of the four warps that narrow groups share: 48 do."""
    reloading, idle = code.loop_code(reloads=1), code.loop_code()
    found = compiled(
        128,
        16,
        code.group_code("s0", 168, idle, live=140),
        code.group_code("s1", 160, idle, live=140),
        code.group_code("r", 160, idle, live=110),
        code.group_code("load", 24, reloading, live=4),
        code.group_code("mma", 24, idle, live=6),
    )
    quotas = roomier(BLACKWELL, found)
    assert quotas is not None
    assert (quotas["load"], quotas["mma"]) == (48, 48)
    assert (quotas["s0"], quotas["s1"], quotas["r"]) == (160, 152, 152)
    assert 4 * sum(quotas[name] for name in ("s0", "s1", "r", "load")) == 128 * 16


def test_nothing_moves_where_nothing_is_reloaded_or_nothing_is_left() -> None:
    assert roomier(BLACKWELL, blackwell_code(0)) is None
    full = compiled(
        128, 16, *(code.group_code(one.name, 168, code.loop_code(reloads=1), live=168) for one in BLACKWELL)
    )
    assert roomier(BLACKWELL, full) is None
