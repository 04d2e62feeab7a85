"""Measure one search in a process of its own: ``python bench/one.py CASE`` takes and prints JSON."""

from __future__ import annotations

import json
import resource
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import twillgpu
from twillgpu.errors import TwillError
from twillgpu.frontend.launch import LoadOptions
from twillgpu.inputs import SourceOptions
from twillgpu.schedule.record import SearchOptions

EXAMPLES = Path(__file__).parent.parent / "examples"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One search: example, machine, rows of a sub-tile (``None``: the target's), rows of the tile, resolution."""

    table: str
    example: str
    machine: str
    rows: int | None = None
    block_m: int | None = None
    resolution: int = SearchOptions().resolution


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What came out: status, interval and proved bound in cycles, seconds, peak memory; ``error`` for a mistake."""

    status: str = "error"
    ii_cycles: int | None = None
    lower_bound_cycles: int | None = None
    binding: str = ""
    ops: int = 0
    search_seconds: float = 0.0
    total_seconds: float = 0.0
    peak_mib: int = 0
    error: str = ""


def measure(case: Case) -> Measured:
    """Run one search from source to verified schedule."""
    constexprs = () if case.block_m is None else (("BLOCK_M", case.block_m),)
    options = SourceOptions(load=LoadOptions(constexprs=constexprs), rows=case.rows)
    try:
        priced = twillgpu.load_problem(EXAMPLES / f"{case.example}.py", case.machine, options=options)
        run = twillgpu.find_schedule(priced, SearchOptions(resolution=case.resolution))
    except TwillError as error:
        return Measured(error=str(error))
    result = run.result
    return Measured(
        status=result.status,
        ii_cycles=result.schedule.ii_cycles if result.schedule is not None else None,
        lower_bound_cycles=result.lower_bound_cycles,
        binding=result.bounds.binding.name,
        ops=len(run.problem.ops),
        search_seconds=round(result.seconds, 3),
        total_seconds=round(run.seconds, 3),
        peak_mib=_peak_mib(),
    )


def _peak_mib() -> int:
    """Largest resident size of this process and of those it started (Triton's), which never run together."""
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return max(resource.getrusage(who).ru_maxrss for who in whose) // 1024


if __name__ == "__main__":
    print(json.dumps(asdict(measure(Case(**json.loads(sys.argv[1]))))))
