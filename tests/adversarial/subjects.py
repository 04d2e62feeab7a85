"""Good programs to break: examples on machines, with random partitions, orders, intervals and sub-tilings."""

from __future__ import annotations

import itertools
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from twillgpu.errors import TwillError
from twillgpu.frontend.kernel import Kernel
from twillgpu.graph.record import DepGraph
from twillgpu.lower.lower import lower
from twillgpu.lower.options import LowerOptions
from twillgpu.lower.record import WarpProgram
from twillgpu.verify.record import Verified

sys.path.append(str(Path(__file__).parents[1] / "lower"))

import schedules  # of the tests of lowering


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A loop, and intervals at which its schedules are sought, in cycles."""

    example: str
    machine: str
    intervals: tuple[int, ...]
    rows: int | None = None
    share: int = 1
    """Programs of the whole set are shared out in this proportion: large loops are slow to break."""


SOURCES = (
    Source(example="gemm", machine="h100", intervals=(1100, 1500, 2600), share=7),
    Source(example="gemm", machine="h100", intervals=(1100, 1900), rows=0, share=7),
    Source(example="gemm", machine="b200", intervals=(700, 1100, 2000), share=7),
    Source(example="rms_norm", machine="h100", intervals=(6000, 12000)),
    Source(example="rms_norm", machine="b200", intervals=(6000, 12000)),
    Source(example="attention_fwd", machine="h100", intervals=(2600, 4000, 6000)),
    Source(example="attention_fwd", machine="h100", intervals=(3000, 5000), rows=0),
    Source(example="attention_fwd", machine="b200", intervals=(4000, 6000)),
    Source(example="attention_bwd", machine="h100", intervals=(5000, 9000)),
    Source(example="attention_bwd", machine="b200", intervals=(4000, 8000)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A good program, its name, and the trip counts of the blocks to look at."""

    name: str
    program: WarpProgram
    blocks: tuple[tuple[int, ...], ...]


def blocks(program: WarpProgram) -> tuple[tuple[int, ...], ...]:
    """Return blocks for no, one and few iterations, past the pipeline and past the deepest ring; several tiles."""
    stages = max(group.stages for group in program.groups)
    deepest = max([ring.depth for ring in program.rings], default=1)
    single = sorted({0, 1, 2, stages, stages + 1, min(stages + deepest, stages + 4)})
    tiles = ((2, 0, stages + 1),) if program.persistent else ()
    return (*((count,) for count in single), *tiles)


def subjects(
    number: int, seed: int, sources: Sequence[Source] = SOURCES, *, persistent: bool = False
) -> Iterator[Subject]:
    """Yield this many subjects, sources in turn; every other one is persistent, the first one if asked."""
    draw = random.Random(seed)  # noqa: S311  # not for cryptography
    found = 0
    while found < number:
        for source in sources:
            program = _lowered(source, draw, persistent=bool(found % 2) != persistent)
            if program is None:
                continue
            cut = "" if source.rows is None else " whole"
            name = f"{source.example} {source.machine}{cut} {found}"
            yield Subject(name=name, program=program, blocks=blocks(program))
            found += 1
            if found == number:
                return


def variants(number: int, seed: int, sources: Sequence[Source]) -> Iterator[Subject]:
    """Yield this many subjects, every schedule lowered in all ways: persistent or not, with turns or without."""
    draw, found = random.Random(seed), 0  # noqa: S311  # not for cryptography
    for source in itertools.cycle(sources):
        made = _verified(source, draw)
        for persistent, turns in itertools.product((False, True), repeat=2):
            program = (
                None if made is None else _program(*made, LowerOptions(persistent=persistent, order_units=turns))
            )
            if program is None:
                continue
            yield Subject(name=f"{source.example} {source.machine} {found}", program=program, blocks=blocks(program))
            found += 1
            if found == number:
                return


def _lowered(source: Source, draw: random.Random, *, persistent: bool) -> WarpProgram | None:
    made = _verified(source, draw)
    if made is None:
        return None
    return _program(*made, LowerOptions(persistent=persistent, order_units=draw.random() < 0.5))


def _verified(source: Source, draw: random.Random) -> tuple[Kernel, DepGraph, Verified] | None:
    kernel, graph, problem = schedules.loaded(source.example, source.machine, source.rows)
    # Ops that must be apart have no partition into one group.
    fewest = 2 if any(pair.relation == "apart" for pair in problem.legality) else 1
    groups = schedules.random_groups(problem, draw, draw.choice((fewest, 2, 2, 3)))
    interval = draw.choice(source.intervals)
    randomly = draw if draw.random() < 0.5 else None
    verified = schedules.placed(schedules.roomy(problem), groups, interval, randomly=randomly)
    return None if verified is None else (kernel, graph, verified)


def _program(kernel: Kernel, graph: DepGraph, verified: Verified, options: LowerOptions) -> WarpProgram | None:
    try:
        return lower(kernel, graph, verified, options)
    except TwillError:
        # What has no program (too wide, too many barriers, ...) is refused with a reason: nothing to break.
        return None
