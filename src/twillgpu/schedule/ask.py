"""Questions to the solver at one interval, with the effort they cost: find a schedule, refute, explain."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from twillgpu.costs.bounds import bounds
from twillgpu.costs.record import Problem, Scale
from twillgpu.costs.scale import scaled
from twillgpu.schedule.core import Question
from twillgpu.schedule.finish import finish
from twillgpu.schedule.model import Answer, Effort, answer
from twillgpu.schedule.reasons import families
from twillgpu.schedule.record import Attempt, Schedule, SearchOptions

SMALL_REGISTERS = 2
"""Values of at most so many registers per thread (row statistics) are at first counted once per group."""

EXPLAIN_WORK = 0.5
"""Deterministic work units for each rule left out to explain a refutation."""


class Asker:
    """Asks, counts effort, and reports progress.

    Attributes:
        attempts: every solver call so far.
    """

    def __init__(
        self, problem: Problem, options: SearchOptions, stages: int, progress: Callable[[str], None]
    ) -> None:
        self.problem = problem
        self.options = options
        self.stages = stages
        self.progress = progress
        self.attempts: list[Attempt] = []
        self._work = 0.0
        self._started = time.monotonic()
        self._refuted: dict[tuple[int, int], bool] = {}

    def spent(self) -> bool:
        """Return whether the work or the time of this search is used up."""
        return self._work >= self.options.work_limit or self._seconds_left() <= 0

    def find(self, count: int, slot: int, lower: int) -> tuple[Schedule | None, bool]:
        """Return a schedule at ``count`` slots or less, and whether its secondary objective is proved.

        Pure groups first (no op beside ops of another kind): where such a schedule exists, the best one is among
        them, since mixing is what the objective avoids before all else. Then any groups.
        """
        if bounds(scaled(self.problem, Scale(slot_cycles=slot, rounding="up"))).binding.cycles > count:
            return None, False
        mixing = self.problem.groups.max > 1 and self.options.objective[:1] == ("mixed",)
        for pure in (True, False) if mixing else (False,):
            question = self._question(count, slot, "up", pure=pure)
            found = self._find(question, slot, lower)
            if found[0] is not None:
                return found
        return None, False

    def refuted(self, count: int, slot: int) -> bool:
        """Return whether no interval of more than ``count - 1`` and at most ``count`` slots has a schedule."""
        if (count, slot) not in self._refuted:
            self._ask("refute", self._question(count, slot, "down"), (), slot)
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

    def _find(self, question: Question, slot: int, lower: int) -> tuple[Schedule | None, bool]:
        """Solve and finish; where registers or places fail in cycles, once more with all of them in the model."""
        for asked in (question, replace(question, placement=True, small_registers=0)):
            reply = self._ask("find", asked, self.options.objective, slot)
            if not reply.starts:
                return None, False
            schedule = finish(
                self.problem, reply, slots=asked.interval, slot_cycles=slot, lower=lower, stages=self.stages
            )
            if schedule is not None:
                return schedule, reply.outcome == "optimal"
        return None, False

    def _ask(self, purpose: str, question: Question, objective: tuple[str, ...], slot: int) -> Answer:
        reply = answer(question, objective, self._effort(self.options.work_limit))
        self._work += reply.work
        general = not question.pure and not question.placement and question.rounding != "up"
        if general:
            self._refuted[question.interval, slot] = reply.outcome == "infeasible"
        self._record(purpose, question.interval, slot, reply.outcome, reply.seconds)
        return reply

    def _effort(self, work: float) -> Effort:
        left = max(0.1, self.options.work_limit - self._work)
        return Effort(work=min(work, left), seconds=max(0.1, self._seconds_left()), seed=self.options.seed)

    def _seconds_left(self) -> float:
        return self.options.time_limit_seconds - (time.monotonic() - self._started)

    def _record(self, purpose: str, count: int, slot: int, outcome: str, seconds: float) -> None:
        self.attempts.append(
            Attempt(
                purpose=purpose, slots=count, slot_cycles=slot, stages=self.stages, outcome=outcome, seconds=seconds
            )
        )
        self.progress(f"{purpose}: {count} slots of {slot} cycles, {self.stages} stages: {outcome} ({seconds:.1f} s)")
