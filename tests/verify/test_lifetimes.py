"""How long values live, where, and who may overwrite whom: small schedules with the numbers worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from problems import Dep, Node, in_memory, in_registers, problem, use
from slow_oracle import faults
from twillgpu.costs.record import Problem
from twillgpu.machine.record import Groups, Memory, Registers
from twillgpu.schedule.record import Buffer, Group, Schedule, ScheduledOp
from twillgpu.verify import Verified, check
from twillgpu.verify.registers import register_peak

TWO = Groups(max=2, warps=(1, 4), max_warps=8)


def plan(interval: int, *places: tuple[str, int, int], buffers: tuple[Buffer, ...] = ()) -> Schedule:
    """Return a schedule of (op, start, group) with one-warp groups and no quotas."""
    count = max(group for _, _, group in places) + 1
    return Schedule(
        graph="tiny",
        machine="tiny",
        ii_cycles=interval,
        ops=tuple(ScheduledOp(name=name, start_cycle=start, group=group) for name, start, group in places),
        groups=tuple(Group(name=f"g{index}", warps=1, registers_per_thread=0) for index in range(count)),
        buffers=buffers,
    )


def ring(name: str, *, depth: int, offset: int = 0, size: int = 4, floor: int | None = None) -> Buffer:
    return Buffer(
        name=name,
        space="smem",
        bytes=size,
        depth=depth,
        depth_floor=depth if floor is None else floor,
        offset_bytes=offset,
    )


def messages(case: Problem, schedule: Schedule) -> list[tuple[str, str]]:
    """Return (rule, message) of every violation; the slow execution agrees on the rules."""
    verdict = check(case, schedule)
    found = [] if isinstance(verdict, Verified) else [(item.rule, item.message) for item in verdict]
    assert {rule for rule, _ in found} == faults(case, schedule)
    return found


def live(case: Problem, schedule: Schedule, group: int) -> int:
    most = register_peak(case, schedule, group)
    return 0 if most is None else most.amount


def test_a_register_value_without_consumer_lives_while_it_is_computed() -> None:
    case = problem([Node(name="a", latency=5, value=in_registers(8))])
    # 5 cycles of an interval of 2: three instances.
    assert live(case, plan(2, ("a", 0, 0)), 0) == 24
    assert live(case, plan(5, ("a", 0, 0)), 0) == 8


def test_an_edge_shorter_than_the_latency_does_not_shorten_the_value() -> None:
    case = problem(
        [Node(name="a", latency=5, value=in_registers(8)), Node(name="b")], [Dep(tail="a", head="b", latency=1)]
    )
    assert live(case, plan(5, ("a", 0, 0), ("b", 1, 0)), 0) == 8
    assert live(case, plan(4, ("a", 0, 0), ("b", 1, 0)), 0) == 16


def test_a_distance_of_two_keeps_three_instances() -> None:
    case = problem(
        [Node(name="a", latency=1, value=in_registers(8)), Node(name="b")], [Dep(tail="a", head="b", distance=2)]
    )
    # b of iteration i + 2 starts at 3 + 2 x 4: a lives 11 cycles of 4.
    assert live(case, plan(4, ("a", 0, 0), ("b", 3, 0)), 0) == 24


def test_a_synchronous_consumer_frees_registers_when_it_starts_and_an_asynchronous_one_when_it_ends() -> None:
    nodes = [Node(name="a", latency=2, value=in_registers(8)), Node(name="b", uses=(use("alu", 3),))]
    case = problem(nodes, [Dep(tail="a", head="b")])
    assert live(case, plan(3, ("a", 0, 0), ("b", 3, 0)), 0) == 8
    nodes[1] = replace(nodes[1], issue=1)
    assert live(problem(nodes, [Dep(tail="a", head="b")]), plan(3, ("a", 0, 0), ("b", 3, 0)), 0) == 16


def test_a_value_that_crosses_is_written_out_here_and_copied_there() -> None:
    case = problem(
        [
            Node(name="a", latency=2, value=in_registers(8), handoff=3),
            Node(name="b", uses=(use("alu", 4),)),
            Node(name="c", uses=(use("alu", 4),)),
        ],
        [Dep(tail="a", head="b"), Dep(tail="a", head="c", distance=1)],
        groups=TWO,
        units={"alu": 2},
    )
    # In its group a lives 2 + 3 cycles. The copy lives from b at 5 until c of the next iteration, at 15, has issued.
    schedule = plan(10, ("a", 0, 0), ("b", 5, 1), ("c", 5, 1))
    assert live(case, schedule, 0) == 8
    assert live(case, schedule, 1) == 16
    assert live(case, plan(4, ("a", 0, 0), ("b", 5, 1), ("c", 5, 1)), 0) == 16


def test_an_in_place_accumulator_is_counted_once_and_always() -> None:
    nodes = [
        Node(name="scale", latency=2, value=in_registers(8, alias="acc")),
        Node(name="add", latency=2, value=in_registers(16, alias="acc")),
    ]
    case = problem(nodes, [Dep(tail="scale", head="add"), Dep(tail="add", head="scale", distance=1)])
    schedule = plan(4, ("scale", 1, 0), ("add", 3, 0))
    assert live(case, schedule, 0) == 16
    assert messages(case, schedule) == []


def test_members_in_two_groups_occupy_each_for_their_own_time() -> None:
    nodes = [
        Node(name="a", latency=2, value=in_registers(8, alias="s"), handoff=1),
        Node(name="b", latency=2, value=in_registers(16, alias="s")),
        Node(name="c"),
    ]
    case = problem(nodes, [Dep(tail="a", head="b"), Dep(tail="b", head="c")], groups=TWO)
    # a lives 0 to 3 in its group; b from 3 to 9 in the other, in place of the copy that it receives.
    schedule = plan(4, ("a", 0, 0), ("b", 3, 1), ("c", 9, 1))
    assert live(case, schedule, 0) == 16
    assert live(case, schedule, 1) == 32
    assert messages(case, schedule) == []


def test_a_class_that_nothing_carries_lives_from_its_first_start_to_its_last_read() -> None:
    nodes = [
        Node(name="a", latency=2, value=in_registers(8, alias="s")),
        Node(name="b", latency=2, value=in_registers(16, alias="s")),
        Node(name="c"),
    ]
    case = problem(nodes, [Dep(tail="a", head="b"), Dep(tail="b", head="c")])
    # 0 to 7 of an interval of 5: two instances of the larger member.
    assert live(case, plan(5, ("a", 0, 0), ("b", 2, 0), ("c", 7, 0)), 0) == 32
    # In another group: the class where c is not, and a copy of b where it is.
    apart = replace(case, groups=TWO, ops=tuple(replace(op, issue_cycles=1) for op in case.ops))
    assert live(apart, plan(8, ("a", 0, 0), ("b", 2, 0), ("c", 7, 1)), 0) == 16
    assert live(apart, plan(8, ("a", 0, 0), ("b", 2, 0), ("c", 7, 1)), 1) == 16


@pytest.mark.parametrize(("start", "ok"), [(4, True), (3, False)])
def test_a_member_may_not_be_overwritten_while_another_op_reads_it(start: int, ok: bool) -> None:
    # row reads s until 2 + 2; p overwrites s. Without an anti edge from row to p the graph leaves p free.
    nodes = [
        Node(name="s", latency=2, value=in_memory(4, alias="sp")),
        Node(name="row", latency=2),
        Node(name="p", latency=2, value=in_memory(4, alias="sp")),
    ]
    case = problem(nodes, [Dep(tail="s", head="row"), Dep(tail="s", head="p")])
    # The class lives from 0 to row's or p's end, within 8 cycles.
    schedule = plan(8, ("s", 0, 0), ("row", 2, 0), ("p", start, 0), buffers=(ring("sp", depth=1),))
    found = messages(case, schedule)
    assert bool(found) is not ok
    if not ok:
        rule, message = found[0]
        assert rule == "dependence"
        assert message == (
            "p of iteration 0 starts at cycle 3 to overwrite sp; s of iteration 0 starts at cycle 0 to write what "
            "row of iteration 0 needs until 4: the graph lacks an edge, or the schedule breaks one"
        )


def test_an_accumulator_read_late_is_overwritten_by_the_next_iteration() -> None:
    nodes = [Node(name="acc", latency=2, value=in_registers(8, alias="o")), Node(name="out")]
    case = problem(nodes, [Dep(tail="acc", head="acc", distance=1), Dep(tail="acc", head="out")])
    assert messages(case, plan(4, ("acc", 0, 0), ("out", 4, 0))) == []
    found = messages(case, plan(4, ("acc", 0, 0), ("out", 5, 0)))
    assert [rule for rule, _ in found] == ["dependence"]
    assert "acc of iteration 1 starts at cycle 4 to overwrite o" in found[0][1]


def test_an_accumulator_carried_over_two_iterations_cannot_be_in_place() -> None:
    case = problem(
        [Node(name="acc", latency=2, value=in_registers(8, alias="o"))], [Dep(tail="acc", head="acc", distance=2)]
    )
    assert [rule for rule, _ in messages(case, plan(4, ("acc", 0, 0)))] == ["dependence"]


def test_a_tensor_core_may_accumulate_before_the_last_product_has_completed() -> None:
    # Chained products: each starts when the unit is free, at 4, although a product takes 9.
    nodes = [Node(name="mul", uses=(use("mma", 4),), issue=1, latency=9, value=in_registers(8, alias="o"))]
    case = problem(nodes, [Dep(tail="mul", head="mul", distance=1, latency=4)])
    assert messages(case, plan(4, ("mul", 0, 0))) == []


def test_a_pinned_buffer_has_one_copy() -> None:
    case = problem(
        [Node(name="acc", latency=2, value=in_memory(4, alias="o"))], [Dep(tail="acc", head="acc", distance=1)]
    )
    assert messages(case, plan(4, ("acc", 0, 0), buffers=(ring("o", depth=1),))) == []
    found = messages(case, plan(4, ("acc", 0, 0), buffers=(ring("o", depth=2, floor=1),)))
    assert found == [("memory_capacity", "o is updated in place: 2 copies are given, 1 is right")]


def test_a_load_that_nothing_reads_occupies_its_buffer_while_it_is_written() -> None:
    # Streaming: latency 0 in the model; the memory is written for 6 cycles of 4 all the same.
    case = problem([Node(name="load", latency=6, variable=True, value=in_memory(4))])
    assert messages(case, plan(4, ("load", 0, 0), buffers=(ring("load", depth=2),))) == []
    found = messages(case, plan(4, ("load", 0, 0), buffers=(ring("load", depth=1),)))
    assert [rule for rule, _ in found] == ["memory_capacity", "memory_capacity"]


def test_memory_is_read_until_the_consumer_ends_and_its_barrier_is_seen() -> None:
    nodes = [Node(name="load", latency=0, value=in_memory(4)), Node(name="mul", latency=6)]
    case = problem(nodes, [Dep(tail="load", head="mul")], barrier=2)
    # 0 to 0 + 6 + 2 = 8.
    assert messages(case, plan(8, ("load", 0, 0), ("mul", 0, 0), buffers=(ring("load", depth=1),))) == []
    assert messages(case, plan(7, ("load", 0, 0), ("mul", 0, 0), buffers=(ring("load", depth=2),))) == []


SHARED = problem(
    [
        Node(name="a", latency=2, value=in_memory(4)),
        Node(name="b", latency=2, value=in_memory(4)),
    ],
    memories=(Memory(name="smem", capacity_bytes=8, alignment_bytes=4),),
)


def test_buffers_share_bytes_in_turn() -> None:
    # a lives 0 to 2, b 2 to 4 of an interval of 4.
    turns = (ring("a", depth=1), ring("b", depth=1))
    assert messages(SHARED, plan(4, ("a", 0, 0), ("b", 2, 0), buffers=turns)) == []
    # The same slots one iteration apart.
    assert messages(SHARED, plan(4, ("a", 0, 0), ("b", 6, 0), buffers=turns)) == []
    found = messages(SHARED, plan(4, ("a", 0, 0), ("b", 1, 0), buffers=turns))
    assert [rule for rule, _ in found] == ["memory_capacity"]
    assert "of iteration 1 holds bytes 0 to 4 in cycles 4 to 6; b of iteration 1 holds bytes 0 to 4" in found[0][1]


@pytest.mark.parametrize(("start", "ok"), [(0, False), (2, True), (4, True), (8, False), (12, True)])
def test_deep_rings_share_bytes_copy_by_copy(start: int, ok: bool) -> None:
    # Two copies each on the same 8 bytes, interval 4. a of iteration i lives from 4 i to 4 i + 2 in copy i mod 2, b
    # as long from its start on. At start 2 they never live together; at 0, 4, 8, 12 b of iteration i lives together
    # with a of iteration i, i + 1, i + 2, i + 3: in the same copy where that is an even number of iterations.
    rings = (ring("a", depth=2, floor=1), ring("b", depth=2, floor=1))
    assert (not messages(SHARED, plan(4, ("a", 0, 0), ("b", start, 0), buffers=rings))) is ok


def test_a_ring_deeper_than_its_floor_may_fit_where_the_floor_does_not() -> None:
    # a of iteration i lives from 4 i to 4 i + 6 in copy i mod 2: copy 0 is free from 6 to 8, copy 1 from 10 to 12,
    # and so on. b of iteration i starts at 6 + 4 i and finds free whichever of two copies it has; one copy meets a.
    case = problem(
        [Node(name="a", latency=6, value=in_memory(4)), Node(name="b", latency=1, value=in_memory(4))],
        memories=(Memory(name="smem", capacity_bytes=8, alignment_bytes=4),),
    )
    for offset in (0, 4):
        floor = (ring("a", depth=2), ring("b", depth=1, offset=offset))
        assert [rule for rule, _ in messages(case, plan(4, ("a", 0, 0), ("b", 6, 0), buffers=floor))] != []
    deeper = (ring("a", depth=2), ring("b", depth=2, floor=1))
    assert messages(case, plan(4, ("a", 0, 0), ("b", 6, 0), buffers=deeper)) == []


def test_rings_whose_common_period_is_too_long_to_expand_are_refused() -> None:
    case = replace(SHARED, memories=())
    rings = (ring("a", depth=997, floor=1), ring("b", depth=991, floor=1))
    verdict = check(case, plan(4, ("a", 0, 0), ("b", 2, 0), buffers=rings))
    assert not isinstance(verdict, Verified)
    assert verdict[0].message == ("they share bytes with depths 997 and 991: 988027 iterations are too many to check")


def test_two_storages_of_one_name_are_refused() -> None:
    nodes = [Node(name="a", latency=2, value=in_memory(4, alias="b")), Node(name="b", latency=2, value=in_memory(4))]
    verdict = check(problem(nodes), plan(4, ("a", 0, 0), ("b", 2, 0), buffers=(ring("b", depth=1),)))
    assert not isinstance(verdict, Verified)
    assert verdict[0].message == "2 storages of the graph are called b: a buffer cannot name one"


def test_staging_is_free_where_the_machine_has_no_smem() -> None:
    case = problem(
        [Node(name="a", latency=1, value=in_registers(8), staging=4), Node(name="b")],
        [Dep(tail="a", head="b")],
        groups=TWO,
    )
    schedule = plan(4, ("a", 0, 0), ("b", 1, 1))
    assert messages(case, schedule) == []
    limited = replace(case, memories=(Memory(name="smem", capacity_bytes=8, alignment_bytes=4),))
    assert [message for _, message in messages(limited, schedule)] == [
        "a.staging (4 bytes in smem, cycles 1 to 2 of iteration 0) has no buffer"
    ]


def test_one_staging_copy_serves_every_group_until_the_last_has_taken_it() -> None:
    case = problem(
        [Node(name="a", latency=1, value=in_registers(8), staging=4), Node(name="b"), Node(name="c")],
        [Dep(tail="a", head="b"), Dep(tail="a", head="c", distance=1)],
        groups=Groups(max=3, warps=(1, 4), max_warps=8),
        memories=(Memory(name="smem", capacity_bytes=8, alignment_bytes=4),),
    )
    # From 1 to c's start at 2 + 4: 5 cycles of 4.
    places = (("a", 0, 0), ("b", 1, 1), ("c", 2, 2))
    assert messages(case, plan(4, *places, buffers=(ring("a.staging", depth=2),))) == []
    found = messages(case, plan(4, *places, buffers=(ring("a.staging", depth=1),)))
    assert {rule for rule, _ in found} == {"memory_capacity"}


def test_the_overhead_counts_in_a_group_where_nothing_lives() -> None:
    case = problem([Node(name="a")], registers=Registers(per_thread=64, per_sm=65536, overhead_per_thread=30))
    bare = plan(4, ("a", 0, 0))
    narrow = replace(bare, groups=(replace(bare.groups[0], registers_per_thread=24),))
    assert [message for _, message in messages(case, narrow)] == [
        "g0 needs 0 + 30 registers per thread and has 24: nothing live"
    ]
    wide = replace(bare, groups=(replace(bare.groups[0], registers_per_thread=32),))
    assert messages(case, wide) == []


def test_a_hundred_ops_at_ten_thousand_cycles() -> None:
    """Seven stages of a chain that fills nine tenths of its unit; takes a fraction of a second."""
    names = [f"op{i}" for i in range(100)]
    nodes = [
        Node(
            name=name,
            uses=(use("alu", 90),),
            issue=90,
            latency=600,
            value=in_registers(1) if i % 2 else in_memory(16),
        )
        for i, name in enumerate(names)
    ]
    deps = [Dep(tail=tail, head=head, blocking=True) for tail, head in pairwise(names)]
    case = problem(
        nodes,
        deps,
        registers=Registers(per_thread=64, per_sm=65536),
        memories=(Memory(name="smem", capacity_bytes=2048, alignment_bytes=16),),
    )
    # 700 cycles apart: the slots 700 i mod 10,000 are the multiples of 100, each once, and a use lasts 90.
    starts = [(name, 700 * i, 0) for i, name in enumerate(names)]
    # A value in memory is read until the next op ends, 700 + 601 cycles of 10,000.
    rings = [ring(name, depth=1, size=16, offset=16 * i) for i, name in enumerate(names) if i % 2 == 0]
    schedule = plan(10_000, *starts, buffers=tuple(rings))
    schedule = replace(schedule, groups=(Group(name="g0", warps=1, registers_per_thread=24),))
    verdict = check(case, schedule, max_stages=7)
    assert isinstance(verdict, Verified), verdict
