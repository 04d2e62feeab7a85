"""The paper's results beside ours, as tables, and as JSON under ``bench/out``; ``docs/reproduction.md`` explains.

Every row runs in a process of its own with a time limit. Search times of both methods come from the same run, and
ratios are of processor seconds, which other programs on the machine disturb least.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from paper_one import Case, Measured, What

HERE = Path(__file__).parent
OUT = HERE / "out"
GRACE = 30.0
"""Seconds beyond twice its limit after which a process is ended: for the source, the last step and the verifier."""

KERNELS = {
    "forward, Hopper": ("attention_fwd", "h100", None),
    "forward, Blackwell": ("attention_fwd", "b200", None),
    "backward, Hopper": ("attention_bwd", "h100", None),
    "backward, Blackwell": ("attention_bwd", "b200", None),
    "backward, Blackwell, fewer registers": ("attention_bwd", "b200", 160),
}
"""Rows of the paper's Table 1: example, machine, registers per thread at most."""

PUBLISHED = {
    "forward, Hopper": 28,
    "forward, Blackwell": 18,
    "backward, Hopper": 84,
    "backward, Blackwell": 242,
    "backward, Blackwell, fewer registers": 48,
}
"""Seconds of the paper's search, on one core of a Xeon Platinum 8570."""

METHODS: tuple[What, ...] = ("default", "default slots", "paper slots", "paper units", "paper literal")

Row = tuple[Case, Measured]

TIMES = (
    "kernel",
    "method",
    "unit",
    "first I",
    "I",
    "L",
    "SWP s",
    "joint s",
    "wall s",
    "cpu s",
    "cycles",
    "bound",
    "overlap",
    "said",
)
RATIOS = ("kernel", "published s", "times faster, same slots", "times faster, end to end")
FOUND = ("variant", "unit", "modulo I", "stages", "the joint problem at this I")


def table_1(seconds: float) -> Iterator[Case]:
    """Yield the five kernels by every method."""
    for kernel, (example, machine, registers) in KERNELS.items():
        for what in METHODS:
            yield Case(
                kernel=kernel, example=example, machine=machine, what=what, seconds=seconds, registers=registers
            )


def findings(seconds: float) -> Iterator[Case]:
    """Yield the paper's other findings: kernels with changed limits."""
    forward = _variant("forward, Blackwell", "joint", seconds)
    yield forward
    yield replace(forward, kernel=f"{forward.kernel}, 8 warps", warps=8)
    yield replace(forward, kernel=f"{forward.kernel}, no sub-tiles", rows=0)
    yield replace(forward, kernel=f"{forward.kernel}, nothing crosses", cross_group=False)
    blackwell = _variant("backward, Blackwell", "joint", seconds)
    yield blackwell
    yield replace(blackwell, kernel=f"{blackwell.kernel}, 8 warps", warps=8)
    yield replace(blackwell, kernel=f"{blackwell.kernel}, 12 warps, 160 registers", warps=12, registers=160)
    hopper = _variant("backward, Hopper", "joint", seconds)
    yield hopper
    yield replace(hopper, kernel=f"{hopper.kernel}, registers unlimited", registers=0)
    yield replace(hopper, kernel=f"{hopper.kernel}, nothing crosses", cross_group=False)
    yield replace(hopper, kernel=f"{hopper.kernel}, both", registers=0, cross_group=False)


def _variant(kernel: str, what: What, seconds: float) -> Case:
    example, machine, _ = KERNELS[kernel]
    return Case(kernel=kernel, example=example, machine=machine, what=what, seconds=seconds)


def measured(case: Case) -> Measured:
    """Measure one row in a fresh process; the process and its solvers are ended where it takes too long."""
    command = [sys.executable, str(HERE / "paper_one.py"), json.dumps(asdict(case))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:  # noqa: S603
        try:
            line, _ = process.communicate(timeout=2 * case.seconds + GRACE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return Measured(status="over", wall=case.seconds)
    if process.returncode:
        raise SystemExit(f"{case}: exit status {process.returncode}")
    return Measured(**json.loads(line))


def _count(number: float, digits: int = 0) -> str:
    return f"{number:.{digits}f}" if number else "-"


def _said(case: Case, found: Measured) -> str:
    """Return what the row says about itself in short."""
    if found.status == "over" or (found.status == "limit" and found.wall >= case.seconds):
        return f"> {case.seconds:.0f} s"
    if found.status == "limit" and case.what.startswith("paper"):
        return "not verified"
    return found.status


def times_row(case: Case, found: Measured) -> tuple[str, ...]:
    """Return one line of the table of search times."""
    intervals = (_count(found.unit_cycles), _count(found.first), _count(found.final), _count(found.length))
    seconds = (_count(found.modulo, 1), _count(found.joint, 1), f"{found.wall:.1f}", _count(found.cpu, 1))
    cycles = (_count(found.cycles), _count(found.bound), _count(found.overlap, 2))
    return (case.kernel, case.what, *intervals, *seconds, *cycles, _said(case, found))


def found_row(case: Case, found: Measured) -> tuple[str, ...]:
    """Return one line of the table of findings."""
    numbers = (_count(found.unit_cycles), _count(found.first), _count(found.stages))
    return (case.kernel, *numbers, "; ".join(found.said) or found.status)


def ratio_rows(rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    """Yield, for each kernel, how many times faster the default method is; at least so, where a limit was reached."""
    for kernel, seconds in PUBLISHED.items():
        of = {case.what: (case, found) for case, found in rows if case.kernel == kernel}
        if of:
            slots = _ratio(of, "paper slots", "default slots", "cpu")
            yield kernel, str(seconds), slots, _ratio(of, "paper units", "default", "end_to_end")


def _ratio(of: Mapping[What, Row], paper: What, default: What, name: str) -> str:
    """Return the ratio of processor seconds of two methods, and what each of them found."""
    if paper not in of or default not in of:
        return "-"
    theirs, ours = of[paper][1], of[default][1]
    spent, least = getattr(theirs, name), getattr(ours, name)
    if not (spent and least):
        return "no time known"
    found = f"{spent / least:.1f} (I {_count(theirs.cycles)}, {_count(ours.cycles)})"
    return found if theirs.cycles else f"> {found}"


def show(head: tuple[str, ...], lines: Iterable[tuple[str, ...]]) -> None:
    """Print the lines under each other."""
    every = [head, *lines]
    sizes = [max(len(line[column]) for line in every) for column in range(len(head))]
    for line in every:
        print("  ".join(cell.ljust(size) for cell, size in zip(line, sizes, strict=True)).rstrip())
    print()


def run(name: str, cases: Iterable[Case]) -> tuple[Row, ...]:
    """Measure the rows of a table; the JSON is written after each, so that a run that is stopped leaves its rows."""
    rows: list[Row] = []
    entries = []
    OUT.mkdir(exist_ok=True)
    for case in cases:
        load = round(os.getloadavg()[0], 1)
        found = measured(case)
        rows.append((case, found))
        entries.append(asdict(case) | asdict(found) | {"load": load})
        print(f"{case.kernel}: {case.what}: {found.status}, {found.wall:.1f} s, load {load}", file=sys.stderr)
        where = {"python": platform.python_version(), "cores": os.cpu_count(), "processor": platform.machine()}
        document = json.dumps({"machine": where, "rows": entries}, indent=2)
        (OUT / f"paper_{name}.json").write_text(document + "\n", encoding="utf-8")
    return tuple(rows)


def main() -> None:
    """Measure everything, print the tables, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=("times", "findings"), help="one of the two parts; default: both")
    parser.add_argument("--name", default="times", help="the times go to bench/out/paper_NAME.json")
    parser.add_argument(
        "--kernel", action="append", choices=KERNELS, help="only this row of Table 1; may be repeated"
    )
    parser.add_argument("--method", action="append", choices=METHODS, help="only this method; may be repeated")
    parser.add_argument("--variant", default="", metavar="TEXT", help="only findings with TEXT in their name")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for each search")
    asked = parser.parse_args()
    if asked.part != "findings":
        kernels, methods = asked.kernel or KERNELS, asked.method or METHODS
        cases = (case for case in table_1(asked.limit) if case.kernel in kernels and case.what in methods)
        rows = run(asked.name, cases)
        show(TIMES, (times_row(*row) for row in rows))
        show(RATIOS, ratio_rows(rows))
    if asked.part != "times":
        variants = (case for case in findings(asked.limit) if asked.variant in case.kernel)
        show(FOUND, (found_row(*row) for row in run("findings", variants)))


if __name__ == "__main__":
    main()
