"""Time and memory of the search on the examples, and start-up times: a table, and ``bench/out/search.json``.

Run by ``make bench``. Every search goes from source to verified schedule, with proof and polish, in its own process.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, replace
from pathlib import Path

from one import EXAMPLES, Case, Measured

HERE = Path(__file__).parent
OUT = HERE / "out" / "search.json"
REPEATS = 5
MACHINES = ("h100", "b200")
RESOLUTIONS = (34, 66, 130)
TILES = {"h100": ((0, 128), (64, 128), (64, 256)), "b200": ((0, 256), (128, 256), (64, 256))}
"""(rows of a sub-tile, rows of the tile) that make 1, 2 and 4 sub-tiles of attention forward."""
HEAD = ("table", "example", "machine", "slots", "sub-tile", "ops", "I", "bound", "status", "search s", "all s", "MiB")


def cases() -> list[Case]:
    """Return every search: the examples, then time against resolution, then against the number of sub-tiles."""
    examples = ("gemm", "attention_fwd", "attention_bwd")
    found = [Case(table="examples", example=example, machine=machine) for example in examples for machine in MACHINES]
    for machine in MACHINES:
        base = Case(table="resolution", example="attention_fwd", machine=machine)
        found += [replace(base, resolution=slots) for slots in RESOLUTIONS]
        found += [replace(base, table="sub-tiles", rows=rows, block_m=tile) for rows, tile in TILES[machine]]
    return found


def measured(case: Case) -> Measured:
    """Measure one case in a fresh process."""
    line = _python(str(HERE / "one.py"), json.dumps(asdict(case)))
    return Measured(**json.loads(line))


def import_seconds() -> float:
    """Return the shortest time of ``import twillgpu`` in a fresh process."""
    code = "import time; at = time.perf_counter(); import twillgpu; print(time.perf_counter() - at)"
    return min(float(_python("-c", code)) for _ in range(REPEATS))


def start_seconds() -> float:
    """Return the shortest time from the start of a process on a graph file to the first question to the solver."""
    with tempfile.TemporaryDirectory() as folder:
        graph = Path(folder) / "graph.json"
        source = str(EXAMPLES / "attention_fwd.py")
        _python("-m", "twillgpu", "schedule", source, "--machine", "b200", "--emit", "graph", "-o", str(graph))
        return min(float(_python(str(HERE / "start.py"), str(graph), repr(time.time()))) for _ in range(REPEATS))


def _python(*arguments: str) -> str:
    done = subprocess.run([sys.executable, *arguments], stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603
    return done.stdout


def row(case: Case, found: Measured) -> tuple[str, ...]:
    """Return one line of the table."""
    tile = "target's" if case.rows is None else "none" if case.rows == 0 else f"{case.rows} of {case.block_m}"
    cycles = "-" if found.ii_cycles is None else str(found.ii_cycles)
    bound = "-" if found.lower_bound_cycles is None else f"{found.lower_bound_cycles} {found.binding}"
    seconds = (f"{found.search_seconds:.2f}", f"{found.total_seconds:.2f}", str(found.peak_mib))
    place = (case.table, case.example, case.machine, str(case.resolution), tile)
    return (*place, str(found.ops), cycles, bound, found.error or found.status, *seconds)


def show(rows: list[tuple[str, ...]]) -> None:
    """Print the rows under each other."""
    sizes = [max(len(line[column]) for line in rows) for column in range(len(HEAD))]
    for line in rows:
        print("  ".join(cell.ljust(size) for cell, size in zip(line, sizes, strict=True)).rstrip())


def main() -> None:
    """Measure everything, print the table, write the JSON."""
    found = []
    for case in cases():
        print(f"{case.table}: {case.example} on {case.machine} ...", file=sys.stderr)
        found.append((case, measured(case)))
    starts = {"import_seconds": round(import_seconds(), 4), "graph_to_search_seconds": round(start_seconds(), 3)}
    show([HEAD, *(row(case, one) for case, one in found)])
    print(f"import twillgpu: {starts['import_seconds']:.4f} s")
    print(f"graph file, start of the process to first question to the solver: {starts['graph_to_search_seconds']} s")
    where = {"python": platform.python_version(), "cores": os.cpu_count(), "processor": platform.machine()}
    document = {"machine": where, **starts, "searches": [asdict(case) | asdict(one) for case, one in found]}
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    print(f"written: {OUT.relative_to(Path.cwd()) if OUT.is_relative_to(Path.cwd()) else OUT}")


if __name__ == "__main__":
    main()
