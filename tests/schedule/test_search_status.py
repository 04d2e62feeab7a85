"""What a search says of itself: optimal, infeasible, limit, feasible with a gap; and that it repeats itself."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from searching import searched

from problems import Dep, Node, in_memory, in_registers, problem, use
from twillgpu.costs.record import LegalPair, Problem, RuleOptions
from twillgpu.errors import InputError
from twillgpu.machine.record import Groups, Memory, Registers
from twillgpu.schedule.ask import Asker
from twillgpu.schedule.record import SearchOptions, SearchResult
from twillgpu.schedule.search import search

TWO = Groups(max=2, warps=(1, 4), max_warps=8)
SMEM = Memory(name="smem", capacity_bytes=4, alignment_bytes=4)


def crowded(ops: int, cycles: int) -> Problem:
    """Ops with uses of one unit, each a bit longer than the last, in a circuit; enough to keep a solver busy."""
    names = [f"o{index}" for index in range(ops)]
    nodes = [
        Node(
            name=name,
            uses=(use("x", cycles + 3 * index), use("y", cycles, offset=cycles)),
            value=in_registers(8 + index),
            handoff=cycles,
        )
        for index, name in enumerate(names)
    ]
    deps = [Dep(tail=tail, head=head, blocking=True) for tail, head in zip(names, names[2:], strict=False)]
    return problem(nodes, deps, registers=Registers(per_thread=64, per_sm=65536), groups=Groups(max=3, max_warps=12))


def test_what_is_too_large_for_good_is_said_at_once() -> None:
    # An accumulator of 40 registers beside 6 of overhead in threads that may have 40: no interval helps.
    tiny = problem(
        [Node(name="a", latency=2, value=in_registers(40, alias="acc"))],
        [Dep(tail="a", head="a", distance=1)],
        registers=Registers(per_thread=40, per_sm=65536, overhead_per_thread=6),
    )
    result = searched(tiny)
    assert result.status == "infeasible"
    assert result.attempts == ()
    assert result.bound_reason == "; ".join(result.bounds.impossible) != ""


def test_a_value_too_large_for_a_thread_is_refuted() -> None:
    tiny = problem(
        [Node(name="a", latency=2, value=in_registers(40))],
        registers=Registers(per_thread=40, per_sm=65536, overhead_per_thread=6),
    )
    result = searched(tiny)
    assert result.status == "infeasible"
    assert result.refuted[-1].families == ("register_limit",)


def test_what_no_interval_allows_is_refuted_up_to_the_serial_one() -> None:
    # a's value may not cross, and a and b may not share a group.
    tiny = problem(
        [Node(name="a", latency=2, value=in_registers(8)), Node(name="b")],
        [Dep(tail="a", head="b")],
        groups=TWO,
        rules=RuleOptions(cross_group=False),
        legality=(LegalPair(rule="tiny_rule", relation="apart", first="a", second="b"),),
    )
    result = searched(tiny)
    assert result.status == "infeasible"
    # The serial interval: 2 cycles of a, 1 of b, 1 for the read.
    assert result.lower_bound_cycles == 4 + 1
    assert result.refuted[-1].families == ("cross_warp_spill", "legality")
    assert result.bound_reason == (
        "1 to 4 cycles refuted: no schedule of at most 3 stages; forced by cross_warp_spill (possible with free "
        "hand-over between groups), legality (possible with lifting the legality rules)"
    )


def test_too_few_stages_are_no_proof_of_more() -> None:
    """One stage: a and b of 2 cycles, and b's result read by a two iterations on: possible at any interval from 4."""
    tiny = problem([Node(name="a", latency=2), Node(name="b", latency=2)], [Dep(tail="a", head="b")])
    for stages, interval in ((1, 4), (2, 2), (4, 1)):
        result = searched(tiny, SearchOptions(max_stages=stages))
        assert (result.status, result.lower_bound_cycles, result.max_stages) == ("optimal", interval, stages)


def test_a_circuit_within_one_iteration_is_the_user_s_mistake() -> None:
    tiny = problem([Node(name="a", latency=1)], [Dep(tail="a", head="a", kind="order", latency=1)])
    with pytest.raises(InputError, match="the circuit a -> a takes 1 cycles and has distance 0"):
        search(tiny, SearchOptions())


@pytest.mark.parametrize(
    "options",
    [SearchOptions(work_limit=0.0), SearchOptions(time_limit_seconds=0.0), SearchOptions(work_limit=1e-6)],
)
def test_no_effort_is_a_limit_and_no_exception(options: SearchOptions) -> None:
    result = searched(crowded(6, 40), options)
    assert result.status in ("limit", "feasible")
    assert result.lower_bound_cycles >= result.bounds.binding.cycles


def test_a_small_effort_ends_in_a_status_with_a_bound() -> None:
    for work in (0.01, 0.1, 0.5):
        result = searched(crowded(8, 40), SearchOptions(work_limit=work, max_stages=2))
        assert result.status in ("limit", "feasible", "optimal")


def test_a_gap_that_is_tolerated_stays() -> None:
    """Five uses of 21 cycles of one unit, 105 in all; three of them at least 30 apart, in a circuit.

    The 9 cycles between two of the three are of no use unless they are widened to 21 for d or e; that can be done
    for two of the three gaps: 5 x 21 + 9 = 114. To refute 105 to 113, slots must be finer than 12 cycles.
    """
    tiny = problem(
        [Node(name=name, uses=(use("x", 21),), latency=30) for name in "abcde"],
        [Dep(tail="a", head="b"), Dep(tail="b", head="c"), Dep(tail="c", head="a", distance=1)],
        registers=Registers(per_thread=255, per_sm=65536),
    )
    coarse = searched(tiny, SearchOptions(resolution=7, gap=10.0))
    assert (coarse.status, coarse.lower_bound_cycles, coarse.slot_cycles) == ("feasible", 105, 12)
    assert coarse.schedule is not None
    assert coarse.schedule.ii_cycles >= 114
    fine = searched(tiny, SearchOptions(resolution=7, gap=0.0))
    assert (fine.status, fine.lower_bound_cycles) == ("optimal", 114)
    assert (fine.refuted[-1].first_cycles, fine.refuted[-1].last_cycles) == (105, 113)


def test_rings_that_find_no_place_leave_a_gap_not_a_false_proof() -> None:
    """Two values of 6 cycles and three places. At 4 cycles 3 instances are live at once, in rings of 2 + 2 copies.

    They would fit as rings of three that take turns (see ``docs/formulation.md``, Depth); so 4 is not refuted.
    """
    tiny = problem(
        [Node(name=name, latency=6, value=in_memory(4)) for name in "ab"],
        memories=(replace(SMEM, capacity_bytes=12),),
    )
    result = searched(tiny)
    assert result.schedule is not None
    assert result.lower_bound_cycles == 4
    assert result.schedule.ii_cycles in (4, 6)


def without_seconds(result: SearchResult) -> dict[str, object]:
    record = {item.name: getattr(result, item.name) for item in fields(result) if item.name != "seconds"}
    record["attempts"] = tuple(replace(attempt, seconds=0.0) for attempt in result.attempts)
    return record


@pytest.mark.parametrize("resolution", [4, 34])
def test_the_same_search_twice_gives_the_same_result(resolution: int) -> None:
    options = SearchOptions(resolution=resolution, max_stages=2, work_limit=2.0)
    one, other = (searched(crowded(4, 20), options) for _ in range(2))
    assert without_seconds(one) == without_seconds(other)


def test_a_search_reports_its_solver_calls_as_it_goes() -> None:
    lines: list[str] = []
    result = search(crowded(3, 2), SearchOptions(max_stages=2), lines.append)
    assert len(lines) >= len(result.attempts) > 0
    assert all(attempt.slots > 0 and attempt.slot_cycles > 0 for attempt in result.attempts)
    assert any(line.startswith("find: ") for line in lines)


def test_what_made_the_result_is_in_it() -> None:
    options = SearchOptions(seed=3)
    result = searched(problem([Node(name="a", uses=(use("x", 2),))]), options)
    assert (result.options, result.solver, result.slot_cycles) == (options, "OR-Tools CP-SAT", 1)
    first = result.attempts[0]
    assert (first.purpose, first.outcome) == ("iterative", "feasible")


def test_room_left_on_purpose_refutes_nothing() -> None:
    # The value fills SMEM; the question for any schedule leaves a sixth of it free and finds none. Before, that
    # counted as a refutation of the interval where a slot is a cycle.
    full = problem(
        [Node(name="a", latency=2, value=in_memory(24)), Node(name="b")],
        [Dep(tail="a", head="b")],
        memories=(Memory(name="smem", capacity_bytes=24, alignment_bytes=4),),
    )
    asker = Asker(full, SearchOptions(), 3, lambda _: None)
    assert asker.find_any(4, 1, 1, 0).schedule is None
    assert not asker.refuted(4, 1)


def test_the_work_and_the_limit_are_part_of_the_result() -> None:
    proved = searched(crowded(2, 1))
    assert proved.status == "optimal"
    assert (proved.limit, proved.work > 0) == ("none", True)
    ended = searched(crowded(12, 5), SearchOptions(work_limit=0.01))
    assert ended.status in ("feasible", "limit")
    assert ended.limit == "work"
    assert ended.work >= 0.01
    late = searched(crowded(12, 5), SearchOptions(time_limit_seconds=0.01))
    assert late.status in ("feasible", "limit")
    assert late.limit == "time"
