"""The lines on fixed columns, and the remark where they are fixed."""

from __future__ import annotations

from dataclasses import replace

from handmade import PROBLEM, RESULT, RUN

from twillgpu.costs.columns import with_fixed_columns
from twillgpu.costs.record import Bounds, PricedValue, PriceOptions, Problem
from twillgpu.schedule.record import SearchResult
from twillgpu.view.columns import columns_remark, columns_section
from twillgpu.view.report import report


def stored(exponential: int) -> Problem:
    """Return the hand-made problem with ``p`` in TMEM: 60 + exponential + 60 cycles through the columns of qk."""
    load, qk, p, pv = PROBLEM.ops
    value = PricedValue(space="tmem", bytes=32768, registers_per_thread=0, alias=None)
    first, second, third = PROBLEM.edges
    return replace(
        PROBLEM,
        ops=(load, qk, replace(p, value=value), pv),
        edges=(
            first,
            replace(second, latency_cycles=60),
            replace(third, latency_cycles=exponential, read_cycles=60),
        ),
    )


def pinned(problem: Problem) -> Problem:
    """Return the problem with an accumulator in TMEM that is alive all the time."""
    *others, pv = problem.ops
    carried = replace(problem.edges[2], tail="pv", head="pv", distance=1)
    value = PricedValue(space="tmem", bytes=65536, registers_per_thread=0, alias="pv")
    return replace(problem, ops=(*others, replace(pv, value=value)), edges=(*problem.edges, carried))


def said(problem: Problem, result: SearchResult) -> str:
    return " ".join(line.strip() for line in columns_section(problem, result))


def test_the_cost_of_fixed_columns_stands_beside_the_optimum() -> None:
    lines = columns_section(stored(90), RESULT)
    assert lines == [
        "",
        "Fixed columns (P over S)",
        "  with p in the columns of qk (--columns fixed), I would be at least 210 cycles",
        "  instead of 100 (recurrence: qk -> p -> pv -> qk: 210 cycles)",
    ]
    assert "\n".join(lines) in report(replace(RUN, problem=stored(90)))


def test_fixed_columns_without_a_schedule() -> None:
    assert "I would be at least 210 cycles (recurrence" in said(stored(90), replace(RESULT, schedule=None))


def test_fixed_columns_that_leave_the_bounds() -> None:
    bounds = Bounds(bounds=(replace(RESULT.bounds.bounds[0], cycles=210),))
    assert said(stored(90), replace(RESULT, bounds=bounds)).endswith(
        "with p in the columns of qk (--columns fixed), the bounds would stay: I would be at least 210 cycles"
    )


def test_fixed_columns_that_are_impossible() -> None:
    fixed = dict(stored(90).fixed_bytes) | {"tmem": 262144}
    assert "(--columns fixed), there would be no schedule: tmem: " in said(
        replace(pinned(stored(90)), fixed_bytes=tuple(fixed.items())), RESULT
    )


def test_nothing_to_fix_nothing_said() -> None:
    assert columns_section(PROBLEM, RESULT) == []


def test_what_is_fixed_is_a_remark() -> None:
    fixed = with_fixed_columns(stored(90))
    assert columns_remark(fixed) == "p in the columns of qk (--columns fixed)"
    assert columns_section(fixed, RESULT) == []
    text = report(replace(RUN, problem=fixed, limits=PriceOptions(columns="fixed")))
    assert "  - p in the columns of qk (--columns fixed)\n" in text
    assert "Fixed columns" not in text


def test_a_kernel_without_such_operands_is_told_so() -> None:
    assert columns_remark(PROBLEM) == (
        "--columns fixed changes nothing: no tensor core operand is stored over a product of its iteration"
    )
