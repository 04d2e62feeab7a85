"""Tuning measured: candidates per second, share pruned without solving, and what a second worker brings.

python bench/tune.py [SPACE...]    spaces by name; default: all

Spaces that are not named keep their figures in the file. Every space is searched with and without pruning; both must
have the same best. Writes bench/out/tune.json.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from one import EXAMPLES
from twillgpu.schedule.record import SearchOptions
from twillgpu.tune.executors import processes
from twillgpu.tune.record import Question, Tuned
from twillgpu.tune.space import parse_axis
from twillgpu.tuning import tune

OUT = Path(__file__).parent / "out" / "tune.json"
HEAD = ("space", "candidates", "solved", "pruned", "share", "pruned s", "whole s", "candidates/s", "best", "us")


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """A kernel, a problem and the choices; ``speed`` also runs it on one worker."""

    name: str
    question: Question
    axes: tuple[str, ...]
    speed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One space: wall seconds with and without pruning and (``None``: not asked) on one worker; what was found."""

    space: str
    axes: tuple[str, ...]
    candidates: int
    boundable: int
    solved: int
    pruned: int
    share_pruned: float
    pruned_seconds: float
    exhaustive_seconds: float
    candidates_per_second: float
    solved_per_second: float
    one_worker_seconds: float | None
    speed_up: float | None
    best: str
    microseconds: float
    same_best: bool


def _gemm(machine: str) -> Question:
    return Question(
        source=str(EXAMPLES / "gemm.py"),
        machine=machine,
        search=SearchOptions(time_limit_seconds=60),
        shape=(("M", 4096), ("N", 4096), ("K", 4096)),
        grid=("M / BLOCK_M", "N / BLOCK_N"),
    )


ATTENTION = Question(
    source=str(EXAMPLES / "attention_fwd.py"),
    machine="h100",
    search=SearchOptions(time_limit_seconds=60),
    shape=(("seq_len", 8192), ("heads", 128)),
    grid=("seq_len / BLOCK_M", "heads"),
)
TILES = ("BLOCK_M=64,128,256", "BLOCK_N=64,128,256", "BLOCK_K=32,64,128")
SPACES = (
    Space(name="gemm_h100", question=_gemm("h100"), axes=TILES, speed=True),
    Space(name="gemm_b200", question=_gemm("b200"), axes=(*TILES[:2], "BLOCK_K=64")),
    Space(name="attention_h100", question=ATTENTION, axes=("BLOCK_M=64,128", "BLOCK_N=64,128", "subtile=none,64")),
    Space(
        name="attention_128",
        question=ATTENTION,
        axes=("BLOCK_M=128", "BLOCK_N=64,128", "subtile=none,64"),
        speed=True,
    ),
)


def measure(space: Space) -> Measured:
    """Search one space with and without pruning, on two workers."""
    whole, pruned = (_run(space, best, 2) for best in (0, 1))
    single = _run(space, 0, 1) if space.speed else None
    assert pruned.best is not None  # noqa: S101  # the spaces above have schedules
    assert whole.best is not None  # noqa: S101
    boundable = sum(outcome.floor_microseconds is not None for outcome in pruned.outcomes)
    return Measured(
        space=space.name,
        axes=space.axes,
        candidates=len(pruned.outcomes),
        boundable=boundable,
        solved=pruned.count("solved"),
        pruned=pruned.count("pruned"),
        share_pruned=round(pruned.count("pruned") / boundable, 3),
        pruned_seconds=round(pruned.seconds, 2),
        exhaustive_seconds=round(whole.seconds, 2),
        candidates_per_second=round(len(pruned.outcomes) / pruned.seconds, 3),
        solved_per_second=round(whole.count("solved") / whole.seconds, 3),
        one_worker_seconds=None if single is None else round(single.seconds, 2),
        speed_up=None if single is None else round(single.seconds / whole.seconds, 2),
        best=pruned.best.candidate.text,
        microseconds=round(pruned.best.microseconds or 0.0, 2),
        same_best=pruned.best.candidate == whole.best.candidate,
    )


def _run(space: Space, best: int, jobs: int) -> Tuned:
    axes = tuple(map(parse_axis, space.axes))
    return tune(space.question, axes, pool=lambda: processes(jobs), best=best)


def row(found: Measured) -> tuple[str, ...]:
    """Return one line of the table."""
    counts = (str(found.candidates), str(found.solved), str(found.pruned), f"{found.share_pruned:.0%}")
    seconds = (f"{found.pruned_seconds:.1f}", f"{found.exhaustive_seconds:.1f}", f"{found.candidates_per_second:.2f}")
    same = "" if found.same_best else " (exhaustive: another)"
    return (found.space, *counts, *seconds, found.best + same, f"{found.microseconds:,.1f}")


def _others(names: set[str]) -> list[dict[str, Any]]:
    """Return what an earlier run has found for other spaces."""
    if not OUT.exists():
        return []
    spaces: list[dict[str, Any]] = json.loads(OUT.read_text(encoding="utf-8"))["spaces"]
    return [one for one in spaces if one["space"] not in names]


def main(names: list[str]) -> None:
    """Measure the spaces named, or all; print the table, write the JSON."""
    before = os.getloadavg()[0]
    found = []
    for space in SPACES:
        if not names or space.name in names:
            print(f"{space.name} ...", file=sys.stderr)
            found.append(measure(space))
    rows = [HEAD, *map(row, found)]
    sizes = [max(len(line[column]) for line in rows) for column in range(len(HEAD))]
    for line in rows:
        print("  ".join(cell.ljust(size) for cell, size in zip(line, sizes, strict=True)).rstrip())
    for one in found:
        if one.speed_up is not None:
            both = f"two workers {one.exhaustive_seconds} s, one {one.one_worker_seconds} s"
            print(f"{one.space}: {both}: {one.speed_up} x")
    where = {"cores": os.cpu_count(), "processor": platform.machine(), "load_before": round(before, 2)}
    OUT.parent.mkdir(exist_ok=True)
    document = {"spaces": [*_others({one.space for one in found}), *(asdict(one) | where for one in found)]}
    OUT.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
