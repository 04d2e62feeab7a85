"""The work on one candidate, from source to predicted time, and the run over all of a space."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import cast

from twillgpu.api import Scheduled, take_schedule
from twillgpu.costs.bounds import bounds
from twillgpu.costs.record import PriceOptions
from twillgpu.errors import InputError, TwillError, UnsupportedError
from twillgpu.frontend.kernel import Kernel
from twillgpu.frontend.launch import LoadOptions
from twillgpu.inputs import GRAPH_SUFFIX, Loaded, Priced, SourceOptions, carried_limits, load_source, price_loaded
from twillgpu.machine.load import load, names
from twillgpu.schedule.record import Schedule, SearchResult
from twillgpu.simulate.arguments import trips_of
from twillgpu.simulate.record import KernelTime, SimulationOptions, SteadyState
from twillgpu.simulate.simulate import steady_state
from twillgpu.simulate.whole import Launch, kernel_time
from twillgpu.store.cache import shared
from twillgpu.store.key import made_with
from twillgpu.tune.drive import Drive, Works
from twillgpu.tune.executors import Pool, processes
from twillgpu.tune.floor import Work, graph_block, graph_floor, kernel_floor, microseconds, waves
from twillgpu.tune.journal import Journal
from twillgpu.tune.record import LAUNCH, SPECIAL, SUBTILE, Axis, Outcome, Progress, Question, Status, Task, Tuned
from twillgpu.tune.space import check_question, file_digest, product, tasks_of
from twillgpu.view.limit import limit_reached

KEPT = 64
"""Captured kernels that a worker keeps: solving a candidate needs what bounding it has captured."""
_LIMITS = {"registers": "registers", "groups": "max_groups", "warps": "max_warps"}


def tune(
    question: Question,
    axes: Sequence[Axis],
    *,
    pool: Callable[[], Pool] = processes,
    best: int = 1,
    journal: tuple[Path, bool] | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Tuned:
    """Return the candidates of a space, ranked by the predicted time of the launch.

    Args:
        question: kernel, machine, sizes, limits.
        axes: the space; its candidates are all combinations.
        pool: makes what candidates are solved on (``tune.executors``), when there is work for it.
        best: solve what the ``best`` fastest candidates need; others are pruned by their bounds. 0: solve all.
        journal: a file of what is found, which a later run goes on from, and whether to begin it anew.
        progress: called after each step.

    Raises:
        InputError: the space, an expression or the journal cannot be used, or every candidate fails for one reason.
    """
    started = time.perf_counter()
    question = replace(question, machine=_machine_place(question.machine))
    check_question(question, axes)
    tasks, declined = tasks_of(question, product(axes))
    book = Journal(journal[0], _text(question), restart=journal[1]) if journal is not None else None
    drive = Drive(tasks, Works(bound=bound, solve=solve), best=best, journal=book, progress=progress)
    try:
        outcomes = drive.run(pool)
    finally:
        if book is not None:
            book.close()
    _complain((*outcomes, *declined))
    seconds = time.perf_counter() - started
    ranked = tuple(sorted((*outcomes, *declined), key=_rank))
    return Tuned(question=question, axes=tuple(axes), outcomes=ranked, kept=drive.kept, seconds=seconds)


_ORDER: tuple[Status, ...] = ("solved", "limit", "pruned", "infeasible", "unsupported", "declined", "error")


def _rank(outcome: Outcome) -> tuple[int, float]:
    return _ORDER.index(outcome.status), outcome.microseconds or outcome.floor_microseconds or 0.0


def _complain(outcomes: Sequence[Outcome]) -> None:
    """Raise the one reason for which no candidate could even be bounded: a mistake in the question."""
    reasons = {outcome.reason for outcome in outcomes if outcome.status == "declined"}
    if len(reasons) == 1 and all(outcome.status == "declined" for outcome in outcomes):
        raise InputError("tune", f"every candidate fails: {reasons.pop()}", "change the space or the options")


def _text(question: Question) -> str:
    """Return all that outcomes depend on, besides the candidate and its files."""
    machine = _machine_digest(question.machine)
    fields = {
        name: value
        for name, value in asdict(question).items()
        if name not in ("source", "graphs", "where", "machine", "cache")
    }
    return json.dumps({"machine_sha256": machine, "versions": made_with(), **fields}, sort_keys=True)


def _machine_place(named: str | None) -> str | None:
    """Return a machine's name, or the whole path of its file: workers may run in another folder."""
    return named if named is None or named in names() else str(Path(named).absolute())


def _machine_digest(named: str | None) -> str:
    return "" if named is None else load(named).sha256 if named in names() else file_digest(named)


_Prepared = tuple[Loaded, str]
"""The source of a candidate, and why it is priced through a graph (or ``""``)."""


def bound(task: Task) -> tuple[Outcome, object]:
    """Return the candidate's lower bound on the time of the launch, or why there is nothing to solve; and its source,
    captured.
    """
    kept: list[_Prepared] = []
    outcome = _guarded(task, lambda one: _bounded(one, kept))
    return outcome, kept[0] if outcome.status == "bounded" else None


def solve(task: Task, prepared: object = None) -> Outcome:
    """Return the candidate's schedule and the predicted time of the launch, or why there is none.

    ``prepared`` is what ``bound`` has returned beside the outcome, if that is still there.
    """
    return _guarded(task, lambda one: _solved(one, cast("_Prepared | None", prepared)))


def _guarded(task: Task, work: Callable[[Task], Outcome]) -> Outcome:
    """Return what ``work`` does with every failure as a row: one bad candidate must not end a run of thousands."""
    started = time.perf_counter()
    try:
        found = work(task)
    except UnsupportedError as error:
        found = Outcome(candidate=task.candidate, status="unsupported", reason=f"{error.where}: {error.what}")
    except InputError as error:
        found = Outcome(candidate=task.candidate, status="declined", reason=f"{error.where}: {error.what}")
    except TwillError as error:
        found = Outcome(candidate=task.candidate, status="error", reason=str(error))
    except Exception as error:  # noqa: BLE001  # a defect: it is shown in the candidate's row
        reason = f"{type(error).__name__}: {error}; this is a defect of twillgpu: please report it"
        found = Outcome(candidate=task.candidate, status="error", reason=reason)
    return replace(found, seconds=time.perf_counter() - started)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ready:
    """A candidate with its problem, the work of its launch, and why it is priced through a graph (or ``""``)."""

    priced: Priced
    work: Work
    remark: str

    @property
    def kernel(self) -> Kernel | None:
        return self.priced.loaded.kernel


def _ready(task: Task, prepared: _Prepared) -> _Ready:
    loaded, remark = prepared
    priced = price_loaded(loaded, _limits(task, loaded))
    trips = _trips(task, priced)
    work = Work(trips=trips, blocks=task.blocks, reuse=task.question.reuse)
    return _Ready(priced=priced, work=work, remark=remark)


def _loaded(task: Task) -> _Prepared:
    """Return the source of a candidate; graph JSON that stands in for it where it is refused."""
    question = task.question
    try:
        return _load(task.files[0], task.digests[0], question.machine, _source(task, task.files[0])), ""
    except (InputError, UnsupportedError) as error:
        if len(task.files) == 1:
            raise
        loaded = _load(task.files[1], task.digests[1], question.machine, SourceOptions())
        return loaded, f"priced through {Path(task.files[1]).name}: {error.what}"


@lru_cache(maxsize=KEPT)
def _load(file: str, digest: str, machine: str | None, options: SourceOptions) -> Loaded:
    if digest and file_digest(file) != digest:
        what = "the file differs from the one that the run was started with"
        raise InputError(file, what, "give workers the same file, and leave it while they run")
    return load_source(file, machine, options)


def _source(task: Task, file: str) -> SourceOptions:
    """Return the launch that a candidate asks for: constexprs, warps, configuration, sub-tiles."""
    chosen = dict(task.candidate.values)
    question = task.question
    constants = {name: value for name, value in chosen.items() if name not in SPECIAL}
    if file.endswith(GRAPH_SUFFIX):
        return SourceOptions()
    launch: Mapping[str, object] = {name: chosen[name] for name in LAUNCH if chosen.get(name) is not None}
    merged = tuple({**dict(question.load.constexprs), **constants}.items())
    loads: LoadOptions = replace(question.load, constexprs=merged, **launch)  # type: ignore[arg-type]  # checked by parse_axis
    rows = chosen.get(SUBTILE, question.rows)
    return SourceOptions(load=loads, rows=None if rows is None else int(rows))


def _limits(task: Task, loaded: Loaded) -> PriceOptions:
    base = task.question.limits or carried_limits(loaded)
    chosen = dict(task.candidate.values)
    given = {field: chosen[name] for name, field in _LIMITS.items() if chosen.get(name) is not None}
    return replace(base, **given)  # type: ignore[arg-type]  # numbers: checked by parse_axis


def _trips(task: Task, priced: Priced) -> int:
    if task.trips is not None:
        return task.trips
    kernel = priced.loaded.kernel
    if kernel is not None:
        arguments = {argument.name for argument in kernel.arguments}
        return trips_of(kernel, {name: value for name, value in task.question.shape if name in arguments})
    if priced.problem.trip_count is None:
        raise InputError("--trips", "the graph does not say how many iterations a block has", "give --trips")
    return priced.problem.trip_count


def _bounded(task: Task, kept: list[_Prepared]) -> Outcome:
    kept.append(_loaded(task))
    ready = _ready(task, kept[0])
    problem, machine = ready.priced.problem, ready.priced.loaded.machine
    found = bounds(problem)
    row = Outcome(candidate=task.candidate, status="bounded", reason=ready.remark, blocks=task.blocks)
    if found.impossible:
        return replace(row, status="infeasible", reason="; ".join(found.impossible), trips=ready.work.trips)
    if ready.kernel is None:
        floor = graph_floor(problem, found, machine, ready.work)
    else:
        floor = kernel_floor(problem, ready.kernel, machine, ready.work)
    return replace(row, floor_microseconds=floor, trips=ready.work.trips)


def _solved(task: Task, prepared: _Prepared | None) -> Outcome:
    ready = _ready(task, prepared or _loaded(task))
    found = take_schedule(ready.priced, options=task.question.search, cache=shared() if task.question.cache else None)
    row = Outcome(
        candidate=task.candidate,
        status="solved",
        reason=ready.remark,
        trips=ready.work.trips,
        blocks=task.blocks,
        waves=waves(ready.priced.loaded.machine, task.blocks),
    )
    assert found.result is not None  # noqa: S101  # it was searched
    if found.verified is None:
        return _no_schedule(row, found.result)
    row = _with_schedule(row, found.result, found.verified.schedule)
    if ready.kernel is None:
        return _by_schedule(row, ready, found.verified.schedule)
    return _by_simulation(row, ready, found)


def _no_schedule(row: Outcome, result: SearchResult) -> Outcome:
    if result.status == "infeasible":
        return replace(row, status="infeasible", reason=result.bound_reason or "no schedule exists")
    return replace(row, status="limit", reason=f"no schedule was found, {limit_reached(result)}")


def _with_schedule(row: Outcome, result: SearchResult, schedule: Schedule) -> Outcome:
    shared = [buffer for buffer in schedule.buffers if buffer.space == "smem"]
    return replace(
        row,
        ii_cycles=schedule.ii_cycles,
        proof=result.status,
        groups=len(schedule.groups),
        warps=sum(group.warps for group in schedule.groups),
        registers=max((group.registers_per_thread for group in schedule.groups), default=0),
        smem_bytes=max((one.offset_bytes + one.depth * one.bytes for one in shared), default=0),
        rings=tuple((buffer.name, buffer.depth) for buffer in shared),
    )


def _by_schedule(row: Outcome, ready: _Ready, schedule: Schedule) -> Outcome:
    """Add the time of a launch by the interval alone: graph JSON has no program to simulate."""
    problem, work = ready.priced.problem, ready.work
    block = graph_block(problem, schedule, work.trips)
    took = microseconds(ready.priced.loaded.machine, block, work.blocks)
    flop = problem.flop_per_iteration * work.trips * work.blocks
    return replace(
        row,
        by="schedule",
        block_cycles=float(block),
        microseconds=took,
        tflops=flop / took / 1e6 if flop else None,
        binding="schedule",
    )


def _by_simulation(row: Outcome, ready: _Ready, found: Scheduled) -> Outcome:
    steady, time_ = _simulated(ready, found)
    return replace(
        row,
        by="simulation",
        steady_cycles=steady.cycles,
        block_cycles=time_.block_cycles,
        microseconds=time_.microseconds,
        tflops=time_.tflops,
        ceiling_tflops=time_.ceiling_tflops,
        binding=time_.binding,
    )


def _simulated(ready: _Ready, found: Scheduled) -> tuple[SteadyState, KernelTime]:
    problem, machine, work = ready.priced.problem, ready.priced.loaded.machine, ready.work
    program = found.program()
    options = SimulationOptions()
    steady = steady_state(program, problem, machine, options)
    launch = Launch(trips=work.trips, blocks=work.blocks, reuse=work.reuse)
    time_, _ = kernel_time(program, problem, machine, steady, launch=launch, options=options)
    return steady, time_
