"""Races are found from one run, whatever order that run happened to take, and say what is missing."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
import warp_programs as warp

from twillgpu.emulate.symbolic_check import check_trips
from twillgpu.lower.record import (
    Arrive,
    Commit,
    Drain,
    ExpectBytes,
    Fence,
    Instruction,
    Iteration,
    Wait,
    WarpProgram,
)

GOOD: dict[str, WarpProgram] = {
    "ring of depth 1": warp.producer_consumer(1),
    "ring of depth 2": warp.producer_consumer(2),
    "ring of depth 3": warp.producer_consumer(3),
    "two consumers": warp.producer_consumer(2, consumers=2),
    "product drained an iteration later": warp.staged(2),
    "the same, deeper ring": warp.staged(3),
    "value handed to a tensor core": warp.handover(1),
    "the same, depth 2": warp.handover(2),
    "S and P in the same columns": warp.aliased(),
}
TRIPS = [(0,), (1,), (2,), (3,), (4,), (9,), (3, 5), (1, 0, 2, 7, 3)]


@pytest.mark.parametrize("trips", TRIPS, ids=str)
@pytest.mark.parametrize("program", GOOD.values(), ids=GOOD.keys())
def test_sound_programs_pass_for_all_trip_counts(program: WarpProgram, trips: Sequence[int]) -> None:
    finding = check_trips(program, trips)
    assert finding.sound, "\n".join(map(str, (*finding.races, finding.deadlock, *finding.hazards)))


def _moved(kind: type, places: int) -> Callable[[list[Instruction]], list[Instruction]]:
    def change(instructions: list[Instruction]) -> list[Instruction]:
        place = next(index for index, one in enumerate(instructions) if isinstance(one, kind))
        one = instructions.pop(place)
        instructions.insert(place + places, one)
        return instructions

    return change


def _deeper(subject: WarpProgram, lag: int) -> WarpProgram:
    """Return the program whose producer runs further ahead than the ring allows."""
    return warp.edit(subject, "producer", lambda rest: [warp.wait("empty", lag=lag), *rest[1:]])


BROKEN: dict[str, tuple[WarpProgram, str, str]] = {
    "consumer does not wait": (
        warp.edit(warp.producer_consumer(2), "consumer0", warp.without(Wait)),
        "order",
        (
            "sum0 reads tile (iteration 0, group consumer0; kernel.py:4) against load writes tile (iteration 0, "
            "group "
            "producer; kernel.py:4); no wait for the barrier that counts its bytes comes in between"
        ),
    ),
    "producer does not wait": (
        warp.edit(warp.producer_consumer(2), "producer", warp.without(Wait)),
        "order",
        "sum0 reads tile (iteration 0, group consumer0; kernel.py:4) against load writes tile (iteration ",
    ),
    "slot released before it is read": (
        warp.edit(warp.producer_consumer(1), "consumer0", _moved(Arrive, -1)),
        "order",
        "load writes tile (iteration 1, group producer; kernel.py:4) against sum0 reads tile (iteration 0,",
    ),
    "slot released before the product is drained": (
        warp.edit(warp.staged(2), "mma", _moved(Arrive, -1)),
        "order",
        (
            "load writes tile (iteration 2, group producer; kernel.py:4) against dot reads tile (iteration 0, "
            "group mma; "
            "kernel.py:3); its group does not drain it before"
        ),
    ),
    "accumulator used before the drain": (
        warp.edit(warp.staged(3), "mma", lambda rest: [*rest[:-3], rest[-1], *rest[-3:-1]]),
        "drain",
        (
            "use uses dot (iteration 0, group mma; kernel.py:3) against dot writes dot (iteration 0, group mma; "
            "kernel.py:3); wgmma is not drained in between"
        ),
    ),
    "drain leaves one product too many": (
        warp.edit(
            warp.staged(3),
            "mma",
            lambda rest: [replace(one, pending=2) if isinstance(one, Drain) else one for one in rest],
        ),
        "drain",
        "wgmma is not drained in between",
    ),
    "no fence before the tensor core reads": (
        warp.edit(warp.handover(), "softmax", warp.without(Fence)),
        "fence",
        (
            "pv reads p (iteration 0, group mma; kernel.py:2) against put p writes p (iteration 0, group softmax); "
            "group "
            "softmax has no Fence(async_shared) after the write"
        ),
    ),
    "fence after the arrival": (
        warp.edit(warp.handover(), "softmax", _moved(Fence, 1)),
        "fence",
        "group softmax has no Fence(async_shared) after the write",
    ),
    "TMEM store published before it completed": (
        warp.edit(warp.aliased(), "softmax", warp.without(Fence)),
        "fence",
        (
            "pv reads p (iteration 0, group mma; kernel.py:2) against store_p writes p (iteration 0, group softmax; "
            "kernel.py:7); group softmax has no Fence(tmem_store) after the write"
        ),
    ),
    "no anti edge between S and P": (
        warp.edit(warp.aliased(), "softmax", lambda rest: [rest[0], *rest[2:], rest[1]]),
        "stale",
        "it is to find s instance 0, and finds p instance 0",
    ),
    "software arrives for the tensor core": (
        warp.edit(
            warp.handover(),
            "mma",
            lambda rest: [Arrive(use=one.use) if isinstance(one, Commit) else one for one in rest],
        ),
        "order",
        (
            "put p writes p (iteration 1, group softmax) against pv reads p (iteration 0, group mma; kernel.py:2); "
            "no wait "
            "for a barrier that it was committed to comes in between"
        ),
    ),
    "wrong slot": (
        warp.edit(
            warp.producer_consumer(3),
            "consumer0",
            lambda rest: [
                rest[0],
                warp.execute("sum0", reads=[warp.access("tile", warp.per_iteration(lag=1))]),
                rest[2],
            ],
        ),
        "poison",
        "sum0 reads tile (iteration 0, group consumer0; kernel.py:4); nobody has written there before",
    ),
    "copy without a barrier": (
        warp.edit(
            warp.producer_consumer(2),
            "producer",
            lambda rest: [rest[0], Arrive(use=warp.use("full")), warp.execute("load", "tma", writes=["tile"])],
        ),
        "order",
        "no wait for the barrier that counts its bytes comes in between",
    ),
    "accumulator read before it is complete": (
        warp.edit(warp.handover(), "out", warp.without(Wait), "after"),
        "order",
        "store reads acc (group out; kernel.py:5) against pv writes acc",
    ),
    "accumulator of the next tile begun too early": (
        warp.edit(warp.handover(), "mma", warp.without(Wait), "before"),
        "order",
        (
            "pv writes acc (iteration 0, tile 1, group mma; kernel.py:2) against store reads acc (group out; "
            "kernel.py:5)"
        ),
    ),
}


@pytest.mark.parametrize(("program", "kind", "message"), BROKEN.values(), ids=BROKEN.keys())
def test_each_fault_is_reported_with_both_accesses(program: WarpProgram, kind: str, message: str) -> None:
    finding = check_trips(program, (5, 4))
    assert kind in {race.kind for race in finding.races}
    assert any(message in str(race) for race in finding.races), "\n".join(map(str, finding.races))


def test_a_read_of_bytes_that_nobody_wrote_is_poison() -> None:
    program = warp.edit(warp.producer_consumer(1), "producer", lambda rest: [rest[0], warp.arrive("full")])
    finding = check_trips(program, (2,))
    assert str(finding.races[0]) == (
        "poison race in smem bytes 0..8191 (tile instance 0): sum0 reads tile (iteration 0, group consumer0; "
        "kernel.py:4); nobody has written there before"
    )


def test_the_same_race_in_later_iterations_only_counts() -> None:
    program = warp.edit(warp.producer_consumer(2), "consumer0", warp.without(Wait))
    races = check_trips(program, (6,)).races
    assert [race.count for race in races if "sum0 reads" in str(race.second)] == [6]


def test_expected_bytes_that_never_come_block_the_reader() -> None:
    program = warp.edit(
        warp.producer_consumer(2),
        "producer",
        lambda rest: [replace(one, bytes=100) if isinstance(one, ExpectBytes) else one for one in rest],
    )
    deadlock = check_trips(program, (3,)).deadlock
    assert deadlock is not None
    assert "and 8092 bytes too many" in str(deadlock)


def test_an_unguarded_prologue_runs_an_iteration_that_is_not_there() -> None:
    first = Iteration(anchor="first", offset=0)
    program = warp.edit(
        warp.staged(2), "mma", lambda _: [warp.execute("dot", "wgmma", reads=["tile"], at=first)], "prologue"
    )
    hazards = check_trips(program, (0,)).hazards
    assert "coverage: dot is executed for iteration 0 where there are 0" in map(str, hazards)
