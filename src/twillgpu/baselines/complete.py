"""What a plan leaves open is searched: the schedule of smallest interval that follows it, or what forbids it.

First in cycles, without the memories (``exact``): that proves a bound, and mostly finds the schedule, too. Where the
memories then do not suffice, in slots, with the solver of ``twillgpu schedule``.
"""

from __future__ import annotations

import time
from dataclasses import replace

from twillgpu.baselines.crowded import crowded, restless
from twillgpu.baselines.evidence import broken
from twillgpu.baselines.exact import Tightest, tightest
from twillgpu.baselines.orders import contradictory, restricted
from twillgpu.baselines.paths import crossing
from twillgpu.baselines.record import Found, Outcome, Plan, Way
from twillgpu.costs.bounds import bounds
from twillgpu.costs.record import Problem, Scale
from twillgpu.costs.scale import scaled
from twillgpu.schedule.ask import ANY_WORK, SMALL_REGISTERS, Progress
from twillgpu.schedule.core import Question
from twillgpu.schedule.finish import drafted, finish
from twillgpu.schedule.model import answer
from twillgpu.schedule.record import Schedule, SearchOptions
from twillgpu.schedule.resolution import default_stages, longest_path, serial_interval, slot_cycles
from twillgpu.schedule.search import search
from twillgpu.schedule.solved import Effort
from twillgpu.schedule.windows import windows
from twillgpu.verify import Verified, check

NEAR = 3
"""Intervals next to the bound, one slot apart, that are tried first."""

GROWTH = 1.3
"""Beyond them, how much larger each interval is than the last."""

COARSER = 3
"""Slots are doubled where an interval has so many times the slots wanted: a plan leaves little to ask."""

FAILURES = 2
"""Intervals below the best one that must fail at a finer resolution before it is left."""

SHARE = 0.4
"""Part of the search's effort that each plan may take in slots."""

EXACT_WORK = 1.5
"""For the smallest interval in cycles."""

EXACT_PRICE = 2
"""So many times the solver's own count of that work is taken off a plan's effort, since it takes so much longer."""

EXACT_OPS = 80
"""Beyond so many ops the integer program in cycles is not stated: it grows with their pairs."""

LONGEST = 2
"""Intervals up to so many times the longest path (or the bound) are looked at in cycles."""

EXPLAIN_WORK = 3.0
"""For each question of what stands against a plan that has no schedule."""

AGAINST: dict[tuple[str, ...], tuple[str, ...]] = {
    ("legality",): ("the legality rules lifted",),
    ("memory_capacity",): ("more SMEM or TMEM",),
    ("register_limit",): ("more registers",),
    ("register_limit", "memory_capacity"): ("more registers", "more SMEM or TMEM"),
    ("capacity",): ("more units",),
}
"""Rules left out, in this order, to see what stands against a plan, and what that stands for."""

STAGES = 5
"""Stages where the options name none: loads up to three iterations ahead, and a tail."""


def complete(problem: Problem, way: Way, plan: Plan, options: SearchOptions, progress: Progress) -> Found:
    """Return the schedule of smallest interval that follows ``plan``, verified under the rules of ``problem``.

    ``options.max_stages`` must be given; it holds for every plan.
    """
    against = broken(problem, dict(plan.groups))
    if against is not None:
        return Found(way=way, outcome="infeasible", rule=against.rule, reason=against.message)
    narrowed = restricted(problem, plan)
    if contradictory(narrowed):
        why = "the order of issue contradicts the dependences of the loop at every interval"
        return Found(way=way, outcome="infeasible", rule="dependence", reason=why)
    limit = options.max_stages or STAGES
    if not plan.orders and plan.max_stages is None:
        return _searched(way, narrowed, options, progress)
    completion = Completion(narrowed, plan, options, min(plan.max_stages or limit, limit), progress)
    schedule = completion.run()
    if schedule is None:
        return _refused(way, completion)
    verdict = check(problem, schedule, max_stages=limit)
    if not isinstance(verdict, Verified):
        return Found(way=way, outcome="infeasible", rule=verdict[0].rule, reason=verdict[0].message)
    return Found(
        way=way,
        outcome="found",
        schedule=schedule,
        proved=schedule.ii_cycles == completion.lower,
        lower_cycles=completion.lower,
        forced=completion.forced(schedule.ii_cycles),
    )


def _searched(way: Way, problem: Problem, options: SearchOptions, progress: Progress) -> Found:
    """Return what the search of ``twillgpu schedule`` makes of a plan that gives groups alone.

    It has its usual number of stages, which finds more in the same time; at the bound, more would not help.
    """
    fewest = default_stages(problem, bounds(problem).binding.cycles)
    stages = min(fewest, options.max_stages or fewest)
    result = search(problem, replace(options, max_stages=stages), progress)
    if result.schedule is None:
        refused: Outcome = "infeasible" if result.status == "infeasible" and stages == options.max_stages else "limit"
        return Found(way=way, outcome=refused, reason=result.bound_reason)
    lower = result.lower_bound_cycles if stages == options.max_stages else result.bounds.binding.cycles
    return Found(
        way=way,
        outcome="found",
        schedule=result.schedule,
        proved=result.schedule.ii_cycles == lower,
        lower_cycles=lower,
        forced=result.bound_reason,
    )


def _refused(way: Way, failed: Completion) -> Found:
    """Return what stands against the plan at the largest interval asked."""
    if failed.said:
        return Found(way=way, outcome="infeasible", rule=failed.rule, reason=failed.said)
    rules = failed.against()
    within = "1 stage" if failed.stages == 1 else f"{failed.stages} stages"
    what = f"no schedule of at most {within} in this order"
    if rules:
        what += f"; with {' and '.join(AGAINST[rules])} there is one"
    elif not failed.known:
        what += " was found before a limit was reached"
    outcome: Outcome = "infeasible" if failed.known else "limit"
    return Found(way=way, outcome=outcome, rule=", ".join(rules), reason=what)


class Completion:
    """The search for the best schedule of one plan.

    Attributes:
        problem: the problem with the plan's restrictions.
        lower: no schedule of the plan has a smaller interval.
        known: so far, the solver could tell every time whether there is a schedule.
        said: why no interval can do, by the analytic bounds; empty where they do not say so.
    """

    def __init__(self, problem: Problem, plan: Plan, options: SearchOptions, stages: int, progress: Progress) -> None:
        found = bounds(crossing(problem, dict(plan.groups)))
        self.problem = problem
        self.plan = plan
        self.options = options
        self.stages = stages
        self.progress = progress
        self.bound = found.binding
        self.lower = found.binding.cycles
        self.known = True
        self.said = "; ".join(found.impossible)
        self.rule = ""
        for rule, says in (("memory_capacity", crowded), ("legality", restless)):
            if not self.said:
                self.said = says(problem)
                self.rule = rule if self.said else ""
        self._last: tuple[int, int] | None = None
        self._slot = slot_cycles(problem, self.lower, options.resolution)
        self._work = SHARE * options.work_limit
        self._end = time.monotonic() + options.time_limit_seconds

    def run(self) -> Schedule | None:
        """Return the best schedule that was found, or ``None``."""
        if self.said:
            return None
        best, failed = self._exact(), self.lower - 1
        if self.said or (best is not None and best.ii_cycles == self.lower):
            return best
        if best is None:
            best, failed = self._climb()
        if best is None:
            return None
        return self._refine(self._close_in(best, failed))

    def forced(self, interval: int) -> str:
        """Return what keeps the plan from a smaller interval: one iteration, a bound, or registers as well."""
        if self.stages == 1 and self.lower > self.bound.cycles:
            return "the length of one iteration in this order"
        if self.lower == self.bound.cycles or interval > self.lower:
            return self.bound.reason
        free = self._tightest(replace(self.problem, registers=None), interval)
        others = "registers" if free.draft is not None and free.draft.ii_cycles < interval else "units and waits"
        return f"{others}; {self.bound.reason}"

    def _exact(self) -> Schedule | None:
        """Return the schedule of smallest interval in cycles, if the memories suffice for it; raise the bound."""
        if len(self.problem.ops) > EXACT_OPS:
            return None
        last = LONGEST * max(self.lower, longest_path(self.problem))
        found = self._tightest(self.problem, last)
        self.lower = found.lower_cycles
        if found.infeasible and last >= serial_interval(self.problem):
            self._say_infeasible(last)
        if found.draft is None:
            return None
        schedule = finish(self.problem, found.draft, lower=self.lower, stages=self.stages)
        # Three uses of a unit at once, and pauses, are not in the program in cycles.
        sound = schedule is not None and isinstance(check(self.problem, schedule, max_stages=self.stages), Verified)
        return schedule if sound else None

    def _say_infeasible(self, last: int) -> None:
        """Say that no interval will do, and whether registers are why."""
        free = self._tightest(replace(self.problem, registers=None), last)
        self.said = "no schedule in this order, at any interval"
        if free.draft is not None:
            self.said, self.rule = f"{self.said}; with more registers there is one", "register_limit"

    def _tightest(self, problem: Problem, last: int) -> Tightest:
        effort = Effort(work=EXACT_WORK, seconds=max(0.1, self._end - time.monotonic()), seed=self.options.seed)
        between = self.lower, max(self.lower, last)
        found = tightest(problem, dict(self.plan.groups), between=between, stages=self.stages, effort=effort)
        self._work -= EXACT_PRICE * found.work
        reached = "none found" if found.draft is None else f"{found.draft.ii_cycles} cycles"
        self.progress(f"in cycles, without memories: {reached}, at least {found.lower_cycles}")
        return found

    def against(self) -> tuple[str, ...]:
        """Return rules that, left out, give a schedule where the last question had none: one, or else two."""
        if self._last is None:
            return ()
        count, slot = self._last
        wide = slot * max(1, round(count / self.options.resolution))
        question = self._question(-(-count * slot // wide), wide)
        for rules in AGAINST:
            effort = Effort(work=EXPLAIN_WORK, seconds=max(0.1, self._end - time.monotonic()))
            if answer(replace(question, without=frozenset(rules)), (), effort).starts:
                return rules
        return ()

    def _climb(self) -> tuple[Schedule | None, int]:
        """Ask for schedules at larger and larger intervals; return the first, and the last interval without one."""
        first = -(-self.lower // self._slot)
        interval, failed = float(first * self._slot), 0
        last = max(self.lower, serial_interval(self.problem))
        while interval - self._slot < last:
            slot = self._slot
            while interval / slot > COARSER * max(self.options.resolution, self.lower / self._slot):
                slot *= 2
            count = -(-round(interval) // slot)
            near = interval < (first + NEAR - 1) * self._slot
            # Beyond the bound, wide slots first: they are answered fast, and the polish makes up for them.
            found = (None if near else self._find(-(-count // 2), 2 * slot)) or self._find(count, slot)
            if found is not None:
                return found, failed
            if self._spent():
                self.known = False
                return None, failed
            failed = count * slot
            interval = interval + self._slot if near else interval * GROWTH
        return None, failed

    def _close_in(self, best: Schedule, failed: int) -> Schedule:
        """Look between the best interval and the last one that failed, halving the distance each time."""
        low, slot = max(failed, self.lower - 1) // self._slot, self._slot
        while not self._spent():
            high = -(-best.ii_cycles // slot)
            if high - low <= 1:
                break
            found = self._find((low + high) // 2, slot)
            low = low if found is not None else (low + high) // 2
            best = self._better(best, found)
        return best

    def _refine(self, best: Schedule) -> Schedule:
        """Look just below the best interval in slots of half the size."""
        slot, failures = max(1, self._slot // 2), 0
        while failures < FAILURES and best.ii_cycles > self.lower and not self._spent():
            found = self._find(-(-(best.ii_cycles - 1) // slot) - failures, slot)
            failures = 0 if found is not None and found.ii_cycles < best.ii_cycles else failures + 1
            best = self._better(best, found)
        return best

    @staticmethod
    def _better(best: Schedule, found: Schedule | None) -> Schedule:
        return found if found is not None and found.ii_cycles < best.ii_cycles else best

    def _find(self, count: int, slot: int) -> Schedule | None:
        """Return a schedule at ``count`` slots or less: of few stages first, which are found faster."""
        question = self._question(count, slot)
        fewest = next((s for s in range(1, self.stages) if windows(question.problem, count, s)), self.stages)
        for stages in sorted({fewest, min(fewest + 1, self.stages), self.stages}):
            schedule = self._ask(replace(question, stages=stages), slot)
            if schedule is not None or self._spent():
                return schedule
        self._last = count, slot
        return None

    def _ask(self, question: Question, slot: int) -> Schedule | None:
        """Return a schedule that answers ``question``; with places in the model only where it needs them."""
        for asked in (question, replace(question, placement=True, small_registers=0)):
            seconds = max(0.1, self._end - time.monotonic())
            reply = answer(asked, (), Effort(work=ANY_WORK, seconds=seconds, seed=self.options.seed))
            self._work -= reply.work
            self.known = self.known and (reply.outcome != "unknown" or asked.stages < self.stages)
            within = "1 stage" if asked.stages == 1 else f"{asked.stages} stages"
            self.progress(f"{question.interval} slots of {slot} cycles, {within}: {reply.outcome}")
            if not reply.starts:
                return None
            draft = drafted(reply.starts, reply.groups, slots=question.interval, slot_cycles=slot)
            schedule = finish(self.problem, draft, lower=self.lower, stages=self.stages)
            if schedule is not None:
                return schedule
        self.known = False
        return None

    def _question(self, count: int, slot: int) -> Question:
        return Question(
            problem=scaled(self.problem, Scale(slot_cycles=slot, rounding="up")),
            interval=count,
            stages=self.stages,
            rounding="exact" if slot == 1 else "up",
            groups=self.plan.groups,
            small_registers=0 if slot == 1 else SMALL_REGISTERS,
        )

    def _spent(self) -> bool:
        return self._work <= 0 or time.monotonic() >= self._end
