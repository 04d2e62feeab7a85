"""Whether every legal partition can be emitted: a table by example and chip, and ``bench/out/partitions.json``.

``python bench/partitions.py [--random N] [--only TEXT] [--no-baselines] [--keep FOLDER]`` takes, for every example on
every chip, the schedule of the search, schedules of random partitions with random stages, 1, 2 and 4 sub-tiles, and
the baselines of ``twillgpu compare``. Each is verified, lowered, emitted, compiled with the Triton that is installed
(no GPU), and run in the Gluon emulator against the reference. It ends with status 1 where something is not emitted,
not compiled, not equal, or takes more SMEM or TMEM than planned.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "lower"))

import schedules  # noqa: E402  # beside the tests

from twillgpu.baselines.compare import PLANS  # noqa: E402
from twillgpu.baselines.complete import complete  # noqa: E402
from twillgpu.baselines.record import Unsuited  # noqa: E402
from twillgpu.emit.feedback import Judged, findings  # noqa: E402
from twillgpu.emit.gluon import emit, ordered  # noqa: E402
from twillgpu.emit.offline import compile_source  # noqa: E402
from twillgpu.emitting import block_limits  # noqa: E402
from twillgpu.emulate.gluon.source import SourceOptions as Runs  # noqa: E402
from twillgpu.emulate.gluon.source import check_source  # noqa: E402
from twillgpu.errors import InputError, TwillError  # noqa: E402
from twillgpu.frontend.launch import LoadOptions  # noqa: E402
from twillgpu.inputs import Priced, SourceOptions, kernel_of, load_problem, price_loaded  # noqa: E402
from twillgpu.lower.lower import lower  # noqa: E402
from twillgpu.lower.record import WarpProgram  # noqa: E402
from twillgpu.schedule.record import Schedule, SearchOptions  # noqa: E402
from twillgpu.schedule.resolution import serial_interval  # noqa: E402
from twillgpu.schedule.search import search  # noqa: E402
from twillgpu.verify import check  # noqa: E402
from twillgpu.verify.record import Verified  # noqa: E402
from twillgpu.view.text import table  # noqa: E402

OUT = ROOT / "bench" / "out" / "partitions.json"
SEED = 5
EFFORT = SearchOptions(work_limit=4, time_limit_seconds=10, max_stages=5)
"""Of one baseline."""
TURNS = 12
"""Partitions that are drawn for each one that is wanted."""
SHARES = (0.25, 0.45, 0.7, 1.0)
"""Intervals of random schedules, as parts of the cycles of all ops one after the other."""
HEAD = ("example", "chip", "tried", "emitted", "compiled", "within plan", "equal", "no spill, not serialised")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A kernel on a chip: rows of a sub-tile (``None``: the target's), constexprs, and random partitions of it."""

    example: str
    machine: str
    rows: int | None = None
    constexprs: tuple[tuple[str, int], ...] = ()
    kernel: str | None = None
    partitions: int = 1

    @property
    def name(self) -> str:
        """Its name, the same for all tilings of a kernel."""
        return self.kernel or self.example

    def priced(self) -> Priced:
        """Return its scheduling problem."""
        options = LoadOptions(kernel=self.kernel, constexprs=self.constexprs)
        path = ROOT / "examples" / f"{self.example}.py"
        return load_problem(path, self.machine, options=SourceOptions(load=options, rows=self.rows))


SOURCES = (
    *(Source(example="gemm", machine=machine, partitions=3) for machine in ("h100", "b200")),
    Source(example="gemm", machine="h100", rows=0),
    *(Source(example="gemm", machine=machine, kernel="gemm_pointers") for machine in ("h100", "b200")),
    *(Source(example="rms_norm", machine=machine, partitions=2) for machine in ("h100", "b200")),
    Source(example="attention_fwd", machine="h100", partitions=3),
    Source(example="attention_fwd", machine="h100", rows=0, partitions=1),
    Source(example="attention_fwd", machine="h100", rows=64, constexprs=(("BLOCK_M", 256),)),
    Source(example="attention_fwd", machine="b200", partitions=3),
    Source(example="attention_fwd", machine="b200", rows=0, partitions=1),
    Source(example="attention_fwd", machine="b200", rows=64, constexprs=(("BLOCK_M", 256),)),
    Source(example="attention_bwd", machine="h100", partitions=2),
    Source(example="attention_bwd", machine="b200", partitions=3),
)
"""The kernels; those with 1 and 4 sub-tiles are the sizes of ``bench/search.py``."""


@dataclass(slots=True, kw_only=True)
class Row:
    """What became of one schedule; ``why`` says what stopped it, ``notes`` what is wrong with its machine code."""

    case: str
    example: str
    machine: str
    parts: int = 1
    ii_cycles: int = 0
    groups: str = ""
    emitted: bool = False
    compiled: bool = False
    planned: bool = False
    equal: bool = False
    clean: bool = False
    smem: tuple[int, int] = (0, 0)
    tmem: tuple[int, int] = (0, 0)
    why: str = ""
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0


def partitions(priced: Priced, number: int, seed: int) -> Iterator[tuple[str, Priced, Schedule]]:
    """Yield schedules of random partitions, placed op by op with random delays, registers unlimited (``--registers
    0``): quotas and spills are for feedback.
    """
    draw = random.Random(seed)  # noqa: S311  # not for cryptography
    free = price_loaded(priced.loaded, replace(priced.limits, registers=0))
    problem, seen = free.problem, set[tuple[int, ...]]()
    fewest = 2 if any(pair.relation == "apart" for pair in problem.legality) else 1
    longest = serial_interval(problem)
    for turn in range(TURNS * number):
        groups = schedules.random_groups(problem, draw, draw.choice((fewest, 2, 2, 3)))
        placed = (schedules.placed(problem, groups, int(share * longest), randomly=draw) for share in SHARES)
        found = None if tuple(groups.values()) in seen else next((one for one in placed if one is not None), None)
        if found is not None:
            seen.add(tuple(groups.values()))
            yield f"partition {turn}", free, found.schedule
        if len(seen) == number:
            return


def baselines(priced: Priced) -> Iterator[tuple[str, Schedule]]:
    """Yield the schedules of the baselines that have one."""
    for way, planner in PLANS:
        plan = planner(priced.problem)
        if not isinstance(plan, Unsuited):
            schedule = complete(priced.problem, way, plan, EFFORT, lambda _: None).schedule
            if schedule is not None:
                yield way.name, schedule


def cases(source: Source, options: argparse.Namespace) -> Iterator[tuple[str, Priced, Schedule]]:
    """Yield every schedule of one source, with its name."""
    priced = source.priced()
    result = search(priced.problem, SearchOptions())
    if result.schedule is not None:
        yield "optimum", priced, result.schedule
    number = source.partitions if options.random is None else options.random
    for name, free, schedule in partitions(priced, number, SEED):
        yield name, free, schedule
    if source.rows is None and source.kernel is None and not options.no_baselines:
        for name, schedule in baselines(priced):
            yield name, priced, schedule


def measured(row: Row, priced: Priced, schedule: Schedule, folder: Path) -> Row:
    """Take one schedule from the verifier to the emulator."""
    begun = time.perf_counter()
    try:
        program = _program(priced, schedule)
        row.groups = " ".join(f"{one.name}:{one.warps}x{one.registers_per_thread}" for one in program.groups)
        path = folder / (re.sub(r"\W+", "_", f"{row.example} {row.machine} {row.parts} {row.case}") + ".py")
        path.write_text(emit(program), "utf-8")
        row.emitted = True
        _compiled(row, priced, program, path)
        _equal(row, priced, program, path)
    except TwillError as error:
        row.why = f"{error.what}"
    row.seconds = round(time.perf_counter() - begun, 1)
    return row


def _program(priced: Priced, schedule: Schedule) -> WarpProgram:
    verdict = check(priced.problem, schedule)
    if not isinstance(verdict, Verified):
        raise InputError("schedule", f"it breaks {verdict[0].rule}: {verdict[0].message}", "search anew")
    return lower(kernel_of(priced.loaded), priced.loaded.graph, verdict)


def _compiled(row: Row, priced: Priced, program: WarpProgram, path: Path) -> None:
    compiled = compile_source(path)
    limits = block_limits(priced.loaded.machine)
    judged = Judged(program=program, groups=ordered(program), compiled=compiled, limits=limits)
    row.compiled = True
    row.smem = (compiled.smem_bytes, judged.planned_smem_bytes)
    tmem = [
        -(-(ring.offset_bytes + ring.depth * ring.bytes) // 512) for ring in program.rings if ring.memory == "tmem"
    ]
    row.tmem = (compiled.tmem_columns, max(tmem, default=0))
    found = findings(judged)
    row.notes = [f"{one.rule} {one.group}: {one.message}" for one in found]
    row.planned = not any(one.rule in ("smem_limit", "smem_plan", "tmem_limit") for one in found)
    row.clean = not any(one.serious for one in found)


def _equal(row: Row, priced: Priced, program: WarpProgram, path: Path) -> None:
    stages = max(group.stages for group in program.groups)
    report = check_source(str(path), kernel_of(priced.loaded), Runs(trips=tuple(sorted({0, 1, 2, stages + 1}))))
    row.equal = report.status == "sound"
    if not row.equal:
        first = [*report.races, *([report.deadlock] if report.deadlock else []), *report.hazards, *report.differences]
        row.why = f"emulated: {first[0]}"


def main() -> int:
    """Measure everything, print the tables, write the JSON."""
    options = _options()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="twillgpu-") as scratch:
        folder = Path(options.keep or scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for source in SOURCES:
            if options.only and not any(
                one in f"{source.name} {source.machine} {source.rows}" for one in options.only
            ):
                continue
            for name, priced, schedule in cases(source, options):
                cut = priced.loaded.subtiling
                parts = cut.parts if cut is not None else 1
                row = Row(case=name, example=source.name, machine=source.machine, parts=parts)
                rows.append(measured(replace(row, ii_cycles=schedule.ii_cycles), priced, schedule, folder))
                print(json.dumps(asdict(rows[-1])), file=sys.stderr, flush=True)
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n", "utf-8")
    print("\n".join([*table(HEAD, list(_lines(rows)), width=200), "", *_reasons(rows)]))
    return 0 if all(row.equal and row.planned for row in rows) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--random", type=int, help="random partitions of each source")
    parser.add_argument("--only", action="append", help="only sources whose name, chip and rows contain this")
    parser.add_argument("--no-baselines", action="store_true", help="leave the baselines out")
    parser.add_argument("--keep", help="folder for the emitted files")
    return parser.parse_args()


def _lines(rows: list[Row]) -> Iterator[list[str]]:
    keys = list(dict.fromkeys((row.example, row.machine) for row in rows))
    for key in keys:
        mine = [row for row in rows if (row.example, row.machine) == key]
        counts = [
            sum(getattr(row, what) for row in mine) for what in ("emitted", "compiled", "planned", "equal", "clean")
        ]
        yield [*key, str(len(mine)), *map(str, counts)]


def _reasons(rows: list[Row]) -> Iterator[str]:
    """Yield what went wrong, with how often: numbers and names are left out."""
    found = Counter(re.sub(r"[\d,]+", "N", row.why) for row in rows if row.why)
    found.update(re.sub(r"\d[\d,]*", "N", note) for row in rows for note in row.notes if not note.startswith("waits"))
    yield from (f"{count} x {reason}" for reason, count in found.most_common())


if __name__ == "__main__":
    sys.exit(main())
