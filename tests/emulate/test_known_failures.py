"""Failures that users of warp-specialising compilers reported, each as a small program with the right verdict."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
import warp_programs as warp

from twillgpu.emulate.record import Deadlock, Hazard, Race
from twillgpu.emulate.steps import Step, Wait
from twillgpu.emulate.symbolic import SymbolicRun
from twillgpu.emulate.symbolic_check import check_trips
from twillgpu.emulate.unroll import Unroller
from twillgpu.lower.record import Instruction, Iteration, WarpProgram


def _run(unroller: Unroller, scripts: Sequence[Sequence[Step]]) -> tuple[tuple[Race | Hazard, ...], Deadlock | None]:
    run = SymbolicRun(unroller.groups, unroller.barriers)
    run.extend(scripts)
    ended = run.run()
    return (*run.findings.races, *run.findings.hazards), None if ended else run.deadlock()


def _restarted(right: Step, local: Step) -> Step:
    """Return a wait for the parity of ``local`` where ``right`` should be waited for."""
    if isinstance(right, Wait) and isinstance(local, Wait):
        return right._replace(phase=right.phase - ((right.phase ^ local.phase) & 1))
    return right


@pytest.mark.parametrize(("trips", "sound"), [(4, True), (8, True), (5, False), (3, False), (2, False)])
def test_phases_restarted_for_every_tile_are_right_for_multiples_of_twice_the_depth_only(
    trips: int, sound: bool
) -> None:
    """tile-ai/tilelang 2674: parity from the inner loop's counter; depth 2."""
    unroller = Unroller(warp.producer_consumer(2))
    right, local = unroller.scripts((trips,) * 3), unroller.scripts((trips,))
    scripts = [list(map(_restarted, one, two * 3)) for one, two in zip(right, local, strict=True)]
    found, deadlock = _run(unroller, scripts)
    assert (not found and deadlock is None) == sound


@pytest.mark.parametrize("trips", [0, 1])
def test_an_unguarded_prologue_and_epilogue_wait_for_loads_that_are_not_there(trips: int) -> None:
    """tile-ai/tilelang 2566, vllm 26026."""
    program = warp.staged(2)
    assert check_trips(program, (trips,)).sound

    def unguarded(instructions: list[Instruction]) -> list[Instruction]:
        return [replace(one, at_least=0) for one in instructions]

    for part in ("prologue", "epilogue"):
        program = warp.edit(program, "mma", unguarded, part)
    finding = check_trips(program, (trips,))
    assert finding.sound == (trips > 0)
    if not trips:
        assert finding.deadlock is not None


def test_a_phase_waited_for_twice_in_an_iteration() -> None:
    program = warp.edit(
        warp.producer_consumer(1), "consumer0", lambda rest: [rest[0], warp.wait("full", lag=-1), *rest[1:]]
    )
    deadlock = check_trips(program, (4,)).deadlock
    assert deadlock is not None
    assert deadlock.cycle == ("producer", "consumer0")


def test_a_wait_for_one_of_two_kinds_of_producers() -> None:
    """tile-ai/tilelang 2166: copies and plain stores into two buffers."""
    load = warp.group(
        "producer",
        [warp.wait("empty", lag=1), warp.expect("full"), warp.execute("load", "tma", writes=["a"], completes="full")],
    )
    store = warp.group(
        "writer", [warp.wait("empty", lag=1), warp.execute("fill", writes=["b"]), warp.arrive("stored")]
    )
    use: list[Instruction] = [
        warp.wait("full"),
        warp.wait("stored"),
        warp.execute("sum", reads=["a", "b"]),
        warp.arrive("empty"),
    ]
    rings = [warp.ring("a", 1), warp.ring("b", 1, warp.BYTES)]
    barriers = [warp.barrier("full", 1), warp.barrier("stored", 1), warp.barrier("empty", 1)]
    good = warp.program([load, store, warp.group("consumer", use)], rings, barriers)
    assert check_trips(good, (5,)).sound
    bad = warp.edit(good, "consumer", lambda rest: [rest[0], *rest[2:]])
    assert any("sum reads b" in str(race) for race in check_trips(bad, (5,)).races)


def test_parity_of_the_loop_where_the_barrier_changes_every_iteration() -> None:
    """tile-ai/tilelang 2927: four barriers round robin."""
    unroller = Unroller(warp.producer_consumer(4))
    producer, consumer = unroller.scripts((9,))
    wrong = [
        step._replace(phase=step.label.iteration & 1)
        if isinstance(step, Wait) and step.label.iteration is not None
        else step
        for step in consumer
    ]
    found, deadlock = _run(unroller, [producer, wrong])
    assert deadlock is not None or any(finding.kind == "early pass" for finding in found)


def test_a_release_that_comes_after_work_depending_on_the_producer() -> None:
    """tile-ai/tilelang 2567: the consumer holds a slot until the next tile has come."""
    program = warp.edit(
        warp.producer_consumer(1),
        "consumer0",
        lambda rest: [rest[0], rest[1], warp.wait("full", lag=-1), rest[2]],
    )
    deadlock = check_trips(program, (4,)).deadlock
    assert deadlock is not None
    assert deadlock.cycle == ("producer", "consumer0")
    assert "consumer0 would arrive with arrive empty (iteration 0, group consumer0)" in str(deadlock)


def _resident(depth: int) -> WarpProgram:
    """A tile that is read in two stages of one group: two instances are live at once."""
    good = warp.producer_consumer(depth)
    before = Iteration(anchor="loop", offset=-1)
    first, last = Iteration(anchor="first", offset=0), Iteration(anchor="last", offset=-1)

    def stage(at: Iteration, least: int = 0) -> list[Instruction]:
        return [warp.execute("again", reads=["tile"], at=at, least=least), warp.arrive("empty", at=at, least=least)]

    def early(at: Iteration, least: int = 0) -> list[Instruction]:
        return [warp.wait("full", at=at, least=least), warp.execute("sum0", reads=["tile"], at=at, least=least)]

    consumer = warp.group(
        "consumer0",
        [*early(warp.NOW), *stage(before)],
        stages=2,
        prologue=early(first, 1),
        epilogue=stage(last, 1),
    )
    return replace(good, groups=(good.groups[0], consumer))


def test_one_copy_where_two_instances_are_live_is_a_deadlock() -> None:
    assert check_trips(_resident(2), (5,)).sound
    deadlock = check_trips(_resident(1), (5,)).deadlock
    assert deadlock is not None
    assert deadlock.cycle == ("producer", "consumer0")
