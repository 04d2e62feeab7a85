"""Deadlocks name the cycle of waits; waits and arrivals that may meet the wrong phase are hazards."""

from dataclasses import replace

import pytest
import warp_programs as warp

from twillgpu.emulate.symbolic_check import check_trips
from twillgpu.lower.record import Arrive, ExpectBytes, Fence, Instruction, Iteration, Wait, WarpProgram


def _both_first() -> WarpProgram:
    """Two groups, each of which waits for the other before it arrives."""
    one = warp.group("one", [warp.wait("b"), warp.execute("x"), warp.arrive("a")])
    two = warp.group("two", [warp.wait("a"), warp.execute("y"), warp.arrive("b")])
    return warp.program([one, two], [], [warp.barrier("a", 1), warp.barrier("b", 1, serves=("y -> x (data, 0)",))])


def test_a_cycle_of_waits_is_named() -> None:
    deadlock = check_trips(_both_first(), (2,)).deadlock
    assert deadlock is not None
    assert deadlock.cycle == ("one", "two")
    assert str(deadlock).splitlines() == [
        "deadlock: one -> two -> one",
        (
            "  group one waits: wait b (iteration 0, group one) for phase 0 of b, which serves y -> x (data, 0); "
            "phase 0 has "
            "0 of 1 arrivals; two would arrive with arrive b (iteration 0, group two)"
        ),
        (
            "  group two waits: wait a (iteration 0, group two) for phase 0 of a; phase 0 has 0 of 1 arrivals; one "
            "would "
            "arrive with arrive a (iteration 0, group one)"
        ),
    ]


def test_a_ring_that_is_one_copy_too_shallow_deadlocks() -> None:
    deadlock = check_trips(warp.staged(1), (3,)).deadlock
    assert deadlock is not None
    assert deadlock.cycle == ("producer", "mma")


def test_one_trip_hides_the_shallow_ring() -> None:
    assert check_trips(warp.staged(1), (1,)).sound


@pytest.mark.parametrize("arrivals", [1, 3])
def test_two_consumers_need_two_arrivals(arrivals: int) -> None:
    good = warp.producer_consumer(2, consumers=2)
    barriers = tuple(replace(one, arrivals=arrivals) if one.name == "empty" else one for one in good.barriers)
    finding = check_trips(replace(good, barriers=barriers), (6,))
    assert not finding.sound
    if arrivals == 3:
        assert finding.deadlock is not None
        assert "phase 0 has 2 of 3 arrivals; nobody arrives any more" not in str(finding.deadlock)
    else:
        assert any("is counted in phase" in str(hazard) for hazard in finding.hazards)


def test_a_lost_arrival_says_that_nobody_is_left() -> None:
    program = warp.edit(warp.producer_consumer(1), "consumer0", warp.without(Arrive))
    deadlock = check_trips(program, (2,)).deadlock
    assert deadlock is not None
    assert deadlock.cycle == ()
    assert str(deadlock).startswith("deadlock: no arrival is left\n  group producer waits: wait empty (iteration 1")
    assert "phase 0 has 0 of 1 arrivals; nobody arrives any more" in str(deadlock)


def test_an_arrival_twice_is_counted_in_a_later_phase() -> None:
    program = warp.edit(warp.producer_consumer(2), "consumer0", lambda rest: [*rest, rest[-1]])
    messages = [str(hazard) for hazard in check_trips(program, (5,)).hazards]
    assert any("is counted in phase 1: an arrival is too many before it" in message for message in messages)


def test_an_arrival_while_bytes_are_awaited_is_one_too_many() -> None:
    def twice(rest: list[Instruction]) -> list[Instruction]:
        return [rest[0], rest[1], next(one for one in rest if isinstance(one, ExpectBytes)), rest[2]]

    program = warp.edit(warp.producer_consumer(2), "producer", twice)
    hazards = [str(hazard) for hazard in check_trips(program, (3,)).hazards]
    start = "arrivals: expect full (iteration 0, group producer) arrives at full[0], which has had all its 1 arrivals"
    assert any(message.startswith(start) for message in hazards)


def _observer(wait: Wait) -> WarpProgram:
    """A producer and a consumer, and a third group that only watches the full barrier."""
    good = warp.producer_consumer(1)
    watcher = warp.group("watcher", [wait, warp.execute("watch")])
    return replace(good, groups=(*good.groups, watcher))


def test_a_waiter_that_nobody_waits_for_may_lag_a_phase_behind() -> None:
    finding = check_trips(_observer(warp.wait("full")), (4,))
    assert finding.deadlock is None
    assert [hazard.kind for hazard in finding.hazards] == ["phase lag"]
    assert str(finding.hazards[0]) == (
        "phase lag: wait full (iteration 0, group watcher) for phase 0 of full may still be waiting when phase 1 is "
        "complete and phase 2 begins, and would block: no arrival of phase 1 comes after it"
    )


def test_a_wait_that_skips_a_phase_may_pass_at_once() -> None:
    last = Iteration(anchor="last", offset=-1)
    good = warp.producer_consumer(1)
    watcher = warp.group("watcher", [], after=[warp.wait("full", at=last, least=1)])
    finding = check_trips(replace(good, groups=(*good.groups, watcher)), (2,))
    start = (
        "early pass: wait full (iteration 1, group watcher) for phase 1 of full can run before phase 0 is complete"
    )
    assert any(str(hazard).startswith(start) for hazard in finding.hazards)


def test_a_lag_beyond_the_copies_is_no_phase_of_a_fresh_barrier() -> None:
    program = warp.edit(warp.producer_consumer(1), "producer", lambda rest: [warp.wait("empty", lag=2), *rest[1:]])
    assert not check_trips(program, (4,)).sound


def test_phases_run_on_across_tiles() -> None:
    """tile-ai/tilelang 2674: outer loop of 3, inner loop of 5, depth 2."""
    good = warp.producer_consumer(2)
    assert check_trips(good, (5, 5, 5)).sound
    drifting = warp.edit(
        good, "consumer0", lambda rest: [Wait(use=warp.use("full", warp.per_iteration(lag=0))), *rest[1:]]
    )
    assert check_trips(drifting, (5, 5, 5)).sound


def test_a_copy_still_under_way_when_the_block_ends_is_a_hazard() -> None:
    store = warp.group(
        "out", [], after=[warp.execute("store", "tma_store", reads=[warp.access("o", warp.per_tile())], at=None)]
    )
    fill = replace(store, after=(warp.execute("fill", writes=[warp.access("o", warp.per_tile())], at=None),
                                 Fence(kind="async_shared"), *store.after))  # fmt: skip
    program = warp.program([fill], [warp.ring("o", 1, scope="tile")], [])
    assert [str(hazard) for hazard in check_trips(program, (1,)).hazards] == [
        "exit: store (group out) may still run when the block ends: its group does not drain it before"
    ]
