"""What a plan leaves open is searched: the schedule of smallest interval that follows it, or what forbids it."""

from __future__ import annotations

import time
from dataclasses import replace

from twillgpu.baselines.evidence import broken
from twillgpu.baselines.orders import contradictory, restricted
from twillgpu.baselines.record import Found, Outcome, Plan, Way
from twillgpu.costs.bounds import bounds
from twillgpu.costs.record import Problem, Scale
from twillgpu.costs.scale import scaled
from twillgpu.schedule.ask import ANY_WORK, SMALL_REGISTERS, Progress
from twillgpu.schedule.core import Question
from twillgpu.schedule.finish import finish
from twillgpu.schedule.model import answer
from twillgpu.schedule.record import Schedule, SearchOptions
from twillgpu.schedule.resolution import serial_interval, slot_cycles
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

SHARE = 0.75
"""Part of the search's effort that each plan may take."""

EXPLAIN_WORK = 3.0
"""For each question of what stands against a plan that has no schedule."""

AGAINST: dict[tuple[str, ...], tuple[str, ...]] = {
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
    completion = Completion(narrowed, plan, options, min(plan.max_stages or limit, limit), progress)
    schedule = completion.run()
    if schedule is None:
        return _refused(way, completion)
    verdict = check(problem, schedule, max_stages=limit)
    if not isinstance(verdict, Verified):
        return Found(way=way, outcome="infeasible", rule=verdict[0].rule, reason=verdict[0].message)
    return Found(way=way, outcome="found", schedule=schedule, proved=schedule.ii_cycles == completion.lower)


def _refused(way: Way, failed: Completion) -> Found:
    """Return what stands against the plan at the largest interval asked."""
    rules = failed.against()
    within = "1 stage" if failed.stages == 1 else f"{failed.stages} stages"
    what = f"no schedule of at most {within} in this order"
    if rules:
        what += f"; with {' and '.join(AGAINST[rules])} there is one"
    elif not failed.known:
        what += " was found before a limit was reached"
    outcome: Outcome = "infeasible" if failed.known else "limit"
    return Found(way=way, outcome=outcome, rule=", ".join(rules), reason=failed.said or what)


class Completion:
    """The search for the best schedule of one plan; it asks only for schedules, never for refutations.

    Attributes:
        problem: the problem with the plan's restrictions.
        lower: no schedule of the plan has a smaller interval, by the analytic bounds.
        known: so far, the solver could tell every time whether there is a schedule.
        said: why no interval can do, by the analytic bounds; empty where they do not say so.
    """

    def __init__(self, problem: Problem, plan: Plan, options: SearchOptions, stages: int, progress: Progress) -> None:
        found = bounds(problem)
        self.problem = problem
        self.plan = plan
        self.options = options
        self.stages = stages
        self.progress = progress
        self.lower = found.binding.cycles
        self.known = True
        self.said = "; ".join(found.impossible)
        self._last: tuple[int, int] | None = None
        self._slot = slot_cycles(problem, self.lower, options.resolution)
        self._work = SHARE * options.work_limit
        self._end = time.monotonic() + options.time_limit_seconds

    def run(self) -> Schedule | None:
        """Return the best schedule that was found, or ``None``."""
        if self.said:
            return None
        best, failed = self._climb()
        if best is not None:
            best = self._close_in(best, failed)
            best = self._refine(best)
        return best

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
            limits = {"slots": question.interval, "slot_cycles": slot, "lower": self.lower, "stages": self.stages}
            schedule = finish(self.problem, reply, **limits)
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
