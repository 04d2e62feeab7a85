"""A warp program on numbers against the reference, for given trip counts, under many schedulers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from twillgpu.emulate.call import Context
from twillgpu.emulate.inputs import Inputs, Outputs, prepare
from twillgpu.emulate.numbers import Array
from twillgpu.emulate.program import Tile, run_tiles
from twillgpu.emulate.record import Deadlock, Difference, Hazard, Race
from twillgpu.emulate.reference import run_block
from twillgpu.emulate.sample import sample_inputs
from twillgpu.emulate.schedulers import Scheduler
from twillgpu.emulate.unroll import Unroller
from twillgpu.frontend.kernel import Kernel
from twillgpu.frontend.subtile_dims import value_types


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What the tiles of a block work on, and what the reference makes of it."""

    trips: tuple[int, ...]
    inputs: tuple[Inputs, ...]
    wanted: tuple[Outputs, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NumericFinding:
    """What is wrong with one run."""

    differences: tuple[Difference, ...]
    races: tuple[Race, ...]
    hazards: tuple[Hazard, ...]
    deadlock: Deadlock | None


def sample(kernel: Kernel, trips: Sequence[int], seed: int = 0) -> Sample:
    """Return inputs with the wanted trip count for every tile, each with tensors of its own.

    Raises ``InputError`` where no inputs give a trip count, ``UnsupportedError`` for ops without numbers.
    """
    inputs = tuple(sample_inputs(kernel, trips=count, seed=seed + tile) for tile, count in enumerate(trips))
    return Sample(trips=tuple(trips), inputs=inputs, wanted=tuple(_reference(kernel, one) for one in inputs))


def run_sample(unroller: Unroller, work: Sample, scheduler: Scheduler) -> NumericFinding:
    """Run a block on numbers and compare.

    Raises as ``sample`` does.
    """
    kernel = unroller.program.kernel
    types = value_types(kernel)
    launched = [prepare(kernel, one) for one in work.inputs]
    tiles = [
        Tile(trips=count, arguments=one.arguments, context=Context(types=types, memory=one.memory))
        for count, one in zip(work.trips, launched, strict=True)
    ]
    ran = run_tiles(unroller, tiles, scheduler)
    missing = tuple(Hazard(kind="missing value", message=text) for text in ran.missing)
    found = [one.outputs() for one in launched]
    return NumericFinding(
        differences=tuple(_differences(work, found, scheduler.name)) if ran.outcome.deadlock is None else (),
        races=ran.outcome.races,
        hazards=(*ran.outcome.hazards, *missing),
        deadlock=ran.outcome.deadlock,
    )


def _reference(kernel: Kernel, inputs: Inputs) -> Outputs:
    """Run the first block alone, which is the one that is emulated."""
    launched = prepare(kernel, inputs)
    run_block(kernel, launched.arguments, Context(types=value_types(kernel), memory=launched.memory))
    return launched.outputs()


def differences(wanted: Outputs, found: Outputs, trips: tuple[int, ...], scheduler: str) -> Iterator[Difference]:
    """Yield each output that is not, bit by bit, what it should be (a NaN equals a NaN)."""
    for name, values in wanted.items():
        wrong = ~_equal(values, found[name])
        if wrong.any():
            yield Difference(
                output=name,
                trips=trips,
                scheduler=scheduler,
                elements=int(wrong.sum()),
                largest=_largest(values, found[name]),
                first=tuple(int(at) for at in np.argwhere(wrong)[0]),
            )


def _differences(work: Sample, found: Sequence[Outputs], scheduler: str) -> Iterator[Difference]:
    for tile, (wanted, outputs) in enumerate(zip(work.wanted, found, strict=True)):
        for one in differences(wanted, outputs, work.trips, scheduler):
            yield one if len(found) == 1 else replace(one, output=f"{one.output} of tile {tile}")


def _equal(one: Array, two: Array) -> Array:
    same = one == two
    return np.asarray(same | ((one != one) & (two != two)))  # noqa: PLR0124  # NaN differs from itself


def _largest(one: Array, two: Array) -> float:
    with np.errstate(all="ignore"):
        return float(np.max(np.abs(one.astype(np.float64) - two.astype(np.float64))))
