"""Measure one row of ``bench/paper.py`` in its own process: ``python bench/paper_one.py CASE`` (JSON in and out)."""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Literal

import twillgpu
from one import EXAMPLES
from twillgpu.costs.bounds import bounds
from twillgpu.costs.record import PriceOptions, Problem, RuleOptions, Scale
from twillgpu.costs.scale import scaled
from twillgpu.errors import TwillError
from twillgpu.inputs import Priced, SourceOptions
from twillgpu.schedule.core import Question
from twillgpu.schedule.measure import stage_count
from twillgpu.schedule.model import answer
from twillgpu.schedule.paper import joint
from twillgpu.schedule.paper.record import UNITS, JointQuestion, PaperOptions
from twillgpu.schedule.record import Schedule, SearchOptions, SearchResult
from twillgpu.schedule.resolution import slot_cycles
from twillgpu.schedule.search import search
from twillgpu.schedule.solved import Effort

What = Literal["paper slots", "paper units", "paper literal", "default slots", "default", "joint"]
"""The paper's method in the slots of the default method, in normalised units, and taken literally; the default method
under the paper's variants of the rules, and under its own; whether the joint problem has a solution at the smallest
interval of a modulo schedule, both in slots."""

PAPER = RuleOptions(concurrency="paper", variable_latency="iff")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One row.

    Attributes:
        kernel: name of the row.
        example, machine: what is scheduled.
        what: see ``What``.
        seconds: time limit of the search.
        rows: rows of a sub-tile; ``None``: the target's; 0: no sub-tiles.
        warps, registers: limits below the machine's; ``None``: the machine's.
        cross_group: whether values in registers may be handed to another group.
    """

    kernel: str
    example: str
    machine: str
    what: What
    seconds: float
    rows: int | None = None
    warps: int | None = None
    registers: int | None = None
    cross_group: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What came out; times of a search in units, of a schedule in cycles.

    Attributes:
        status: of the search, or ``over`` where the process had to be ended.
        unit_cycles: cycles of a unit, about.
        first, final, length: smallest I with a modulo schedule, I and L of the joint solution, in units; 0: none.
        modulo, joint: seconds in ``OPTIMAL-MODULO-SCHEDULE`` and ``SWP-AND-WS``.
        wall, cpu: seconds of the search, and of the processor in it and in its solvers.
        end_to_end: processor seconds from the source to the verified schedule.
        cycles, bound, stages, groups: interval of the schedule, proved bound, stages, warps of each group.
        overlap: how many intervals the ops of fixed latency of one iteration span.
        said: outcome of each solver on the joint question; remarks of the method.
    """

    status: str = "over"
    ops: int = 0
    unit_cycles: int = 0
    first: int = 0
    final: int = 0
    length: int = 0
    modulo: float = 0.0
    joint: float = 0.0
    wall: float = 0.0
    cpu: float = 0.0
    end_to_end: float = 0.0
    cycles: int = 0
    bound: int = 0
    max_stages: int = 0
    stages: int = 0
    groups: tuple[int, ...] = ()
    overlap: float = 0.0
    said: tuple[str, ...] = ()


def measure(case: Case) -> Measured:
    """Return the row of ``case``."""
    priced = _priced(case)
    return _probed(case, priced.problem) if case.what == "joint" else _searched(case, priced)


def _priced(case: Case) -> Priced:
    """Return the problem under the limits and variants of the case."""
    rules = RuleOptions() if case.what == "default" else PAPER
    limits = PriceOptions(
        rules=replace(rules, cross_group=case.cross_group),
        max_warps=case.warps,
        registers=case.registers,
    )
    source = SourceOptions(rows=case.rows)
    return twillgpu.load_problem(EXAMPLES / f"{case.example}.py", case.machine, options=source, limits=limits)


def _options(case: Case) -> SearchOptions | PaperOptions:
    limited = SearchOptions(time_limit_seconds=case.seconds)
    match case.what:
        case "paper slots":
            return PaperOptions(search=limited, units=0)
        case "paper units":
            return PaperOptions(search=limited, units=UNITS)
        case "paper literal":
            return PaperOptions(search=limited, units=UNITS, literal=True)
        case _:
            return limited


def _cpu() -> float:
    """Return processor seconds of this process and of those that it started and that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _searched(case: Case, priced: Priced) -> Measured:
    find, options = twillgpu.find_schedule, _options(case)  # imported on first use, which is no part of a search
    before = _cpu()
    run = find(priced, options)
    spent = _cpu() - before
    result = run.result
    first, final, length = _intervals(result)
    schedule = result.schedule
    return Measured(
        status=result.status,
        ops=len(run.problem.ops),
        unit_cycles=result.slot_cycles,
        first=first,
        final=final,
        length=length,
        modulo=_seconds(result, "modulo"),
        joint=_seconds(result, "joint"),
        wall=result.seconds,
        cpu=spent,
        end_to_end=_cpu(),
        cycles=schedule.ii_cycles if schedule else 0,
        bound=result.lower_bound_cycles,
        max_stages=result.max_stages,
        stages=stage_count(run.problem, schedule) if schedule else 0,
        groups=tuple(group.warps for group in schedule.groups) if schedule else (),
        overlap=_overlap(run.problem, schedule) if schedule else 0.0,
        said=result.remarks,
    )


def _seconds(result: SearchResult, purpose: str) -> float:
    return sum(attempt.seconds for attempt in result.attempts if attempt.purpose.startswith(purpose))


def _intervals(result: SearchResult) -> tuple[int, int, int]:
    """Return the smallest I with a modulo schedule, and I and L of the joint solution; 0 for what there is not."""
    usable = [
        one.slots for one in result.attempts if one.purpose.startswith("modulo") and one.outcome != "infeasible"
    ]
    solved = [one for one in result.attempts if one.purpose.startswith("joint") and one.outcome == "sat"]
    if not solved:
        return min(usable, default=0), 0, 0
    return min(usable, default=0), solved[-1].slots, int(solved[-1].purpose.rpartition("=")[2])


def _overlap(problem: Problem, schedule: Schedule) -> float:
    """Return the time from first start to last end of an iteration's ops of fixed latency, in intervals."""
    ops = [op for op in problem.ops if not op.variable_latency and op.uses]
    ends = [schedule.start(op.name) + max(use.offset + use.cycles for use in op.uses) for op in ops]
    starts = [schedule.start(op.name) for op in ops]
    return round((max(ends) - min(starts)) / schedule.ii_cycles, 2) if ops else 0.0


def _modulo_only(problem: Problem) -> Problem:
    """Return the problem of modulo scheduling alone: one group, and no limit but those of the units."""
    return replace(
        problem,
        ops=tuple(replace(op, variable_latency=False, issue_cycles=0, warps=1) for op in problem.ops),
        edges=tuple(replace(edge, blocking=False) for edge in problem.edges),
        registers=None,
        memories=(),
        legality=(),
        groups=replace(problem.groups, max=1),
        rules=RuleOptions(variable_latency="free"),
    )


def _probed(case: Case, problem: Problem) -> Measured:
    """Ask at the smallest interval of a modulo schedule in units whether the joint problem has a solution."""
    slot = slot_cycles(problem, bounds(problem).binding.cycles, SearchOptions().resolution)
    units = scaled(problem, Scale(slot_cycles=slot, rounding="up"))
    fewest = SearchOptions(objective=("stages", "length"), time_limit_seconds=case.seconds)
    alone = search(_modulo_only(units), fewest)
    if alone.schedule is None or alone.status != "optimal":
        return Measured(status="unknown", ops=len(problem.ops), unit_cycles=slot)
    interval, stages = alone.schedule.ii_cycles, stage_count(units, alone.schedule)
    said = [
        f"{solver}, {count} stages: {outcome}"
        for count in (stages, stages + 1)
        for solver, outcome in _outcomes(units, interval, count, case.seconds)
    ]
    return Measured(
        status="done",
        ops=len(problem.ops),
        unit_cycles=slot,
        first=interval,
        stages=stages,
        said=tuple(said),
    )


def _outcomes(units: Problem, interval: int, stages: int, seconds: float) -> Iterator[tuple[str, str]]:
    """Yield what CP-SAT (the default method's model) and Yices (the paper's) say of one joint question."""
    seconds /= 4
    asked = Question(problem=units, interval=interval, stages=stages, rounding="up")
    outcome = answer(asked, (), Effort(work=seconds, seconds=seconds)).outcome
    yield "CP-SAT", "feasible" if outcome == "optimal" else outcome
    reply = joint.answer(JointQuestion(problem=units, interval=interval, length=stages * interval), seconds)
    yield "Yices", {"sat": "feasible", "unsat": "infeasible"}.get(reply.outcome, "unknown")


def main() -> None:
    """Print the row of the case given."""
    case = Case(**json.loads(sys.argv[1]))
    try:
        found = measure(case)
    except TwillError as error:
        found = Measured(status="error", said=(str(error),))
    print(json.dumps(asdict(found)))


if __name__ == "__main__":
    main()
