"""The paper's Algorithm 1: for each interval a modulo schedule, then the joint problem at growing lengths."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from importlib.metadata import version

from twillgpu.costs.bounds import bounds
from twillgpu.costs.record import Problem, Scale
from twillgpu.costs.scale import scaled
from twillgpu.schedule.ask import Progress
from twillgpu.schedule.finish import drafted, finish
from twillgpu.schedule.measure import measured, stage_count
from twillgpu.schedule.paper.cycles import in_cycles
from twillgpu.schedule.paper.joint import answer
from twillgpu.schedule.paper.modulo import ModuloSchedule, shortest
from twillgpu.schedule.paper.normalise import Normalised, costs_of, in_units, normalised
from twillgpu.schedule.paper.partition import broken_rules
from twillgpu.schedule.paper.record import IntegerSolver, JointAnswer, JointQuestion, PaperOptions
from twillgpu.schedule.paper.solve import yices_program, yices_version
from twillgpu.schedule.record import Attempt, Refuted, Schedule, SearchResult, Status
from twillgpu.schedule.resolution import longest_path, serial_interval, slot_cycles

SOLVERS: dict[IntegerSolver, str] = {"highs": "Yices and HiGHS", "scip": "Yices and SCIP"}
NORMALISE_SECONDS = 30.0
"""For each of the two programs of the normalisation."""
SHORTEN_SECONDS = 20.0
"""For each modulo schedule where its exact length decides nothing."""


def search(problem: Problem, options: PaperOptions, progress: Progress | None = None) -> SearchResult:
    """Return what the paper's method finds, as a schedule in cycles where there is one, with what is proved.

    ``progress`` is called with one line of text per solver call. The time limit of ``options.search`` holds for
    the whole search, also inside the solvers. Limits and infeasibility are statuses of the result; what the method
    found in its own units stands in ``remarks``.

    Raises:
        InputError: Yices, HiGHS or PySCIPOpt is not installed; or a circuit of distance 0 has a positive latency.
    """
    run = _Run(problem, options, progress or (lambda _: None))
    if not run.bounds.impossible or options.literal:
        run.loop()
    return run.result()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A joint solution at one interval, in units."""

    interval: int
    length: int
    answer: JointAnswer


class _Run:
    """State of one search.

    Attributes:
        problem: in cycles.
        units: the same in the units of the search.
        exact: whether these units are cycles, so that what is refuted in units is refuted in cycles.
    """

    def __init__(self, problem: Problem, options: PaperOptions, progress: Progress) -> None:
        self.started = time.monotonic()
        self.problem, self.options, self.progress = problem, options, progress
        yices_program()
        self.bounds = bounds(problem)
        self.lower = self.bounds.binding.cycles
        self.attempts: list[Attempt] = []
        self.remarks: list[str] = []
        self.slot = 1
        self.costs: Normalised | None = None
        self.units = self._in_units()
        self.exact = self.slot == 1 and self.costs is None and not options.literal
        self.found: _Found | None = None
        self.schedule: Schedule | None = None
        self.stages: dict[int, int] = {}
        self.refuted: list[int] = []
        self.unknown = False
        self.shortest = 1

    def _in_units(self) -> Problem:
        costs = costs_of(self.problem)
        if self.options.units and costs:
            seconds = min(NORMALISE_SECONDS, self.seconds_left())
            found = normalised(costs, self.options.units, largest=not self.options.literal, seconds=seconds)
            self._say(found.remark())
            if all(cycles == units for cycles, units in found.costs):
                return self.problem
            self.costs = found
            self.slot = max(1, round(found.cycles_per_unit))
            return in_units(self.problem, found.units)
        self.slot = slot_cycles(self.problem, self.lower, self.options.search.resolution)
        return scaled(self.problem, Scale(slot_cycles=self.slot, rounding="up"))

    def _say(self, remark: str) -> None:
        self.remarks.append(remark)
        self.progress(remark)

    def seconds_left(self) -> float:
        """Return the seconds that are left of the time limit."""
        return self.options.search.time_limit_seconds - (time.monotonic() - self.started)

    def loop(self) -> None:
        """Try every interval from the smallest (literal: from 1) until one has a schedule, or time is over."""
        first = 1 if self.options.literal else bounds(self.units).binding.cycles
        last = max(first, serial_interval(self.units))
        for interval in range(first, last + 1):
            if self.seconds_left() <= 0:
                return
            modulo = self._modulo(interval)
            self.found = self._joint(interval) if modulo.outcome != "infeasible" else None
            if self.found is not None:
                self.schedule = self._in_cycles(self.found) or self._with_places(self.found)
            if self.schedule is not None or (self.found is not None and not self.exact):
                return
            self.unknown = self.unknown or self.found is not None
            if not self.unknown:
                self.refuted.append(interval)

    def _modulo(self, interval: int) -> ModuloSchedule:
        """OPTIMAL-MODULO-SCHEDULE(G, I)."""
        started = time.monotonic()
        half = self.seconds_left() / 2
        limit = half if self.options.literal else min(SHORTEN_SECONDS, half)
        found = shortest(
            self.units,
            interval,
            seconds=limit,
            solver=self.options.integer_solver,
            stages=self.options.search.max_stages,
        )
        stages = -(-found.length // interval) if found.starts else self.options.search.max_stages or 0
        self._record("modulo schedule", interval, stages, found.outcome, time.monotonic() - started)
        self.unknown = self.unknown or found.outcome == "unknown"
        if self.options.literal and found.outcome in ("feasible", "unknown"):
            self._say(f"the integer program ran out of time at I = {interval}: L may not start at its smallest")
        if found.outcome != "infeasible":
            self.stages[interval] = self.options.search.max_stages or stages or self._usual_stages(interval)
            self.shortest = found.length or (self.stages[interval] - 1) * interval + 1
        return found

    def _usual_stages(self, interval: int) -> int:
        """Return the stages to try where the integer program could not tell: one more than the path needs."""
        return -(-longest_path(self.units) // interval) + 1

    def _joint(self, interval: int) -> _Found | None:
        """SWP-AND-WS(G, M, I, L) for L from LEN(M) while ceil(L / I) stays the same.

        Where a solution at one length is one at any larger length, the largest settles all of them.
        """
        longest = self.stages[interval] * interval
        lengths = range(self.shortest, longest + 1) if self.options.literal else range(longest, longest + 1)
        for length in lengths:
            reply = self._ask(interval, length)
            if reply.outcome == "sat":
                return _Found(interval=interval, length=length, answer=reply)
            if reply.outcome == "unknown":
                self.unknown = True
                return None
        return None

    def _with_places(self, found: _Found) -> Schedule | None:
        """Ask once more for a solution whose values have places, where the sums of bytes were not enough."""
        if self.options.literal or not self.units.memories or self.seconds_left() <= 0:
            return None
        reply = self._ask(found.interval, found.length, places=True)
        return self._in_cycles(replace(found, answer=reply)) if reply.outcome == "sat" else None

    def _ask(self, interval: int, length: int, *, places: bool = False) -> JointAnswer:
        question = JointQuestion(
            problem=self.units,
            interval=interval,
            length=length,
            literal=self.options.literal,
            warps=self.options.warps,
            places=places,
        )
        reply = answer(question, self.seconds_left())
        purpose = f"joint{' with places' if places else ''}, L = {length}"
        self._record(purpose, interval, -(-length // interval), reply.outcome, reply.seconds)
        return reply

    def _record(self, purpose: str, interval: int, stages: int, outcome: str, seconds: float) -> None:
        self.attempts.append(
            Attempt(
                purpose=purpose,
                slots=interval,
                slot_cycles=self.slot,
                stages=stages,
                outcome=outcome,
                seconds=seconds,
            )
        )
        self.progress(f"{purpose}: I = {interval} in units of about {self.slot} cycles: {outcome} ({seconds:.1f} s)")

    def _in_cycles(self, found: _Found) -> Schedule | None:
        """Return the schedule in cycles, or ``None`` with a remark that says that there is none."""
        unit = "cycles" if self.slot == 1 and self.costs is None else f"units of about {self.slot} cycles"
        stages = self.stages[found.interval]
        self._say(f"joint solution: I = {found.interval}, L = {found.length} in {unit}, {plural(stages)}")
        broken = broken_rules(self.problem, found.answer.groups)
        if broken:
            self._say(f"not verified: the groups of the solution break {'; '.join(broken)}")
            return None
        schedule = self._polished(found, stages)
        if schedule is None:
            self._say(
                f"not verified: the solution at I = {found.interval} has no schedule in cycles under all rules of "
                "docs/formulation.md in the same order (registers, places in memory, or waits do not fit)"
            )
        return schedule

    def _polished(self, found: _Found, stages: int) -> Schedule | None:
        if self.costs is not None or self.options.literal:
            return in_cycles(
                self.problem,
                found.interval,
                found.answer,
                cycles_per_unit=self.costs.cycles_per_unit if self.costs else self.slot,
                lower=self.lower,
                stages=stages,
            )
        starts, groups = found.answer.starts, found.answer.groups
        draft = drafted(starts, groups, slots=found.interval, slot_cycles=self.slot)
        return finish(self.problem, draft, lower=self.lower, stages=stages)

    def result(self) -> SearchResult:
        """Return the record that the default method returns, too."""
        options, schedule = self.options, self.schedule
        stages = self._claimed()
        lower, refuted = self._proved(stages)
        impossible = self.bounds.impossible
        return SearchResult(
            status=self._status(lower),
            schedule=schedule,
            bounds=self.bounds,
            lower_bound_cycles=lower,
            bound_reason="; ".join(impossible) or refuted[-1].reason if refuted else self.bounds.binding.reason,
            max_stages=stages,
            objective=measured(self.problem, schedule, options.search.objective) if schedule else (),
            objective_proved=False,
            refuted=refuted,
            attempts=tuple(self.attempts),
            method="paper",
            solver=SOLVERS[options.integer_solver],
            version=versions(options.integer_solver),
            options=options.search,
            slot_cycles=self.slot,
            seconds=time.monotonic() - self.started,
            remarks=tuple(self.remarks),
        )

    def _claimed(self) -> int:
        """Return the stages over which a claim is made: those asked for, or those of the solution found."""
        found = self.options.search.max_stages or max(self.stages.values(), default=1)
        if self.found is not None:
            found = self.stages[self.found.interval]
        return max(found, stage_count(self.problem, self.schedule)) if self.schedule else found

    def _proved(self, stages: int) -> tuple[int, tuple[Refuted, ...]]:
        """Return the proved lower bound in cycles, and what is refuted, from 1 up to it without a gap.

        A joint problem that was refuted at fewer stages than the claim is about proves nothing for the claim.
        """
        lower = self.lower
        for interval in self.refuted if self.exact else ():
            if interval == lower and self.stages.get(interval, stages) >= stages:
                lower += 1
        ranges = []
        if self.lower > 1:
            ranges.append(_range(1, self.lower - 1, self.bounds.binding.reason))
        if lower > self.lower:
            reason = f"no schedule of at most {plural(stages)} (integer program and SMT)"
            ranges.append(_range(self.lower, lower - 1, reason))
        return lower, tuple(ranges)

    def _status(self, lower: int) -> Status:
        """Return the status in cycles under the rules of docs/formulation.md."""
        if self.bounds.impossible and not self.options.literal:
            return "infeasible"
        if self.schedule is not None:
            return "optimal" if self.schedule.ii_cycles == lower else "feasible"
        return "infeasible" if self.exact and lower > serial_interval(self.problem) else "limit"


def plural(stages: int) -> str:
    """Return a number of stages in words."""
    return "1 stage" if stages == 1 else f"{stages} stages"


def _range(first: int, last: int, reason: str) -> Refuted:
    return Refuted(first_cycles=first, last_cycles=last, reason=reason, families=())


def versions(solver: IntegerSolver) -> str:
    """Return the versions of the solvers that a search uses."""
    return f"{yices_version()}, {version('highspy' if solver == 'highs' else 'pyscipopt')}"
