"""The report: what is run by default, what is said to be proved, and what stops the rest."""

from dataclasses import replace

import number_programs as numbers
import pytest
import warp_programs as warp

from twillgpu.emulate.check import EmulationOptions, default_trips, emulate
from twillgpu.emulate.numeric_check import run_sample, sample
from twillgpu.emulate.schedulers import Chance
from twillgpu.emulate.text import report_text
from twillgpu.emulate.unroll import Unroller
from twillgpu.lower.record import Arrive, Iteration, Wait


def test_a_sound_program_is_proved_and_runs_like_the_reference() -> None:
    steps: list[str] = []
    report = emulate(numbers.squares(2), EmulationOptions(explore=True, seeds=1), steps.append)
    assert (report.status, report.races, report.hazards, report.deadlock, report.differences) == (
        "sound",
        (),
        (),
        None,
        (),
    )
    assert report.checked == ((0,), (1,), (2,), (3,), (6,), (6, 0, 3, 1))
    assert report.runs == 5 + 1 + 6
    assert report.explored > 0
    assert [text.split(":")[0] for text in report.proved] == [
        "for trips 0; 1; 2; 3; 6; 6, 0, 3, 1",
        "for every sequence of tiles",
        "for 3 trips",
        "12 runs on random numbers give exactly what the reference gives",
    ]
    assert steps[0] == "without numbers: 6 blocks"
    assert steps[-1].startswith("on numbers: trips 6, 0, 3, 1, ")


def test_trip_counts_by_default_go_from_none_to_beyond_every_ring() -> None:
    assert default_trips(warp.staged(3)) == (0, 1, 2, 3, 8)
    assert default_trips(warp.producer_consumer(1)) == (0, 1, 2, 3)


def test_an_unsafe_program_is_not_run_on_numbers() -> None:
    report = emulate(warp.edit(numbers.squares(2), "mma", warp.without(Wait)))
    assert report.status == "unsafe"
    assert report.races
    assert report.runs == 0
    assert report.proved == ()
    assert report.notes == ("not run on numbers: the program is not sound without them",)


def test_a_fault_beyond_the_trip_counts_asked_for_is_found_by_the_induction() -> None:
    late = Iteration(anchor="last", offset=-1)
    program = warp.edit(
        warp.producer_consumer(2), "consumer0", lambda _: [warp.arrive("empty", at=late, least=5)], "after"
    )
    report = emulate(program, EmulationOptions(trips=(3,), tiles=1, numbers=False))
    assert report.status == "unsafe"
    assert report.checked[-1][-1] == 5


def test_a_limit_of_the_exploration_is_a_status() -> None:
    report = emulate(warp.staged(3), EmulationOptions(trips=(4,), explore=True, states=10, numbers=False))
    assert report.status == "limit"
    assert "exploration of 3 trips ended at the limit of 10 states" in report.notes


def test_outputs_that_nobody_wrote_are_differences() -> None:
    good = numbers.squares(2)
    groups = tuple(replace(group, after=()) if group.name == "mma" else group for group in good.groups)
    unroller = Unroller(replace(good, groups=groups))
    outcome = run_sample(unroller, sample(good.kernel, (2,)), Chance(0))
    assert {difference.output for difference in outcome.differences} == {"c_desc"}
    assert str(outcome.differences[0]).startswith("c_desc differs from the reference in 256 elements (largest error ")


def test_outputs_that_nobody_writes_are_found_without_numbers() -> None:
    """Before, only ops of the loop were looked for, and only those that some instruction executes."""
    good = numbers.squares(2)
    groups = tuple(replace(group, after=()) if group.name == "mma" else group for group in good.groups)
    report = emulate(replace(good, groups=groups), EmulationOptions(trips=(2,), tiles=1, seeds=1))
    (hazard,) = [hazard for hazard in report.hazards if hazard.kind == "coverage"]
    assert "is not executed where there are 2 iterations" in hazard.message
    assert report.runs == 0


def test_the_text_of_a_report_wraps_and_counts() -> None:
    report = emulate(warp.edit(warp.producer_consumer(2), "consumer0", warp.without(Arrive)))
    text = report_text("handmade on toy", report, width=80)
    assert text.startswith(
        "handmade on toy: unsafe\n\nDeadlock\n- deadlock: no arrival is left\n  - group producer waits:"
    )
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "Notes\n- not run on numbers" in text


@pytest.mark.parametrize("tiles", [1, 3])
def test_a_block_of_a_persistent_program_has_several_tiles(tiles: int) -> None:
    report = emulate(warp.staged(2), EmulationOptions(trips=(1, 4), tiles=tiles, numbers=False))
    assert report.checked == (((1,), (4,)) if tiles == 1 else ((1,), (4,), (4, 1, 4)))
