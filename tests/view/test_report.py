"""The report as a whole (golden text), and what changes with the status."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from handmade import RESULT, RUN

from twillgpu.schedule.record import Refuted
from twillgpu.view.claim import refuted_section, verdict
from twillgpu.view.report import report


def test_report_of_a_kernel(golden: Callable[[str], None]) -> None:
    golden(report(RUN))


def test_report_of_an_infeasible_graph(golden: Callable[[str], None]) -> None:
    refuted = replace(RESULT.refuted[1], reason="the ring of load needs 2 copies of 4,096 bytes")
    result = replace(RESULT, status="infeasible", schedule=None, refuted=(refuted,), objective=())
    golden(report(replace(RUN, kernel=None, source="hand.json", remarks=(), result=result)))


def test_a_report_of_short_names_fits_80_columns() -> None:
    assert max(len(line) for line in report(RUN).splitlines()) <= 80


def test_a_report_has_no_control_characters() -> None:
    assert report(RUN).replace("\n", "").isprintable()


@pytest.mark.parametrize(
    ("status", "lower_bound", "text"),
    [
        ("optimal", 100, "I = 100 cycles per iteration, optimal: minimum over all schedules of at most 3 stages"),
        (
            "feasible",
            90,
            "I = 100 cycles per iteration, not proved optimal: at most 10 cycles (10.0%) above the minimum",
        ),
    ],
)
def test_the_verdict_claims_what_is_proved(status: str, lower_bound: int, text: str) -> None:
    assert verdict(replace(RESULT, status=status, lower_bound_cycles=lower_bound)).startswith(text)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("status", "text"),
    [
        ("infeasible", "infeasible: no schedule of at most 3 stages exists at any interval"),
        (
            "limit",
            "any schedule of at most 3 stages takes 100 cycles or more per iteration",
        ),
    ],
)
def test_the_verdict_without_a_schedule(status: str, text: str) -> None:
    assert verdict(replace(RESULT, status=status, schedule=None)).endswith(text)  # type: ignore[arg-type]


def test_ranges_refuted_for_one_reason_are_one_range() -> None:
    reason = "no schedule of at most 3 stages"
    ranges = [
        Refuted(first_cycles=first, last_cycles=last, reason=reason, families=())
        for first, last in ((100, 104), (105, 107), (109, 109))
    ]
    assert refuted_section(replace(RESULT, refuted=tuple(ranges)))[2:] == [
        f"  I = 100 to 107: {reason}",
        f"  I = 109: {reason}",
    ]


def test_sources_of_several_files_are_printed_in_full() -> None:
    first, *rest = RUN.problem.ops
    problem = replace(RUN.problem, ops=(replace(first, source="other.py:9"), *rest))
    text = report(replace(RUN, problem=problem))
    assert "other.py:9" in text
    assert "kernel.py:4" in text


def test_unlimited_registers_are_a_dash_not_a_zero() -> None:
    text = report(replace(RUN, problem=replace(RUN.problem, registers=None)))
    assert "of 65,536 registers" not in text
    assert "  g1         4            -      -  C p" in text


def test_no_prediction_without_clock_and_sm_count() -> None:
    assert "Prediction" not in report(replace(RUN, machine=replace(RUN.machine, figures=())))
