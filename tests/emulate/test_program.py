"""Warp programs on numbers give what the reference gives, whatever engines and groups do in which order."""

from collections.abc import Sequence
from dataclasses import replace

import number_programs as numbers
import numpy as np
import pytest
import warp_programs as warp

from twillgpu.emulate.call import Context
from twillgpu.emulate.inputs import Inputs, Prepared, prepare
from twillgpu.emulate.program import NumericOutcome, Tile, run_tiles
from twillgpu.emulate.reference import run
from twillgpu.emulate.schedulers import Scheduler, schedulers
from twillgpu.emulate.unroll import Unroller
from twillgpu.frontend.subtile_dims import value_types
from twillgpu.lower.record import WarpProgram

SCHEDULERS = schedulers(2, range(6))


def _inputs(trips: int, seed: int) -> Inputs:
    random = np.random.default_rng(seed)
    a = random.standard_normal((max(1, trips) * 16, 16), np.float32).astype(np.float16)
    return Inputs(tensors={"a_desc": a, "c_desc": np.zeros((16, 16), np.float32)}, scalars={"K": trips * 16})


def _emulate(
    program: WarpProgram, trips: Sequence[int], scheduler: Scheduler
) -> tuple[NumericOutcome, list[Prepared], list[Inputs]]:
    inputs = [_inputs(count, seed) for seed, count in enumerate(trips)]
    prepared = [prepare(program.kernel, one) for one in inputs]
    types = value_types(program.kernel)
    tiles = [
        Tile(trips=count, arguments=one.arguments, context=Context(types=types, memory=one.memory))
        for count, one in zip(trips, prepared, strict=True)
    ]
    return run_tiles(Unroller(program), tiles, scheduler), prepared, inputs


def _differs(program: WarpProgram, trips: Sequence[int], scheduler: Scheduler) -> bool:
    outcome, prepared, inputs = _emulate(program, trips, scheduler)
    assert outcome.missing == ()
    wanted = [run(program.kernel, one)["c_desc"] for one in inputs]
    found = [one.outputs()["c_desc"] for one in prepared]
    return not all(np.array_equal(one, two) for one, two in zip(wanted, found, strict=True))


@pytest.mark.parametrize("scheduler", SCHEDULERS, ids=lambda scheduler: scheduler.name)
@pytest.mark.parametrize("trips", [(0,), (1,), (2,), (3,), (9,), (3, 0, 1, 4)], ids=str)
@pytest.mark.parametrize("depth", [2, 3])
def test_results_are_those_of_the_reference(depth: int, trips: Sequence[int], scheduler: Scheduler) -> None:
    assert not _differs(numbers.squares(depth), trips, scheduler)


def test_a_slot_released_early_gives_wrong_numbers_under_some_scheduler() -> None:
    program = warp.edit(
        numbers.squares(2),
        "mma",
        lambda rest: [rest[0], rest[1], rest[3], rest[2], rest[4]],
    )
    assert any(_differs(program, (9,), scheduler) for scheduler in SCHEDULERS)


def test_a_value_that_a_group_does_not_have_is_named() -> None:
    program = warp.edit(numbers.squares(2), "mma", lambda _: [], "before")
    outcome, _, _ = _emulate(program, (2,), SCHEDULERS[0])
    assert "group mma uses zero, which it does not have" in outcome.missing


def test_what_overlaps_a_written_ring_is_poison() -> None:
    program = numbers.squares(2)
    rings = tuple(replace(ring, offset_bytes=0) if ring.name == "out" else ring for ring in program.rings)
    overlapping = replace(program, rings=rings)
    assert not _differs(overlapping, (3,), SCHEDULERS[0])
    assert any(_differs(overlapping, (3, 3), scheduler) for scheduler in SCHEDULERS)
