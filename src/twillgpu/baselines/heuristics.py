"""Modulo scheduling heuristics under all rules: groups first, then starts, interval by interval."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from twillgpu.baselines.evidence import broken, objection
from twillgpu.baselines.partition import Groups, grouped, merged
from twillgpu.baselines.paths import crossing
from twillgpu.baselines.rau import iterative
from twillgpu.baselines.record import Found, Way
from twillgpu.baselines.roles import roles
from twillgpu.baselines.swing import swing
from twillgpu.costs.bounds import bounds
from twillgpu.costs.record import Problem
from twillgpu.schedule.ask import Progress
from twillgpu.schedule.assemble import assemble
from twillgpu.schedule.lifetimes import buffer_lifetimes, peak
from twillgpu.schedule.polish import Draft
from twillgpu.schedule.record import Schedule, SearchOptions
from twillgpu.schedule.resolution import serial_interval
from twillgpu.verify import Verified, Violation, check

Heuristic = Callable[[Problem, Mapping[str, int], int], dict[str, int] | None]

RAU = Way(
    name="iterative modulo scheduling",
    says="by height, at the earliest free slot, evicting what is in the way; groups for loads, products, sub-tiles",
    source="Rau, MICRO-27, 1994",
)
SWING = Way(
    name="swing modulo scheduling",
    says="recurrences first, each op next to its neighbours; groups for loads, products, sub-tiles",
    source="Llosa et al., PACT 1996",
)

GROWTH = 1.05
"""How much larger each interval is than the last one that failed."""

ATTEMPTS = 40
"""Intervals tried."""


def rau(problem: Problem, options: SearchOptions, progress: Progress) -> Found:
    """Return what Rau's iterative modulo scheduling finds."""
    return _scheduled(problem, RAU, iterative, options, progress)


def swinging(problem: Problem, options: SearchOptions, progress: Progress) -> Found:
    """Return what swing modulo scheduling finds."""
    return _scheduled(problem, SWING, swing, options, progress)


def _scheduled(problem: Problem, way: Way, heuristic: Heuristic, options: SearchOptions, progress: Progress) -> Found:
    """Try intervals from the bound upwards, then those below the first that works; the heuristic's own starts count.

    Registers and places are looked at when starts are known, as in the literature: where they do not suffice, the
    interval grows.
    """
    found = roles(problem)
    groups = grouped(problem, merged(found, problem, loads="load", products="mma"))
    against = broken(problem, groups)
    if against is not None:
        return Found(way=way, outcome="infeasible", rule=against.rule, reason=against.message)
    tries = _Tries(problem, groups, heuristic, options)
    schedule = tries.climb(progress)
    if schedule is not None:
        return Found(way=way, outcome="found", schedule=schedule)
    if tries.against is None:
        reason = f"no start for every op at intervals from {tries.lower} to {tries.last} cycles"
        return Found(way=way, outcome="limit", reason=reason)
    return Found(way=way, outcome="infeasible", rule=tries.against.rule, reason=tries.against.message)


class _Tries:
    """Intervals tried with one heuristic.

    Attributes:
        lower, last: first and last interval tried.
        against: what the verifier said of the last starts that did not make a schedule.
    """

    def __init__(self, problem: Problem, groups: Groups, heuristic: Heuristic, options: SearchOptions) -> None:
        self.problem = problem
        self.groups = groups
        self.heuristic = heuristic
        self.limit = options.max_stages or 1
        self.costly = crossing(problem, groups)
        self.lower = bounds(self.costly).binding.cycles
        self.last = self.lower
        self.against: Violation | None = None
        self._end = time.monotonic() + options.time_limit_seconds

    def climb(self, progress: Progress) -> Schedule | None:
        """Return the schedule of the smallest interval that works, ``None`` without one."""
        interval, failed = self.lower, self.lower - 1
        serial = max(self.lower, serial_interval(self.problem))
        for _ in range(ATTEMPTS):
            schedule = self._at(interval)
            progress(f"interval {interval}: {'no schedule' if schedule is None else 'a schedule'}")
            if schedule is not None:
                return self._below(schedule, failed)
            if interval >= serial or time.monotonic() > self._end:
                return None
            failed, interval = interval, min(serial, max(interval + 1, round(interval * GROWTH)))
        return None

    def _below(self, schedule: Schedule, failed: int) -> Schedule:
        """Halve the distance to the last interval that failed."""
        low = failed
        while schedule.ii_cycles - low > 1:
            middle = (low + schedule.ii_cycles) // 2
            found = self._at(middle)
            low, schedule = (middle, schedule) if found is None else (low, found)
        return schedule

    def _at(self, interval: int) -> Schedule | None:
        self.last = max(self.last, interval)
        starts = self.heuristic(self.costly, self.groups, interval)
        if starts is None:
            return None
        first = min(starts.values())
        moved = {name: start - first for name, start in starts.items()}
        draft = Draft(ii_cycles=interval, starts=moved, groups=self.groups)
        schedule = assemble(self.problem, draft) if self._fits(draft) else None
        if schedule is None:
            self.against = objection(self.problem, draft, self.limit) or self.against
            return None
        verdict = check(self.problem, schedule, max_stages=self.limit)
        if isinstance(verdict, Verified):
            return schedule
        self.against = verdict[0]
        return None

    def _fits(self, draft: Draft) -> bool:
        """Return whether the bytes that are live at once fit at all: places are only then looked for."""
        lifetimes = buffer_lifetimes(self.problem, draft.groups)
        fixed = dict(self.problem.fixed_bytes)
        return all(
            peak([life for life in lifetimes if life.holder == memory.name], draft.starts, draft.ii_cycles)
            <= memory.capacity_bytes - fixed.get(memory.name, 0)
            for memory in self.problem.memories
        )
