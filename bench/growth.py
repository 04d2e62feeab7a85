"""How search times grow with operations, slots and groups: a table, and ``bench/out/growth.json``.

Random loops (``loops.py``) with one group and no registers, the task of software pipelining alone; then the same with
warp groups, and attention forward in finer and finer slots. Every search is run in a process of its own; seconds are
those of the processor, which other programs on the machine disturb least.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import twillgpu
from loops import Loop, loop
from one import EXAMPLES
from twillgpu.costs.record import Problem
from twillgpu.schedule.record import SearchOptions
from twillgpu.schedule.search import search

OUT = Path(__file__).parent / "out" / "growth.json"
NONE = Loop(ops=0, interval=0)
HEAD = ("table", "ops", "slots", "groups", "density", "back", "seed", "I", "bound", "status", "how", "work", "cpu s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One search: a random loop, or (``example``) attention forward at a resolution."""

    table: str
    loop: Loop
    example: str = ""
    resolution: int = SearchOptions().resolution


@dataclass(frozen=True, slots=True, kw_only=True)
class Grown:
    """What came out. ``how``: what found the schedule, the heuristic or the solver."""

    ops: int
    slots: int
    ii_cycles: int | None
    lower_bound_cycles: int
    status: str
    how: str
    work: float
    cpu_seconds: float


def points(seeds: int) -> Iterator[Point]:
    """Yield every search: each table varies one thing."""
    for seed in range(seeds):
        for ops, interval in ((50, 15), (100, 30), (200, 60), (300, 30), (300, 100)):
            for density, back in ((1.2, ops // 30), (1.8, ops // 15), (2.5, ops // 10)):
                asked = Loop(ops=ops, interval=interval, density=density, recurrences=back, seed=seed)
                yield Point(table="pipelining", loop=asked)
        for groups in (1, 2, 3):
            for ops in (12, 24):
                asked = Loop(ops=ops, interval=ops // 2, recurrences=1, seed=seed, groups=groups)
                yield Point(table="groups", loop=asked)
    for resolution in (17, 34, 66):
        yield Point(table="slots", loop=NONE, example="attention_fwd", resolution=resolution)


def measured(point: Point) -> Grown:
    """Search in this process."""
    problem = _problem(point)
    started = time.process_time()
    result = search(problem, SearchOptions(resolution=point.resolution))
    found = result.schedule
    solver = any(attempt.purpose != "iterative" for attempt in result.attempts)
    return Grown(
        ops=len(problem.ops),
        slots=-(-(found.ii_cycles if found else result.lower_bound_cycles) // result.slot_cycles),
        ii_cycles=found.ii_cycles if found else None,
        lower_bound_cycles=result.lower_bound_cycles,
        status=result.status,
        how="solver" if solver else "heuristic",
        work=round(result.work, 2),
        cpu_seconds=round(time.process_time() - started, 2),
    )


def _problem(point: Point) -> Problem:
    if point.example:
        return twillgpu.load_problem(EXAMPLES / f"{point.example}.py", "h100").problem
    with tempfile.TemporaryDirectory() as folder:
        graph = Path(folder) / "loop.json"
        graph.write_text(json.dumps(loop(point.loop)), encoding="utf-8")
        return twillgpu.load_problem(graph).problem


def row(point: Point, grown: Grown) -> tuple[str, ...]:
    """Return one line of the table."""
    asked = point.loop
    drawn = (str(asked.groups), f"{asked.density:.1f}", str(asked.recurrences), str(asked.seed))
    shape = ("4", "-", "-", "-") if point.example else drawn
    cycles = "-" if grown.ii_cycles is None else str(grown.ii_cycles)
    said = (cycles, str(grown.lower_bound_cycles), grown.status, grown.how)
    return (
        point.table,
        str(grown.ops),
        str(grown.slots),
        *shape,
        *said,
        f"{grown.work:.2f}",
        f"{grown.cpu_seconds:.2f}",
    )


def show(lines: list[tuple[str, ...]]) -> None:
    """Print the lines under each other."""
    sizes = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    for line in lines:
        print("  ".join(cell.ljust(size) for cell, size in zip(line, sizes, strict=True)).rstrip())


def main() -> None:
    """Measure everything, print the table, write the JSON; with ``--one N``, print one search as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2, help="random loops of each shape")
    parser.add_argument("--one", type=int, help="number of the one search to run in this process")
    asked = parser.parse_args()
    every = list(points(asked.seeds))
    if asked.one is not None:
        print(json.dumps(asdict(measured(every[asked.one]))))
        return
    found = []
    for number, point in enumerate(every):
        command = [sys.executable, __file__, "--seeds", str(asked.seeds), "--one", str(number)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603
        found.append((point, Grown(**json.loads(done.stdout))))
        print(f"{number + 1} of {len(every)}", file=sys.stderr)
    show([HEAD, *(row(point, grown) for point, grown in found)])
    OUT.parent.mkdir(exist_ok=True)
    document = [{**asdict(point), **asdict(grown)} for point, grown in found]
    OUT.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
