"""Sub-tiles: which ops belong together, and schedules in which sub-tiles follow each other at equal distances."""

from __future__ import annotations

from dataclasses import replace

from searching import searched

from problems import Dep, Node, in_registers, problem, use
from twillgpu.costs.record import Problem
from twillgpu.machine.record import Groups, Registers
from twillgpu.schedule.ask import Asker
from twillgpu.schedule.core import Question
from twillgpu.schedule.model import answer
from twillgpu.schedule.record import SearchOptions
from twillgpu.schedule.solved import Effort
from twillgpu.schedule.symmetry import families


def tiles(count: int, *, chained: bool = False) -> Problem:
    """Sub-tiles of a product and an exponential each, after one load."""
    nodes = [Node(name="load", uses=(use("tma"),), latency=3)]
    deps = []
    for tile in range(count):
        nodes.append(Node(name=f"s_{tile}", uses=(use("tensor", 4),), latency=5, value=in_registers(8)))
        nodes.append(Node(name=f"p_{tile}", uses=(use("mufu", 3),), latency=3, value=in_registers(8)))
        deps += [Dep(tail="load", head=f"s_{tile}"), Dep(tail=f"s_{tile}", head=f"p_{tile}")]
        if chained and tile:
            deps.append(Dep(tail=f"p_{tile - 1}", head=f"p_{tile}"))
    return problem(
        nodes,
        deps,
        units={"tma": 1, "tensor": 1, "mufu": 1},
        registers=Registers(per_thread=64, per_sm=65536),
        groups=Groups(max=2, warps=(1, 4), max_warps=8),
    )


def question(asked: Problem, interval: int, skew: int) -> Question:
    return Question(problem=asked, interval=interval, stages=2, rounding="exact", skew=skew)


def test_families() -> None:
    assert families(tiles(3)) == (("s_0", "s_1", "s_2"), ("p_0", "p_1", "p_2"))


def test_ops_that_depend_on_each_other_are_no_family() -> None:
    assert families(tiles(3, chained=True)) == (("s_0", "s_1", "s_2"),)


def test_ops_of_other_costs_are_no_family() -> None:
    odd = tiles(2)
    ops = tuple(replace(op, latency_cycles=9) if op.name == "p_1" else op for op in odd.ops)
    assert families(replace(odd, ops=ops)) == (("s_0", "s_1"),)


def test_one_of_a_kind_is_no_family() -> None:
    assert families(tiles(1)) == ()


def test_sub_tiles_follow_each_other_at_equal_distances() -> None:
    found = answer(question(tiles(3), 12, 4), (), Effort(work=5, seconds=60))
    assert found.outcome == "optimal"
    for names in families(tiles(3)):
        starts = [found.starts[name] for name in names]
        assert [start - starts[0] for start in starts] == [0, 4, 8]


def test_a_distance_that_is_too_short_for_a_unit() -> None:
    assert answer(question(tiles(3), 12, 3), (), Effort(work=5, seconds=60)).outcome == "infeasible"


def test_a_distance_that_leaves_no_window() -> None:
    assert answer(question(tiles(3), 12, 20), (), Effort(work=5, seconds=60)).outcome == "infeasible"


def test_no_schedule_at_equal_distances_refutes_nothing() -> None:
    asker = Asker(tiles(3), SearchOptions(), 2, lambda _: None)
    assert asker.find_skewed(11, 1, 1) is None
    asker.find_skewed(12, 1, 1)
    assert not asker.refuted(12, 1)


def test_large_problems_with_sub_tiles_are_searched_by_them_first() -> None:
    options = SearchOptions(resolution=200)
    result = searched(tiles(8), replace(options, max_stages=2))
    assert result.status == "optimal"
    assert result.lower_bound_cycles == 32
