"""From a recurring state to every trip count and every sequence of tiles."""

from dataclasses import replace

import pytest
import warp_programs as warp
from mutants import mutants

from twillgpu.emulate.periodic import prove
from twillgpu.emulate.symbolic_check import check_trips
from twillgpu.lower.record import Arrive, Fence, Iteration, Wait, WarpProgram

GOOD = {
    "ring of depth 1": (warp.producer_consumer(1), 1),
    "ring of depth 3": (warp.producer_consumer(3), 3),
    "two consumers": (warp.producer_consumer(2, consumers=2), 2),
    "staged": (warp.staged(2), 2),
    "staged, deeper ring": (warp.staged(3), 3),
    "handover": (warp.handover(2), 2),
    "aliased": (warp.aliased(), 1),
}


@pytest.mark.parametrize(("program", "period"), GOOD.values(), ids=GOOD.keys())
def test_sound_programs_are_sound_for_every_sequence_of_tiles(program: WarpProgram, period: int) -> None:
    found = prove(program)
    assert found.holds, found.reason
    assert found.period == period
    assert found.reason.startswith(f"the state of the loop recurs every {period} iterations, at {found.trips} trips")
    assert "between tiles there are" in found.reason


def test_a_fault_that_needs_many_tiles_is_found() -> None:
    """A phase counted from the loop's own counter is right for the first tile only (tile-ai/tilelang 2674)."""
    good = warp.producer_consumer(2)
    again = Iteration(anchor="last", offset=-1)
    program = warp.edit(good, "consumer0", lambda _: [warp.arrive("empty", at=again, least=5)], "after")
    assert check_trips(program, (4,)).sound
    found = prove(program)
    assert not found.holds
    assert found.failure is not None
    assert found.failure.trips[-1] == 5
    assert found.reason.startswith("not sound for trips ")


@pytest.mark.parametrize("kind", [Wait, Arrive, Fence])
def test_broken_programs_are_not_proved(kind: type) -> None:
    found = prove(warp.edit(warp.handover(2), "softmax", warp.without(kind)))
    assert not found.holds
    assert found.failure is not None


def test_a_program_that_is_not_persistent_has_one_tile() -> None:
    found = prove(replace(warp.staged(2), persistent=False))
    assert found.holds
    assert found.states == 1
    assert "between tiles" not in found.reason


def test_a_group_that_nothing_holds_back_is_found_in_the_rounds_of_the_loop() -> None:
    free = warp.group("free", [warp.arrive("a")])
    slow = warp.group("slow", [warp.wait("a")])
    found = prove(warp.program([free, slow], [], [warp.barrier("a", 1)]))
    assert found.failure is not None
    assert {hazard.kind for hazard in found.failure.hazards} == {"phase lag"}


def test_what_is_proved_holds_for_trip_counts_beyond_those_run() -> None:
    for name, mutant in mutants(warp.staged(2)):
        found = prove(mutant)
        sequences = [(0,), (1,), (2,), (3,), (11,), (1, 12, 0, 13), (2, 1, 1, 1, 9)]
        sound = all(check_trips(mutant, trips).sound for trips in sequences)
        assert found.holds == sound, f"{name}: {found.reason}"


def test_a_group_far_behind_a_long_pipeline_recurs_too() -> None:
    """The second group takes up an iteration that the first one ends seven rounds after it began."""
    first, late = Iteration(anchor="first", offset=0), Iteration(anchor="loop", offset=-7)
    ends = [Iteration(anchor="last", offset=offset) for offset in range(-7, 0)]
    one = warp.group(
        "one",
        [warp.execute("x"), warp.wait("a", at=late, lag=2), warp.arrive("b", at=late)],
        stages=8,
        prologue=[warp.execute("x", at=replace(first, offset=offset), least=offset + 1) for offset in range(7)],
        epilogue=[
            step
            for at in ends
            for step in (warp.wait("a", at=at, lag=2, least=-at.offset), warp.arrive("b", at=at, least=-at.offset))
        ],
    )
    two = warp.group("two", [warp.wait("b"), warp.execute("y"), warp.arrive("a")])
    found = prove(warp.program([one, two], [], [warp.barrier("a", 2), warp.barrier("b", 2)]))
    assert found.holds, found.reason


def test_a_limit_of_steps_is_said() -> None:
    found = prove(warp.staged(3), steps=500)
    assert not found.holds
    assert found.failure is None
    assert found.reason == "no recurrence within the limit of steps"


def test_a_part_that_counts_from_the_other_end_is_refused() -> None:
    late = Iteration(anchor="last", offset=-1)
    program = warp.edit(warp.staged(2), "mma", lambda rest: [warp.wait("full", at=late), *rest], "prologue")
    assert prove(program).reason == "group mma counts Wait from another end of the loop than its part"
