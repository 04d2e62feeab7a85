"""Whole examples: what their programs must contain, derived by hand from schedule and kernel."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import pytest
import schedules

from twillgpu.costs.record import PriceOptions
from twillgpu.emulate.symbolic_check import check_trips
from twillgpu.emulate.unroll import Unroller
from twillgpu.errors import InputError
from twillgpu.lower.check import check_program, regions
from twillgpu.lower.counts import counts
from twillgpu.lower.lower import lower
from twillgpu.lower.options import LowerOptions
from twillgpu.lower.record import Arrive, Commit, Execute, Fence, Get, Put, Wait, WarpProgram
from twillgpu.schedule.record import SearchOptions
from twillgpu.schedule.search import search
from twillgpu.verify import check
from twillgpu.verify.record import Verified

pytestmark = pytest.mark.triton


def _lowered(
    name: str, machine: str, groups: dict[str, int], interval: int, options: LowerOptions | None = None
) -> WarpProgram:
    kernel, graph, problem = schedules.loaded(name, machine)
    verified = schedules.placed(schedules.roomy(problem), groups, interval)
    assert verified is not None
    return lower(kernel, graph, verified, options)


def _hopper_attention(options: LowerOptions | None = None) -> WarpProgram:
    """Load group and one consumer for each half of the rows: the partition of FlashAttention-3."""
    _, _, problem = schedules.loaded("attention_fwd", "h100")
    groups = {op.name: 0 if op.variable_latency else 1 + int(op.name[-1]) for op in problem.ops}
    return _lowered("attention_fwd", "h100", groups, 2600, options)


def _blackwell_attention(interval: int = 5000) -> WarpProgram:
    """Load, MMA, two softmax groups and correction; P in the columns of S."""
    limits = PriceOptions(columns="fixed")
    kernel, graph, problem = schedules.loaded("attention_fwd", "b200", None, limits)
    groups = {op.name: _blackwell_group(op.name) for op in problem.ops}
    order = ("load_k", "load_v", "qk_0", "qk_1")
    verified = schedules.placed(schedules.roomy(problem), groups, interval, order)
    assert verified is not None
    return lower(kernel, graph, verified)


def _blackwell_group(name: str) -> int:
    if name.startswith("load"):
        return 0
    if name in ("qk_0", "qk_1", "acc_0", "acc_1"):
        return 1
    return 4 if name.startswith("acc_") else 2 + int(name[-1])


def _gemm(machine: str, options: LowerOptions | None = None) -> WarpProgram:
    _, _, problem = schedules.loaded("gemm", machine)
    groups = {op.name: 0 if op.variable_latency else 1 for op in problem.ops}
    return _lowered("gemm", machine, groups, 1200, options)


def _sound(program: WarpProgram, tiles: tuple[tuple[int, ...], ...] = ()) -> None:
    assert check_program(program) == ()
    stages = max(group.stages for group in program.groups)
    unroller = Unroller(program)
    for trips in (*((count,) for count in (*range(stages + 2), stages + 5)), *tiles):
        finding = check_trips(unroller, trips)
        assert (finding.races, finding.hazards, finding.deadlock) == ((), (), None), trips


def test_hopper_attention_needs_no_more_waits_than_the_hand_written_kernel() -> None:
    # By hand: the load group waits for a free K and a free V; each consumer for K and for V.
    found = counts(_hopper_attention(LowerOptions(order_units=False)))
    assert [(group.group, group.waits) for group in found.groups] == [("load", 2), ("softmax0", 2), ("softmax1", 2)]


def test_blackwell_attention_needs_no_more_waits_than_the_hand_written_kernel() -> None:
    # The hand-written kernel: load 2; MMA: K, V, P and O of each half: 4; softmax: S, and alpha's buffer: 2 each;
    # correction: alpha and O of each half: 4; 14 in all. That alpha's buffer is free follows from S of the next
    # iteration: it comes after the PV product that the rescaled O went into, and alpha was read before that.
    found = {group.group: group.waits for group in counts(_blackwell_attention()).groups}
    assert found["mma"] == 4
    assert found["softmax0"] == found["softmax1"] == 1
    assert sum(found.values()) <= 12


def test_a_buffer_that_two_groups_read_is_free_when_both_say_so() -> None:
    program = _hopper_attention()
    free = next(barrier for barrier in program.barriers if any("-> load_k" in served for served in barrier.serves))
    assert free.arrivals == 2


def test_turns_on_the_tensor_core_are_kept_only_where_asked() -> None:
    plain, turns = (counts(_hopper_attention(LowerOptions(order_units=asked))) for asked in (False, True))
    assert turns.waits > plain.waits
    _sound(_hopper_attention(LowerOptions(order_units=True)))


@pytest.mark.parametrize("persistent", [False, True])
def test_hopper_attention_is_sound_for_any_trip_count(persistent: bool) -> None:
    tiles = ((3, 0, 5, 1, 2), (4, 4, 4), (0, 0, 1)) if persistent else ()
    _sound(_hopper_attention(LowerOptions(persistent=persistent)), tiles)


@pytest.mark.parametrize("machine", ["h100", "b200", "a100"])
@pytest.mark.parametrize("persistent", [False, True])
def test_gemm_is_sound_for_any_trip_count(machine: str, persistent: bool) -> None:
    if machine == "a100":
        _, _, problem = schedules.loaded("gemm", "a100")
        options = LowerOptions(persistent=persistent)
        program = _lowered("gemm", "a100", {op.name: 0 for op in problem.ops}, 1400, options)
    else:
        program = _gemm(machine, LowerOptions(persistent=persistent))
    _sound(program, ((3, 0, 5, 1, 2),) if persistent else ())


def test_blackwell_attention_is_sound_for_any_trip_count() -> None:
    _sound(_blackwell_attention())


def test_work_after_the_loop_gets_a_group_where_none_is_wide_enough() -> None:
    # Load and MMA have one warp each; the tile of 128 x 256 results needs the kernel's 8 warps.
    kernel, _, _ = schedules.loaded("gemm", "b200")
    program = _gemm("b200")
    assert [(group.name, group.warps) for group in program.groups] == [
        ("load", 1),
        ("mma", 1),
        ("epilogue", kernel.num_warps),
    ]
    assert program.groups[2].loop == ()


def test_the_fixed_tile_is_loaded_once_and_waited_for_by_every_reader() -> None:
    program = _hopper_attention()
    load, *consumers = program.groups
    loads = [one for one in load.before if isinstance(one, Execute) and one.engine == "tma"]
    assert [one.op for one in loads] == ["q"]
    assert loads[0].completes is not None
    for group in consumers:
        waits = [one.use.barrier for one in group.before if isinstance(one, Wait)]
        assert waits == [loads[0].completes.barrier]


def test_row_sums_are_handed_to_the_group_that_owns_the_accumulator() -> None:
    # The correction group divides O by the row sum, which the softmax group has.
    program = _blackwell_attention()
    softmax, correction = program.groups[2], program.groups[4]
    assert [one.value for one in softmax.after if isinstance(one, Put)] == ["l_i_final_0"]
    values = [one.value for one in correction.after if isinstance(one, Get)]
    assert values == ["l_i_final_0", "l_i_final_1"]


@pytest.mark.parametrize("interval", [4500, 5000, 12000])
def test_tmem_stores_are_complete_before_they_are_published(interval: int) -> None:
    program = _blackwell_attention(interval)
    tmem = {ring.name for ring in program.rings if ring.memory == "tmem"}
    for group in program.groups:
        for _, instructions in regions(group):
            for one, after in pairwise(instructions):
                if isinstance(one, Execute) and one.engine == "simt" and any(use.ring in tmem for use in one.writes):
                    assert isinstance(after, Fence)
                    assert after.kind == "tmem_store"


def test_no_group_waits_twice_for_a_phase() -> None:
    for program in (_hopper_attention(), _blackwell_attention(), _gemm("h100"), _gemm("b200")):
        for group in program.groups:
            waits = [one.use for one in group.loop if isinstance(one, Wait)]
            assert len(waits) == len(set(waits))


def test_completion_of_products_on_blackwell_is_committed_not_claimed() -> None:
    program = _blackwell_attention()
    mma = next(group for group in program.groups if group.name == "mma")
    assert not any(isinstance(one, Arrive) for one in mma.loop)
    assert any(isinstance(one, Commit) for one in mma.loop)


def test_a_depth_below_the_floor_is_no_schedule() -> None:
    # Q used in two stages, two copies needed: fewer is refused before lowering, with the buffer named.
    _, _, problem = schedules.loaded("gemm", "h100")
    groups = {op.name: 0 if op.variable_latency else 1 for op in problem.ops}
    verified = schedules.placed(schedules.roomy(problem), groups, 1100)
    assert verified is not None
    deep = next(buffer for buffer in verified.schedule.buffers if buffer.depth_floor > 1)
    fewer = replace(deep, depth=deep.depth_floor - 1)
    buffers = tuple(fewer if buffer == deep else buffer for buffer in verified.schedule.buffers)
    verdict = check(verified.problem, replace(verified.schedule, buffers=buffers))
    assert not isinstance(verdict, Verified)
    assert deep.name in verdict[0].message


def test_results_go_through_the_memory_of_the_loop_where_nothing_else_is_free() -> None:
    kernel, graph, problem = schedules.loaded("gemm", "b200")
    groups = {op.name: 0 if op.variable_latency else 1 for op in problem.ops}
    verified = schedules.placed(problem, groups, 1200)
    assert verified is not None
    buffers = [buffer for buffer in verified.schedule.buffers if buffer.space == "smem"]
    end = max(buffer.offset_bytes + buffer.depth * buffer.bytes for buffer in buffers)
    memories = tuple(
        replace(memory, capacity_bytes=max(end, 1024 + 65536)) if memory.name == "smem" else memory
        for memory in problem.memories
    )
    full = check(replace(problem, memories=memories), verified.schedule)
    assert isinstance(full, Verified)
    for persistent in (False, True):
        program = lower(kernel, graph, full, LowerOptions(persistent=persistent))
        staging = next(ring for ring in program.rings if ring.name == "descriptor_store.staging")
        assert staging.offset_bytes < end
        _sound(program, ((2, 0, 3),) if persistent else ())


def test_a_result_that_fits_nowhere_is_named() -> None:
    kernel, graph, problem = schedules.loaded("gemm", "b200")
    groups = {op.name: 0 if op.variable_latency else 1 for op in problem.ops}
    verified = schedules.placed(problem, groups, 12000)
    assert verified is not None
    buffers = tuple(
        replace(buffer, depth=1, offset_bytes=1024 if buffer.name == "load_a" else 17408)
        if buffer.space == "smem"
        else buffer
        for buffer in verified.schedule.buffers
    )
    memories = tuple(
        replace(memory, capacity_bytes=50176) if memory.name == "smem" else memory for memory in problem.memories
    )
    full = check(replace(problem, memories=memories), replace(verified.schedule, buffers=buffers))
    assert isinstance(full, Verified), full
    with pytest.raises(InputError, match=r"buffer descriptor_store.staging: it needs 65,536 bytes of smem"):
        lower(kernel, graph, full)


@pytest.mark.parametrize(
    ("name", "machine"),
    [
        ("attention_fwd", "h100"),
        ("attention_fwd", "b200"),
        ("attention_bwd", "h100"),
        ("attention_bwd", "b200"),
        ("gemm", "h100"),
        ("rms_norm", "h100"),
    ],
)
def test_random_partitions_are_sound(name: str, machine: str) -> None:
    kernel, graph, priced = schedules.loaded(name, machine)
    problem = schedules.roomy(priced)
    longest = sum(max(op.real_latency_cycles, op.issue_cycles) + op.handoff_cycles for op in problem.ops)
    found = 0
    for seed in range(40):
        randomly = random.Random(seed)  # noqa: S311
        groups = schedules.random_groups(problem, randomly, 3)
        verified = schedules.placed(problem, groups, longest // randomly.choice((2, 4, 5)), randomly=randomly)
        if verified is None:
            continue
        persistent = seed % 2 == 1
        program = lower(kernel, graph, verified, LowerOptions(persistent=persistent, order_units=seed % 3 == 0))
        assert check_program(program) == ()
        for trips in ((2, 0, 1, 4),) if persistent else ((0,), (1,), (5,)):
            finding = check_trips(program, trips)
            assert (finding.races, finding.hazards, finding.deadlock) == ((), (), None), (seed, trips)
        found += 1
        if found == 6:
            return
    assert found


def test_a_group_that_is_a_tile_ahead_does_not_arrive_twice_in_a_phase() -> None:
    """Before: after a tile without iterations a product group told again that the loop's buffers are free, before the
    other one had told so for the tile before.
    """
    kernel, graph, problem = schedules.loaded("gemm", "h100")
    schedule = search(problem, SearchOptions()).schedule
    assert schedule is not None
    verified = check(problem, schedule)
    assert isinstance(verified, Verified)
    _sound(lower(kernel, graph, verified, LowerOptions(persistent=True)), ((2, 0, 3), (1, 0, 2, 0, 5)))
