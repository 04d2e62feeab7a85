"""State of one search: the proved bound with what is refuted, and the best schedule known."""

from __future__ import annotations

from twillgpu.costs.bounds import bounds
from twillgpu.costs.record import Problem
from twillgpu.schedule.ask import Asker, Found, Progress
from twillgpu.schedule.reasons import reason
from twillgpu.schedule.record import Limit, Refuted, Schedule, SearchOptions, Status
from twillgpu.schedule.resolution import MOST_STAGES, default_stages, longest_path, serial_interval, slot_cycles

SHARE = 0.8
"""Share of the effort after which the coarse search for better schedules ends."""


class State:
    """What a search knows so far.

    Attributes:
        lower: every interval below is refuted, in cycles.
        last: if there is any schedule, there is one up to this interval, in cycles.
        longest: length of the critical path of one iteration, in cycles.
        slot: cycles of a slot at the coarse resolution.
        best, proved: the best schedule and whether its secondary objective is proved.
        place: interval in slots, and slot, at which it was found.
        unknown: (interval in slots, slot) at which the solver could not tell.
    """

    def __init__(self, problem: Problem, options: SearchOptions, progress: Progress) -> None:
        self.problem = problem
        self.options = options
        self.bounds = bounds(problem)
        self.lower = self.bounds.binding.cycles
        self.last = max(self.lower, serial_interval(problem))
        self.stages = min(options.max_stages or default_stages(problem, self.lower), MOST_STAGES)
        self.slot = slot_cycles(problem, self.lower, options.resolution)
        self.longest = max(self.lower, longest_path(problem))
        self.asker = Asker(problem, options, self.stages, progress)
        self.best: Schedule | None = None
        self.proved = False
        self.place = (0, 0)
        self.unknown: list[tuple[int, int]] = []
        self.refuted: list[Refuted] = []
        self.bound_reason = self.bounds.binding.reason
        if self.lower > 1:
            self.refuted = [
                Refuted(first_cycles=1, last_cycles=self.lower - 1, reason=self.bound_reason, families=())
            ]

    def status(self) -> Status:
        """Return the status that is proved so far."""
        if self.bounds.impossible:
            return "infeasible"
        if self.best is not None:
            return "feasible" if self.gap() else "optimal"
        return "infeasible" if self.lower > self.last else "limit"

    def gap(self) -> bool:
        """Return whether the best schedule (or, without one, infeasibility) is not proved yet."""
        if self.best is None:
            return self.lower <= self.last
        return self.best.ii_cycles > self.lower

    def limit(self) -> Limit:
        """Return what ended the search without a proof."""
        if self.status() in ("optimal", "infeasible"):
            return "none"
        if not self.asker.in_time():
            return "time"
        if self.asker.spent():
            return "work"
        return "call" if self._wide() else "none"

    def _wide(self) -> bool:
        return self.best is None or self.best.ii_cycles > self.lower * (1 + self.options.gap)

    def open(self) -> bool:
        """Return whether the gap is wider than the user tolerates and effort is left."""
        return self.gap() and self._wide() and not self.asker.spent()

    def searching(self) -> bool:
        """Return whether to look for better schedules at the coarse resolution; the rest of the effort refutes."""
        return self.open() and self.asker.work < SHARE * self.options.work_limit

    def find(self, count: int, slot: int) -> Found:
        """Ask for a schedule at ``count`` slots; keep the better one; remember if the solver could not tell.

        Once it could not, the secondary objective is left for later: any schedule will do.
        """
        if self.unknown:
            found = self.asker.find_any(count, slot, self.lower, 0)
        else:
            found = self.asker.find(count, slot, self.lower)
        self.keep(found.schedule, (count, slot), proved=found.proved)
        if found.schedule is None and not found.known:
            self.unknown.append((count, slot))
        return found

    def keep(self, found: Schedule | None, place: tuple[int, int], *, proved: bool) -> None:
        """Keep a schedule of a smaller interval than the best one, or of the same and proved best."""
        if found is None:
            return
        same = self.best is not None and found.ii_cycles == self.best.ii_cycles and proved and not self.proved
        if self.best is None or found.ii_cycles < self.best.ii_cycles or same:
            self.best, self.proved, self.place = found, proved, place

    def refute(self, slot: int) -> None:
        """Raise the bound, interval by interval, while refutations succeed and a gap is left.

        Without a schedule, slots grow with the interval: so infeasibility is proved in few steps.
        """
        before = self.lower
        while self.gap() and not self.asker.spent():
            wide = max(slot, self.lower // self.options.resolution) if self.best is None and slot > 1 else slot
            lowest = -(-self.lower // wide)
            if not self.asker.refuted(lowest, wide):
                break
            self.lower = lowest * wide + 1
        if self.lower > before:
            self._explain(before)

    def _explain(self, before: int) -> None:
        """Record the intervals refuted since ``before`` as one range, with the rules that force the last of them."""
        analytic = 1 if self.refuted and self.refuted[0].reason == self.bounds.binding.reason else 0
        ranges = self.refuted[analytic:]
        forced_by = ranges[-1].families if ranges else self.asker.families(*self.asker.last_refuted)
        why = reason(forced_by, self.stages)
        first = ranges[-1].first_cycles if ranges else before
        if ranges:
            self.refuted.pop()
        last = self.lower - 1
        self.refuted.append(Refuted(first_cycles=first, last_cycles=last, reason=why, families=forced_by))
        cycles = f"{last} cycles" if first == last else f"{first} to {last} cycles"
        self.bound_reason = f"{cycles} refuted: {why}"
