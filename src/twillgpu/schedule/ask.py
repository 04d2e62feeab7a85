"""Questions to the solver at one interval, with the effort they cost: find a schedule, refute, explain."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from twillgpu.costs.bounds import bounds
from twillgpu.costs.record import Problem, Scale
from twillgpu.costs.scale import scaled
from twillgpu.schedule.core import Question
from twillgpu.schedule.descent import descend
from twillgpu.schedule.finish import drafted, finish
from twillgpu.schedule.iterative import iterative_schedule
from twillgpu.schedule.measure import stage_count
from twillgpu.schedule.model import Answer, answer
from twillgpu.schedule.partition import canonical
from twillgpu.schedule.reasons import families
from twillgpu.schedule.record import Attempt, Schedule, SearchOptions
from twillgpu.schedule.solved import Effort
from twillgpu.schedule.symmetry import families as sub_tiles
from twillgpu.schedule.windows import windows

SMALL_REGISTERS = 2
"""Values of at most so many registers per thread (row statistics) are at first counted once per group."""

USUAL_SIZE = 3500
"""Ops x slots x stages of the problems that the efforts below are for; larger ones get more in proportion."""

# Deterministic work units of the solver (about a second each on an idle core).
FIRST_WORK = 1.5
"""For the best schedule at one interval."""
ONCE, MORE = range(1), range(1, 9)
"""Seeds, from the user's on: one try; more of them for the same at the bound itself. Solving times spread so widely
that several short tries are better than a long one."""
ANY_WORK = 1.0
"""For one try at any schedule at one interval."""
ANY_TRIES = 3
"""Tries at one interval, each with another seed."""
BETTER_WORK = 1.0
"""For better schedules than a known one."""
GIVEN_WORK = 1.0
"""For any schedule in given groups."""
SKEWED_WORK = 3.5
"""For any schedule in which sub-tiles follow each other at equal distances."""
ROOMY_STAGES, ROOMY_WORK = 2, 4.0
"""Stages, and effort, for any schedule at all where the effort of a search is spent."""
TRY_WORK = 0.5
"""For one partition near a known one."""
IMPROVE_WORK = 2.0
"""For all of them."""
COMPACT_WORK = 0.2
"""For shorter lifetimes in the groups of the best schedule."""
REFUTE_WORK = 8.0
"""For the refutation of one interval."""
EXPLAIN_WORK = 0.5
"""For each rule left out to explain a refutation."""


LONG = 60_000
"""Ops x slots x stages beyond which a heuristic schedule of the least interval is taken as it is."""

Progress = Callable[[str], None]
"""Called with one line of text per step of a search."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A schedule or ``None``; whether its secondary objective is proved; whether ``None`` is a definite no."""

    schedule: Schedule | None
    proved: bool
    known: bool


class Asker:
    """Asks, counts effort, and reports progress.

    Attributes:
        attempts: every solver call so far.
        work: deterministic work units spent.
        last_refuted: interval in slots, and slot, of the last refutation.
    """

    def __init__(self, problem: Problem, options: SearchOptions, stages: int, progress: Progress) -> None:
        self.problem = problem
        self.options = options
        self.stages = stages
        self.progress = progress
        self.attempts: list[Attempt] = []
        self.work = 0.0
        self._started = time.monotonic()
        points = len(problem.ops) * options.resolution * stages
        self._size = max(1.0, points / USUAL_SIZE)
        self._refuted: dict[tuple[int, int], bool] = {}
        self.last_refuted = (1, 1)

    def spent(self) -> bool:
        """Return whether the work or the time of this search is used up."""
        return self.work >= self.options.work_limit or self._seconds_left() <= 0

    def find(self, count: int, slot: int, lower: int) -> Found:
        """Look for a schedule at ``count`` slots or less.

        Pure groups first (no op beside ops of another kind): where such a schedule exists, the best one is among
        them, since mixing is what the objective avoids before all else. Then any groups.
        """
        if not self.possible(count, slot):
            return Found(schedule=None, proved=False, known=True)
        placed = self.iterative(count, slot, lower) if self.plain() else None
        if placed is not None and (placed.proved or self.rough(count)):
            return placed
        if self.rough(count):
            return self.find_any(count, slot, lower, 0)
        mixing = self._mixing()
        found = self._find(self._question(count, slot, "up", pure=mixing), slot, lower)
        if mixing and found.schedule is None and found.known:
            found = self._find(self._question(count, slot, "up"), slot, lower)
        return placed if placed is not None and found.schedule is None else found

    def find_again(self, count: int, slot: int, lower: int) -> Found:
        """Look for any schedule in pure groups at ``count`` slots, with several other seeds, then for better ones."""
        question = self._question(count, slot, "up", pure=self._mixing())
        reply = self._ask("find any", question, (), slot, ANY_WORK, MORE)
        if not reply.starts:
            return Found(schedule=None, proved=False, known=reply.outcome != "unknown")
        groups = canonical(self.problem, reply.groups)
        known = tuple((name, start, groups[name]) for name, start in reply.starts.items())
        asked = replace(question, known=known)
        better = self._ask("find better", asked, self.options.objective, slot, BETTER_WORK)
        reply = better if better.starts else reply
        schedule = self._finish(reply, question, slot, lower) or self._placed(reply, question, slot, lower)[0]
        return Found(schedule=schedule, proved=False, known=True)

    def possible(self, count: int, slot: int) -> bool:
        """Return whether the bounds of the problem rounded up leave room for a schedule at ``count`` slots."""
        return bounds(scaled(self.problem, Scale(slot_cycles=slot, rounding="up"))).binding.cycles <= count

    def plain(self) -> bool:
        """Return whether only time and units matter: one group, and no limit on registers."""
        fits = all(op.warps <= self.problem.groups.warps[-1] for op in self.problem.ops)
        limited = any(pair.relation in ("apart", "pause") for pair in self.problem.legality)
        return self.problem.groups.max == 1 and self.problem.registers is None and fits and not limited

    def rough(self, count: int) -> bool:
        """Return whether the heuristic settles the secondary objective: a model for nothing else costs too much."""
        return self.plain() and len(self.problem.ops) * count * self.stages > LONG

    def iterative(self, count: int, slot: int, lower: int) -> Found | None:
        """Look for a schedule in one group without the solver.

        It is proved best where fewer stages are too few for the longest path; nothing else is left to choose.
        """
        started = time.monotonic()
        question = self._question(count, slot, "up")
        starts = iterative_schedule(question.problem, count, self.stages)
        seconds = time.monotonic() - started
        self._record("iterative", count, slot, "feasible" if starts else "unknown", seconds)
        if starts is None:
            return None
        groups = dict.fromkeys(starts, 0)
        first = min(starts.values())
        starts = {name: start - first for name, start in starts.items()}
        reply = Answer(outcome="feasible", starts=starts, groups=groups, work=0.0, seconds=seconds)
        schedule = self._finish(reply, question, slot, lower)
        if schedule is None:
            return None
        fewer = stage_count(self.problem, schedule) - 1
        return Found(schedule=schedule, proved=windows(self.problem, schedule.ii_cycles, fewer) is None, known=True)

    def skewing(self) -> bool:
        """Return whether to try schedules in which sub-tiles follow each other at equal distances first."""
        return self._size > 1 and bool(sub_tiles(self.problem))

    def find_skewed(self, count: int, slot: int, lower: int) -> Schedule | None:
        """Look for any schedule at ``count`` slots in which sub-tiles follow each other at equal distances."""
        skew = count // len(sub_tiles(self.problem)[0])
        question = replace(self._question(count, slot, "up", pure=self._mixing()), skew=skew, spare=True)
        reply = self._ask("find skewed", question, (), slot, SKEWED_WORK)
        return self._finish(reply, question, slot, lower) if reply.starts else None

    def find_given(self, schedule: Schedule, count: int, slot: int, lower: int) -> Schedule | None:
        """Look for any schedule at ``count`` slots in the groups of ``schedule``."""
        groups = canonical(self.problem, {op.name: op.group for op in schedule.ops})
        question = replace(self._question(count, slot, "up"), groups=tuple(groups.items()))
        reply = self._ask("find given groups", question, (), slot, GIVEN_WORK)
        return self._finish(reply, question, slot, lower) if reply.starts else None

    def find_any(self, count: int, slot: int, lower: int, turn: int) -> Found:
        """Look for any schedule at ``count`` slots, with several seeds from ``turn`` on; no objective."""
        question = replace(self._question(count, slot, "up", pure=self._mixing()), spare=True)
        reply = self._ask("find any", question, (), slot, ANY_WORK, range(turn, turn + ANY_TRIES))
        schedule = self._finish(reply, question, slot, lower) if reply.starts else None
        return Found(schedule=schedule, proved=False, known=reply.outcome != "unknown")

    def find_roomy(self, count: int, slot: int, lower: int) -> Schedule | None:
        """Look for any schedule of few stages at ``count`` slots, whatever effort was spent before."""
        stages = min(ROOMY_STAGES, self.stages)
        question = replace(self._question(count, slot, "up"), stages=stages, spare=True)
        reply = answer(question, (), Effort(work=ROOMY_WORK, seconds=max(0.1, self._seconds_left())))
        self._record("find roomy", count, slot, reply.outcome, reply.seconds)
        return self._finish(reply, question, slot, lower) if reply.starts else None

    def in_time(self) -> bool:
        """Return whether wall-clock time is left."""
        return self._seconds_left() > 0

    def improve(self, schedule: Schedule, count: int, slot: int) -> Schedule:
        """Return a schedule at ``count`` slots of a better partition near that of ``schedule``, or itself."""
        best = schedule
        limit = self.work + IMPROVE_WORK
        order = tuple(name for name in self.options.objective if name == "stages")

        def feasible(groups: dict[str, int]) -> bool:
            nonlocal best
            question = replace(self._question(count, slot, "up"), groups=tuple(groups.items()))
            reply = self._ask("improve", question, order, slot, TRY_WORK)
            found = self._finish(reply, question, slot, schedule.ii_cycles) if reply.starts else None
            if found is None or found.ii_cycles > schedule.ii_cycles:
                return False
            best = found
            return True

        def spent() -> bool:
            return self.work >= limit or self.spent()

        groups = canonical(self.problem, {op.name: op.group for op in schedule.ops})
        descend(self.problem, groups, self.options.objective, feasible, spent)
        return best

    def compact(self, schedule: Schedule, count: int, slot: int) -> Schedule:
        """Return a schedule in the same groups whose values live shorter, or ``schedule`` itself.

        The interval must not grow, nor the stages.
        """
        if self.rough(count):
            return schedule
        groups = canonical(self.problem, {op.name: op.group for op in schedule.ops})
        question = replace(self._question(count, slot, "up"), groups=tuple(groups.items()))
        reply = self._ask("compact", question, ("stages", "lifetimes"), slot, COMPACT_WORK)
        found = self._finish(reply, question, slot, schedule.ii_cycles) if reply.starts else None
        if found is None or found.ii_cycles > schedule.ii_cycles:
            return schedule
        more = stage_count(self.problem, found) > stage_count(self.problem, schedule)
        return schedule if more else found

    def refuted(self, count: int, slot: int) -> bool:
        """Return whether no interval of more than ``count - 1`` and at most ``count`` slots has a schedule."""
        if (count, slot) not in self._refuted:
            self._ask("refute", self._question(count, slot, "down"), (), slot, REFUTE_WORK)
        return self._refuted[count, slot]

    def families(self, count: int, slot: int) -> tuple[str, ...]:
        """Return the rules each of which alone, left out, lifts the refutation at ``count`` slots."""
        self.progress(f"{count * slot} cycles: which rules force the refutation")
        started = time.monotonic()
        found = families(self._question(count, slot, "down"), self._effort(EXPLAIN_WORK))
        self._record("explain", count, slot, " ".join(found) or "none alone", time.monotonic() - started)
        return found

    def _question(self, count: int, slot: int, rounding: Literal["up", "down"], *, pure: bool = False) -> Question:
        exact = slot == 1
        return Question(
            problem=scaled(self.problem, Scale(slot_cycles=slot, rounding=rounding)),
            interval=count,
            stages=self.stages,
            rounding="exact" if exact else rounding,
            pure=pure,
            small_registers=0 if exact else SMALL_REGISTERS,
        )

    def _find(self, question: Question, slot: int, lower: int) -> Found:
        """Solve and finish; where registers or places fail in cycles, once more with all of them in the model:
        in the groups found, then in any.
        """
        known = True
        for asked in (question, replace(question, placement=True, small_registers=0)):
            reply = self._ask("find", asked, self.options.objective, slot, FIRST_WORK)
            proved = reply.outcome == "optimal"
            known = known and reply.outcome != "unknown"
            schedule = self._finish(reply, asked, slot, lower) if reply.starts else None
            if reply.starts and schedule is None and not asked.placement:
                schedule, kept = self._placed(reply, question, slot, lower)
                proved = proved and kept
            if schedule is not None or not reply.starts:
                return Found(schedule=schedule, proved=proved, known=known)
        return Found(schedule=None, proved=False, known=known)

    def _finish(self, reply: Answer, question: Question, slot: int, lower: int) -> Schedule | None:
        draft = drafted(reply.starts, reply.groups, slots=question.interval, slot_cycles=slot)
        return finish(self.problem, draft, lower=lower, stages=self.stages)

    def _placed(self, reply: Answer, question: Question, slot: int, lower: int) -> tuple[Schedule | None, bool]:
        """Return a schedule in the groups found, with all registers and places, and whether it needs no more stages
        than the one found, whose objective then is its own.
        """
        groups = tuple(canonical(self.problem, reply.groups).items())
        given = replace(question, groups=groups, placement=True, small_registers=0)
        order = tuple(name for name in self.options.objective if name == "stages")
        placed = self._ask("find places", given, order, slot, TRY_WORK)
        schedule = self._finish(placed, given, slot, lower) if placed.starts else None
        fewest = _stages(question.problem, reply, question.interval)
        return schedule, placed.starts != {} and _stages(question.problem, placed, question.interval) <= fewest

    def _mixing(self) -> bool:
        return self.problem.groups.max > 1 and self.options.objective[:1] == ("mixed",)

    def _ask(
        self,
        purpose: str,
        question: Question,
        objective: tuple[str, ...],
        slot: int,
        work: float,
        turns: range = ONCE,
    ) -> Answer:
        reply = answer(question, objective, self._effort(work, turns))
        self.work += reply.work
        narrow = question.pure or question.placement or question.spare or question.skew or question.groups
        general = not narrow and question.rounding != "up"
        if general:
            self._refuted[question.interval, slot] = reply.outcome == "infeasible"
        if general and reply.outcome == "infeasible":
            self.last_refuted = (question.interval, slot)
        self._record(purpose, question.interval, slot, reply.outcome, reply.seconds)
        return reply

    def _effort(self, work: float, turns: range = ONCE) -> Effort:
        left = max(0.1, self.options.work_limit - self.work)
        work = min(self._size * work, left)
        return Effort(
            work=work,
            seconds=max(0.1, self._seconds_left()),
            seed=self.options.seed + turns.start,
            tries=max(1, min(len(turns), round(left / work))),
        )

    def _seconds_left(self) -> float:
        return self.options.time_limit_seconds - (time.monotonic() - self._started)

    def _record(self, purpose: str, count: int, slot: int, outcome: str, seconds: float) -> None:
        self.attempts.append(
            Attempt(
                purpose=purpose, slots=count, slot_cycles=slot, stages=self.stages, outcome=outcome, seconds=seconds
            )
        )
        self.progress(f"{purpose}: {count} slots of {slot} cycles: {outcome} ({seconds:.1f} s)")


def _stages(problem: Problem, reply: Answer, interval: int) -> int:
    """Return the stages of a solution, in slots."""
    ends = (reply.starts[op.name] + max(1, op.latency_cycles) for op in problem.ops)
    return -(-max(ends) // interval)
