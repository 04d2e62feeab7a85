"""The search: the smallest interval that any schedule reaches, proved, then the best of its schedules.

Intervals are scanned upwards from the largest analytic bound, in slots; feasibility is not monotone, so nothing
is bisected. At each one the problem rounded up is asked for a schedule (which the polish turns into cycles), and
the problem rounded down for a refutation (which then holds in cycles). Where a gap is left, slots are halved.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.metadata import version

from twillgpu.costs.bounds import bounds
from twillgpu.costs.record import Problem
from twillgpu.schedule.ask import Asker, Found
from twillgpu.schedule.measure import measured
from twillgpu.schedule.reasons import reason
from twillgpu.schedule.record import Refuted, Schedule, SearchOptions, SearchResult, Status
from twillgpu.schedule.resolution import default_stages, serial_interval, slot_cycles

PATIENCE = 3
"""Intervals (in slots) that are tried for a schedule before refutations begin."""

FAILURES = 2
"""Intervals (in slots) below the best schedule that must fail before a finer resolution gives up."""

RETRIES = 3
"""Seeds tried at the coarse resolution where the solver could not tell at first."""

Progress = Callable[[str], None]


def search(problem: Problem, options: SearchOptions, progress: Progress | None = None) -> SearchResult:
    """Return the schedule of smallest initiation interval of ``problem``, with what is proved about it.

    The claim is over all schedules of at most ``max_stages`` stages. ``progress`` is called with one line of
    text per solver call. Infeasibility and limits are statuses of the result.

    Raises:
        InputError: a circuit of distance 0 with a positive latency.
    """
    return _Search(problem, options, progress or (lambda _: None)).run()


class _Search:
    """State of one search: the proved bound, what is refuted, the best schedule."""

    def __init__(self, problem: Problem, options: SearchOptions, progress: Progress) -> None:
        self.problem = problem
        self.options = options
        self.bounds = bounds(problem)
        self.lower = self.bounds.binding.cycles
        self.bound_reason = self.bounds.binding.reason
        self.last = max(self.lower, serial_interval(problem))
        self.stages = options.max_stages or default_stages(problem, self.lower)
        self.slot = slot_cycles(problem, self.lower, options.resolution)
        self.asker = Asker(problem, options, self.stages, progress)
        self.refuted: list[Refuted] = []
        self.best: Schedule | None = None
        self.best_at = (0, 0)
        self.proved = False
        self.unknown: list[int] = []
        self.started = time.monotonic()

    def run(self) -> SearchResult:
        """Run the search to its end or its limits."""
        if self.lower > 1:
            self.refuted = [
                Refuted(first_cycles=1, last_cycles=self.lower - 1, reason=self.bound_reason, families=())
            ]
        if self.bounds.impossible:
            return self._result("infeasible", "; ".join(self.bounds.impossible))
        coarse = self.slot
        self._scan()
        self._retry()
        if self._wide_gap() and self._halve():
            self._improve()
            self._refute_at(coarse)
            self._refute_at(self.slot)
        while self._wide_gap() and self._halve():
            self._improve()
            self._refute_at(self.slot)
        if self.best is not None and not self.proved:
            self.best = self.asker.improve(self.best, *self.best_at)
        return self._result(self._status(), self.bound_reason)

    def _halve(self) -> bool:
        """Halve the slot; return whether that was possible and worth trying."""
        if self.slot == 1 or self.best is None or self.asker.spent():
            return False
        self.slot = max(1, self.slot // 2)
        return True

    def _status(self) -> Status:
        if self.best is not None:
            return "feasible" if self._gap() else "optimal"
        return "infeasible" if self.lower > self.last else "limit"

    def _gap(self) -> bool:
        """Return whether the best schedule (or, without one, infeasibility) is not proved yet."""
        if self.best is None:
            return self.lower <= self.last
        return self.best.ii_cycles > self.lower

    def _wide_gap(self) -> bool:
        """Return whether the gap is wider than the user tolerates."""
        return self._gap() and (self.best is None or self.best.ii_cycles > self.lower * (1 + self.options.gap))

    def _scan(self) -> None:
        """Scan at the coarse resolution, from the analytic bound to the first schedule found.

        Refuting costs more than finding, and is not needed where a schedule near the bound meets it; so it starts
        only when the nearest intervals have none. In cycles, every interval is refuted that has none. Where the
        solver cannot tell, the next interval is further away: schedules are easier to find with room.
        """
        first = count = -(-self.lower // self.slot)
        step = 1
        while (count - 1) * self.slot < self.last and not self.asker.spent():
            if count - first >= PATIENCE or self.slot == 1:
                self._refute_at(self.slot, count - 1)
            if self.lower <= count * self.slot:
                found = self._find(count)
                if found.schedule is not None:
                    break
                step = 1 if found.known else step + 1
            count += step
        if self.best is None:
            self._refute_at(self.slot, count)

    def _retry(self) -> None:
        """Look again, with other seeds, at the intervals below the best schedule that the solver could not tell."""
        for turn in range(1, RETRIES + 1):
            for count in self.unknown:
                worthwhile = self.best is None or (count - 1) * self.slot < self.best.ii_cycles
                if worthwhile and self._wide_gap() and not self.asker.spent():
                    self._keep(self.asker.find_any(count, self.slot, self.lower, turn), count, proved=False)

    def _improve(self) -> None:
        """At a finer resolution, look for schedules just below the best one, until two in a row are none."""
        failures = 0
        while self.best and self._gap() and failures < FAILURES and not self.asker.spent():
            count = -(-(self.best.ii_cycles - 1) // self.slot) - failures
            before = self.best.ii_cycles
            self._find(count)
            failures = 0 if self.best.ii_cycles < before else failures + 1

    def _find(self, count: int) -> Found:
        """Ask for a schedule at ``count`` slots; keep the better one; remember if the solver could not tell."""
        found = self.asker.find(count, self.slot, self.lower)
        self._keep(found.schedule, count, proved=found.proved)
        if found.schedule is None and not found.known:
            self.unknown.append(count)
        return found

    def _keep(self, found: Schedule | None, count: int, *, proved: bool) -> None:
        if found is not None and (self.best is None or found.ii_cycles < self.best.ii_cycles):
            self.best, self.proved, self.best_at = found, proved, (count, self.slot)

    def _refute_at(self, slot: int, count: int | None = None) -> None:
        """Raise the bound, interval by interval, while refutations succeed and a gap is left."""
        before = self.lower
        while self._gap() and not self.asker.spent():
            lowest = -(-self.lower // slot)
            if (count is not None and lowest > count) or not self.asker.refuted(lowest, slot):
                break
            self.lower = lowest * slot + 1
        self._explain(before, slot)

    def _explain(self, before: int, slot: int) -> None:
        """Record the intervals refuted since ``before`` as one range, with the rules that force the last of them."""
        if self.lower == before:
            return
        last = self.lower - 1
        known = next((range_.families for range_ in self.refuted if range_.families), None)
        forced_by = self.asker.families(-(-last // slot), slot) if known is None else known
        why = reason(forced_by, self.stages)
        self.refuted.append(Refuted(first_cycles=before, last_cycles=last, reason=why, families=forced_by))
        self.bound_reason = f"{before} to {last} cycles refuted: {why}"

    def _result(self, status: Status, bound_reason: str) -> SearchResult:
        schedule = self.best
        return SearchResult(
            status=status,
            schedule=schedule,
            bounds=self.bounds,
            lower_bound_cycles=self.lower,
            bound_reason=bound_reason,
            max_stages=self.stages,
            objective=measured(self.problem, schedule, self.options.objective) if schedule else (),
            objective_proved=self.proved,
            refuted=tuple(self.refuted),
            attempts=tuple(self.asker.attempts),
            method="clauses",
            solver="OR-Tools CP-SAT",
            version=version("ortools"),
            options=self.options,
            slot_cycles=self.slot,
            seconds=time.monotonic() - self.started,
        )
