"""Quotas fit the register file, groups are named after what they do, rings are as deep as loads take."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from problems import Dep, Node, in_memory, in_registers, problem, use
from twillgpu.costs.record import Problem
from twillgpu.graph.record import Resident
from twillgpu.machine.record import Groups, Memory, Registers
from twillgpu.schedule.assemble import assemble
from twillgpu.schedule.polish import Draft
from twillgpu.schedule.record import Schedule
from twillgpu.verify import Verified, check
from twillgpu.verify.registers import registers_taken

WIDE = Groups(max=4, warps=(1, 4), max_warps=16)
SMEM = Memory(name="smem", capacity_bytes=64, alignment_bytes=16)


def assembled(tiny: Problem, interval: int, where: dict[str, int], **at: int) -> Schedule:
    schedule = assemble(tiny, Draft(ii_cycles=interval, starts=at, groups=where))
    assert schedule is not None
    assert isinstance(check(tiny, schedule), Verified)
    return schedule


def quotas(schedule: Schedule) -> list[int]:
    return [group.registers_per_thread for group in schedule.groups]


def two_values(first: int, second: int, limits: Registers | None, *, warps: int = 4) -> Problem:
    return problem(
        [
            Node(name="a", latency=2, warps=4, value=in_registers(first)),
            Node(name="b", latency=2, warps=warps, value=in_registers(second)),
        ],
        registers=limits,
        groups=WIDE,
    )


def test_quotas_are_0_where_registers_are_unlimited() -> None:
    assert quotas(assembled(two_values(8, 8, None), 4, {"a": 0, "b": 1}, a=0, b=0)) == [0, 0]


def test_a_quota_covers_values_residents_and_overhead_in_steps() -> None:
    # 8 + 16 live together, a resident of 5 for b, overhead 4: 33, the next multiple of 8 is 40. No more is there.
    limits = Registers(per_thread=64, per_sm=32 * 4 * 40, overhead_per_thread=4)
    tiny = replace(
        two_values(8, 16, limits), residents=(Resident(name="kept", registers_per_thread=5, users=("b",)),)
    )
    assert quotas(assembled(tiny, 4, {"a": 0, "b": 0}, a=0, b=0)) == [40]


def test_registers_left_over_go_to_the_tightest_of_the_widest_groups() -> None:
    # 40 and 24 of 80 per thread: two steps of 8 are left. Both are as tight: the first step to a, the next to b.
    limits = Registers(per_thread=64, per_sm=32 * 4 * 80)
    assert quotas(assembled(two_values(40, 24, limits), 4, {"a": 0, "b": 1}, a=0, b=0)) == [48, 32]
    # Four steps: a has none to spare, b 7 (17 of 24); so a, then b with its 7 against 8, then a with 8 against 15,
    # then b with 15 against 16. (A block of 8 warps gets a multiple of 8 x 8 registers per lane: 96, not 88.)
    more = replace(limits, per_sm=32 * 4 * 96)
    assert quotas(assembled(two_values(40, 17, more), 4, {"a": 0, "b": 1}, a=0, b=0)) == [56, 40]


def test_a_single_warp_keeps_the_smallest_quota() -> None:
    # A block of 8 warps gets 44, so 40 per thread of the file: 80 for two. b's one warp and three of padding take 24.
    limits = Registers(per_thread=128, per_sm=32 * 4 * 88)
    assert quotas(assembled(two_values(40, 8, limits, warps=1), 4, {"a": 0, "b": 1}, a=0, b=0)) == [56, 24]


@pytest.mark.parametrize(
    "limits",
    [
        # 64 live at once exceed what a thread may have; the file; with 2 of overhead, the last step, 64.
        Registers(per_thread=56, per_sm=65536),
        Registers(per_thread=64, per_sm=32 * 4 * 56),
        Registers(per_thread=70, per_sm=65536, overhead_per_thread=2),
    ],
)
def test_too_few_registers_give_no_schedule(limits: Registers) -> None:
    tiny = two_values(40, 24, limits)
    draft = Draft(ii_cycles=4, starts={"a": 0, "b": 0}, groups={"a": 0, "b": 0})
    assert assemble(tiny, draft) is None
    # One after the other, 40 are live at once.
    apart = replace(draft, starts={"a": 0, "b": 2})
    assert assemble(tiny, apart) is not None


@settings(max_examples=60, deadline=None)
@given(
    st.integers(min_value=0, max_value=64),
    st.integers(min_value=0, max_value=64),
    st.integers(min_value=16, max_value=160),
    st.sampled_from((1, 4)),
)
def test_quotas_are_legal_and_fit_or_there_is_no_schedule(first: int, second: int, file: int, warps: int) -> None:
    limits = Registers(per_thread=64, per_sm=32 * 4 * file, overhead_per_thread=3)
    tiny = two_values(first, second, limits, warps=warps)
    schedule = assemble(tiny, Draft(ii_cycles=4, starts={"a": 0, "b": 0}, groups={"a": 0, "b": 1}))
    least = [max(24, -(-(value + 3) // 8) * 8) for value in (first, second)]
    # A single warp is padded to four with three of 24.
    needed = least[0] + (least[1] if warps == 4 else (least[1] + 3 * 24) / 4)
    # A block of 8 warps gets a multiple of 8 registers per thread, so of 16 for one thread of each group.
    assert (schedule is not None) == (max(least) <= 64 and needed <= file // 16 * 16)
    if schedule is not None:
        assert isinstance(check(tiny, schedule), Verified)
        assert registers_taken(schedule, limits) <= limits.per_sm


@pytest.mark.parametrize(
    ("kinds", "name"),
    [
        (("tma_load", "tma_load"), "load"),
        (("mma",), "mma"),
        (("exp", "reduce", "elementwise"), "softmax"),
        (("tma_store",), "store"),
        (("tmem_load", "elementwise", "tmem_store"), "rescale"),
        (("tmem_load", "elementwise"), "compute"),
        (("mma", "elementwise"), "compute"),
    ],
)
def test_a_group_is_named_after_its_ops(kinds: tuple[str, ...], name: str) -> None:
    nodes = [Node(name=f"o{index}", variable=kind == "tma_load") for index, kind in enumerate(kinds)]
    plain = problem(nodes, groups=WIDE)
    tiny = replace(plain, ops=tuple(replace(op, kind=kind) for op, kind in zip(plain.ops, kinds, strict=True)))
    schedule = assembled(tiny, 4, dict.fromkeys((op.name for op in tiny.ops), 0), **{op.name: 0 for op in tiny.ops})
    assert [group.name for group in schedule.groups] == [name]


def test_groups_of_one_kind_are_numbered() -> None:
    plain = problem([Node(name="a"), Node(name="b"), Node(name="c")], groups=WIDE)
    tiny = replace(plain, ops=(replace(plain.ops[0], kind="mma"), *plain.ops[1:]))
    schedule = assembled(tiny, 4, {"a": 0, "b": 1, "c": 2}, a=0, b=0, c=0)
    assert [group.name for group in schedule.groups] == ["mma", "compute0", "compute1"]


def loading(latency: int, capacity: int) -> Problem:
    """A load of 16 bytes that streams, read for 3 cycles and a barrier hop by b."""
    return problem(
        [
            Node(name="load", variable=True, latency=latency, value=in_memory(16)),
            Node(name="b", uses=(use(cycles=3),)),
        ],
        [Dep(tail="load", head="b")],
        memories=(replace(SMEM, capacity_bytes=capacity),),
    )


@pytest.mark.parametrize(
    ("latency", "capacity", "depth"),
    [
        # Held 4 cycles from its start (3 to read, 1 to tell): one copy at interval 4. Issued 4 x 9 cycles ahead, as a
        # busy chip takes, it is held 40: ten copies, if there is room for them.
        (9, 256, 10),
        (9, 64, 4),
        (9, 48, 3),
        (9, 16, 1),
        (1, 64, 2),
    ],
)
def test_a_ring_is_as_deep_as_the_load_takes(latency: int, capacity: int, depth: int) -> None:
    schedule = assembled(loading(latency, capacity), 4, {"load": 0, "b": 0}, load=0, b=0)
    (ring,) = schedule.buffers
    assert (ring.depth, ring.depth_floor, ring.bytes) == (depth, 1, 16)


def test_buffers_begin_above_what_is_fixed_and_at_whole_units() -> None:
    tiny = replace(loading(4, 64), fixed_bytes=(("smem", 17),))
    (ring,) = assembled(tiny, 4, {"load": 0, "b": 0}, load=0, b=0).buffers
    assert ring.offset_bytes == 32
    assert ring.depth == 2


def test_a_memory_that_is_too_small_gives_no_schedule() -> None:
    tiny = replace(loading(4, 64), fixed_bytes=(("smem", 60),))
    assert assemble(tiny, Draft(ii_cycles=4, starts={"load": 0, "b": 0}, groups={"load": 0, "b": 0})) is None


def test_a_memory_that_is_not_listed_is_unlimited() -> None:
    tiny = replace(loading(9, 64), memories=())
    (ring,) = assembled(tiny, 4, {"load": 0, "b": 0}, load=0, b=0).buffers
    assert (ring.depth, ring.bytes, ring.offset_bytes) == (10, 16, 0)
