"""Cost normalisation: ratios kept where they can be, the largest sum among equals, and collapse said."""

from __future__ import annotations

import pytest

from problems import Dep, Node, problem, use
from twillgpu.errors import InputError
from twillgpu.schedule.paper import integer
from twillgpu.schedule.paper.normalise import Normalised, costs_of, in_units, normalised


def small(costs: tuple[int, ...], units: int, *, largest: bool) -> tuple[int, ...]:
    return tuple(cost for _, cost in normalised(costs, units, largest=largest, seconds=60).costs)


def test_the_second_program_asks_for_the_largest_sum() -> None:
    # 96 : 192 : 512 = 3 : 6 : 16, of sum 25; any multiple has F = 0, and twice that is the most within 60.
    found = normalised((96, 192, 512), 60, largest=True, seconds=60)
    assert found.costs == ((96, 6), (192, 12), (512, 32))
    assert (found.deviation, found.cycles_per_unit, found.worst_ratio, found.zeros) == (0, 16, 1, 0)


def test_literally_any_minimum_will_do() -> None:
    one, two, three = small((96, 192, 512), 60, largest=False)
    assert one * 2 == two
    assert one * 16 == three * 3


def test_no_unit_is_finer_than_a_cycle() -> None:
    assert small((2, 3), 300, largest=True) == (2, 3)
    # Within 50 only a half of 32 and 64 fits.
    assert small((32, 64), 50, largest=True) == (16, 32)


def test_costs_that_collapse_are_reported() -> None:
    # C' = (0, 1) has |1 * 1 - 1000 * 0| = 1; any C'[0] >= 1 needs C'[1] near 1000, beyond U.
    found = normalised((1, 1000), 10, largest=True, seconds=60)
    assert found.costs == ((1, 0), (1000, 1))
    assert found.bad
    assert found.remark() == (
        "cost normalisation: sum of costs 1, 1001.0 cycles per unit on average; 1 of 2 costs became zero; ratios of "
        "the others are off by a factor of at most 1.00; F = 1; this is coarse: raise --units"
    )


def test_a_ratio_that_is_off_is_reported() -> None:
    # 100 : 160 in units of 100 is 1 : 1 or, better, 1 : 2.
    found = Normalised(costs=((100, 1), (160, 1)), deviation=60)
    assert (found.worst_ratio, found.bad) == (1.6, True)
    assert not Normalised(costs=((100, 1), (160, 2)), deviation=40).bad


def test_costs_are_distinct_and_positive() -> None:
    tiny = problem(
        [Node(name="a", uses=(use(cycles=3),)), Node(name="b", uses=(use(cycles=3),), latency=7), Node(name="c")],
        [Dep(tail="a", head="b"), Dep(tail="b", head="c"), Dep(tail="c", head="a", distance=1)],
    )
    assert costs_of(tiny) == (3, 7)


def test_every_time_of_a_problem_is_in_units() -> None:
    tiny = problem(
        [Node(name="a", uses=(use(cycles=100), use("mma", 10)), issue=60, latency=200, handoff=99), Node(name="b")],
        [Dep(tail="a", head="b")],
    )
    found = Normalised(costs=((10, 0), (100, 2), (200, 4)), deviation=0)
    one = in_units(tiny, found.units)
    # 310 cycles are 6 units: times that are no cost are rounded at 51.7 cycles.
    assert [(run.unit, run.cycles) for run in one.ops[0].uses] == [("alu", 2)]
    assert (one.ops[0].issue_cycles, one.ops[0].latency_cycles, one.ops[0].handoff_cycles) == (1, 4, 2)
    assert (one.edges[0].latency_cycles, one.edges[0].handoff_cycles) == (4, 2)


def test_a_missing_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(integer, "import_module", missing)
    with pytest.raises(InputError, match="the package pyscipopt is missing; pip install 'twillgpu\\[paper\\]'"):
        normalised((1000, 2000), 10, largest=False, seconds=60)
