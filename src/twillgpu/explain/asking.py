"""Questions about changed problems: is an interval still refuted, and what is the smallest interval now?"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

from twillgpu.costs.bounds import bounds
from twillgpu.errors import TwillError
from twillgpu.explain.closing import closest, refuted_to, tightened
from twillgpu.explain.record import Change, ExplainOptions, Family, Forced, Kind, Relaxed
from twillgpu.explain.variant import Variant, changed, lifted
from twillgpu.schedule.ask import Asker, Progress
from twillgpu.schedule.record import Schedule, SearchOptions, SearchResult
from twillgpu.schedule.resolution import default_stages, slot_cycles
from twillgpu.schedule.search import search
from twillgpu.verify import Verified, check
from twillgpu.verify.registers import register_peak

EXACT = 200
"""Up to so many cycles one cycle less counts."""

REFUTING = 0.5
"""Share of the work of a question that one refutation may take."""

SETTLED: tuple[Kind, ...] = (
    "memory",
    "registers",
    "register_file",
    "groups",
    "warps",
    "stages",
    "variable_latency",
    "legality",
)
"""Kinds that leave all times as they are: what is refuted without such a family is refuted with more of it, too."""


class Questions:
    """Puts questions within a budget, and remembers the answers.

    Attributes:
        base: the problem that is explained.
        schedule: its best schedule, ``None`` without one.
        count: questions put to the solver so far.
        open: whether some question could not be put for lack of time.
    """

    def __init__(self, base: Variant, result: SearchResult, options: ExplainOptions, progress: Progress) -> None:
        self.base = base
        self.schedule = result.schedule
        self.count = 0
        self.open = False
        self._lower = result.lower_bound_cycles
        self._given_stages = result.options.max_stages is not None
        self._options = replace(
            result.options,
            objective=(),
            work_limit=options.work,
        )
        self._started = time.process_time()
        self._seconds = options.time_budget_seconds
        self._ends = self._started + self._seconds
        self._progress = progress
        self._walls: tuple[tuple[frozenset[Family], ...], ...] = ()
        self._relaxed: dict[tuple[Change, ...], Relaxed] = {}
        self._helpful: dict[tuple[Change, ...], bool] = {}
        self._refuted: dict[tuple[Variant, frozenset[Family], int, int], bool | None] = {}

    def spent(self) -> bool:
        """Return whether the time is used up; if so, something stays open."""
        late = time.process_time() >= self._ends
        self.open = self.open or late
        return late

    def allow(self, share: float) -> None:
        """Let the questions that follow take what is left of the first ``share`` of the time."""
        self._ends = self._started + share * self._seconds

    def settle(self, forced: Sequence[Forced]) -> None:
        """Use what forces each interval below the proved one: changes outside some set of each do not help."""
        if self.schedule is not None and self._lower == self.schedule.ii_cycles:
            self._walls = tuple(tuple(frozenset(one) for one in item.sets) for item in forced)

    def better(self, relaxed: Relaxed) -> bool:
        """Return whether a smaller interval was found, by more than what counts as no gap."""
        if relaxed.upper_cycles is None or self.schedule is None:
            return relaxed.upper_cycles is not None
        return relaxed.upper_cycles <= self.schedule.ii_cycles - self.least()

    def refuted(self, variant: Variant, families: frozenset[Family], count: int, slot: int) -> bool | None:
        """Return whether ``count`` slots stay refuted without ``families``; ``None`` where nobody can tell."""
        key = (variant, families, count, slot)
        if key not in self._refuted:
            if self.spent():
                return None
            self._refuted[key] = self._refute(lifted(variant, families), count, slot)
        return self._refuted[key]

    def _refute(self, variant: Variant, count: int, slot: int) -> bool | None:
        asker = self._asker(variant, share=REFUTING)
        if asker.refuted(count, slot):
            return True
        return None if asker.attempts[-1].outcome == "unknown" else False

    def relaxed(self, changes: Iterable[Change]) -> Relaxed | None:
        """Return what is possible with ``changes`` made; ``None`` where time has ended before the question."""
        key = tuple(changes)
        if key not in self._relaxed:
            variants = self._variants(key)
            if self._settled(variants, key):
                self._relaxed[key] = self._unchanged(variants, key)
            elif self.spent():
                return None
            else:
                self._relaxed[key] = self._best(variants, key)
                self.open = self.open or (not self._relaxed[key].proved and time.process_time() >= self._ends)
        return self._relaxed[key]

    def implied(self, changes: Iterable[Change], more: Relaxed) -> Relaxed:
        """Return what smaller ``changes`` give, not asked about, where ``more`` of them was, and gave nothing.

        What was refuted with a still faster unit was so at its pace; only the bound is left of it.
        """
        key = tuple(changes)
        if key in self._relaxed:
            return self._relaxed[key]
        variants = self._variants(key)
        answer = replace(self._unchanged(variants, key), solved=more.solved, infeasible=more.infeasible)
        lower = more.lower_cycles if not _paced(key) else 1
        return replace(answer, lower_cycles=max(_least_bound(variants), lower), upper_cycles=more.upper_cycles)

    def reached(self, relaxed: Relaxed) -> int | None:
        """Return the smallest interval known with the one capacity of ``relaxed`` raised so far, or less far."""
        (change,) = relaxed.changes
        found = [relaxed.upper_cycles]
        for key, other in self._relaxed.items():
            if len(key) == 1 and key[0].family == change.family and (key[0].after or 0) <= (change.after or 0):
                found.append(other.upper_cycles if key[0].after is not None else None)
        return min((upper for upper in found if upper is not None), default=None)

    def _variants(self, changes: tuple[Change, ...]) -> tuple[Variant, ...]:
        """Return the changed problem; where a unit is faster, one at its pace and one at the old pace of ops.

        With a smaller bound a search by default allows more stages; here, too.
        """
        found = []
        for pace in (True, False) if _paced(changes) else (True,):
            variant = changed(replace(self.base, pace=pace), changes)
            usual = default_stages(variant.problem, bounds(variant.problem).binding.cycles)
            found.append(variant if self._given_stages else replace(variant, stages=max(variant.stages, usual)))
        return tuple({(variant.problem, variant.stages): variant for variant in reversed(found)}.values())

    def _settled(self, variants: tuple[Variant, ...], changes: tuple[Change, ...]) -> bool:
        """Return whether bounds, or rules that the changes leave alone, still refute every smaller interval."""
        if self.schedule is None:
            return False
        if _least_bound(variants) >= self._lower:
            return True
        families = {change.family for change in changes}
        if not self._walls or any(family.kind not in SETTLED for family in families):
            return False
        if not _within(variants[0], lifted(self.base, families)):
            return False
        if variants[0].stages != self.base.stages and Family(kind="stages") not in families:
            return False
        return all(any(not one & families for one in sets) for sets in self._walls)

    def _unchanged(self, variants: tuple[Variant, ...], changes: tuple[Change, ...]) -> Relaxed:
        interval = self.schedule.ii_cycles if self.schedule is not None else None
        return _record(self.base, variants[0], changes, self._lower, interval)

    def _best(self, variants: tuple[Variant, ...], changes: tuple[Change, ...]) -> Relaxed:
        """Return the best of all variants: first each is asked at its bound, then the promising ones further up."""
        best: Relaxed | None = None
        several = len(variants) > 1 and self.schedule is not None
        for variant in variants if several else ():
            at_bound = self._at_bound(variant)
            if at_bound is not None:
                return self._answer(variant, changes, _least_bound(variants), at_bound)
        promising = self._promising(variants)
        for variant in promising:
            found = self._solve(variant, changes, asked=several)
            if best is None:
                best = found
            else:
                lower, never = min(best.lower_cycles, found.lower_cycles), best.infeasible and found.infeasible
                best = replace(min(found, best, key=_rank), lower_cycles=lower, infeasible=never)
            if best.upper_cycles == _least_bound(variants):
                break
        assert best is not None  # noqa: S101  # there is a variant
        left = [variant for variant in variants if variant not in promising]
        return replace(best, lower_cycles=min(best.lower_cycles, _least_bound(left))) if left else best

    def _promising(self, variants: tuple[Variant, ...]) -> tuple[Variant, ...]:
        """Return all variants of a short interval, otherwise the one in which the known order gains most."""
        known = self.schedule
        if known is None or len(variants) == 1 or known.ii_cycles <= EXACT:
            return variants

        def gained(variant: Variant) -> int:
            tight = tightened(variant, known, bounds(variant.problem).binding.cycles)
            return known.ii_cycles if tight is None else tight.ii_cycles

        return (min(variants, key=gained),)

    def _at_bound(self, variant: Variant) -> Schedule | None:
        """Return a schedule at the variant's bound, rounded up to slots, if there is one."""
        lower = bounds(variant.problem).binding.cycles
        slot = slot_cycles(variant.problem, lower, self._options.resolution)
        found = self._asker(variant).find(-(-lower // slot), slot, lower).schedule
        within = found is not None and (self.schedule is None or found.ii_cycles < self.schedule.ii_cycles)
        return found if within else None

    def _solve(self, variant: Variant, changes: tuple[Change, ...], *, asked: bool) -> Relaxed:
        never = False
        if self.schedule is None:
            result = search(variant.problem, replace(self._fresh(), max_stages=variant.stages), self._progress)
            self.count += len(result.attempts)
            best, lower, never = result.schedule, result.lower_bound_cycles, result.status == "infeasible"
        else:
            best, lower = self._improve(variant, self.schedule, asked=asked)
        return replace(self._answer(variant, changes, lower, best), infeasible=never)

    def _answer(self, variant: Variant, changes: tuple[Change, ...], lower: int, best: Schedule | None) -> Relaxed:
        if best is not None:
            _insist(variant, best)
        known = [found.ii_cycles for found in (best, self.schedule) if found is not None]
        answer = _record(self.base, variant, changes, lower, min(known, default=None))
        over = _over(self.base, variant, best) if best is not None else ()
        return replace(answer, groups=over, solved=True)

    def helps(self, changes: Sequence[Change]) -> bool:
        """Return whether a smaller interval is found with ``changes`` made, however much smaller it is."""
        key = tuple(changes)
        variants = self._variants(key)
        slot = slot_cycles(variants[0].problem, _least_bound(variants), self._options.resolution)
        if key in self._relaxed or self.schedule is None or slot == 1:
            relaxed = self.relaxed(key)
            return relaxed is not None and self.better(relaxed)
        if self._settled(variants, key) or self.spent():
            return False
        if key not in self._helpful:
            self._helpful[key] = any(self._smaller(variant, self.schedule) for variant in variants)
        return self._helpful[key]

    def _smaller(self, variant: Variant, known: Schedule) -> bool:
        """Return whether the known order, or else the solver, gives a schedule just below the known interval."""
        target = known.ii_cycles - self.least()
        lower = bounds(variant.problem).binding.cycles
        if lower > target:
            return False
        tight = tightened(variant, known, lower)
        if tight is not None and tight.ii_cycles <= target:
            return True
        slot = slot_cycles(variant.problem, target, self._options.resolution)
        found = self._asker(variant).find(target // slot, slot, lower).schedule
        return found is not None and found.ii_cycles <= target

    def least(self) -> int:
        """Return the cycles less that count as a smaller interval."""
        interval = self.schedule.ii_cycles if self.schedule is not None else 0
        return 1 if interval <= EXACT else max(1, int(self._options.gap * interval))

    def _improve(self, variant: Variant, known: Schedule, *, asked: bool) -> tuple[Schedule | None, int]:
        """Return the best schedule below the known one, and the proved bound; ``asked``: none is at the bound."""
        lower = bounds(variant.problem).binding.cycles
        slot = slot_cycles(variant.problem, lower, self._options.resolution)
        asker = self._asker(variant)
        tight = tightened(variant, known, lower)
        upper = known.ii_cycles if tight is None else min(known.ii_cycles, tight.ii_cycles)
        best = closest(asker, lower, upper, asked=asked) or (tight if upper < known.ii_cycles else None)
        lower = refuted_to(asker, lower, best.ii_cycles if best is not None else upper, slot)
        self.count += len(asker.attempts) - 1
        return best, lower

    def _asker(self, variant: Variant, share: float = 1.0) -> Asker:
        self.count += 1
        options = self._fresh()
        options = replace(options, work_limit=share * options.work_limit)
        return Asker(variant.problem, options, variant.stages, self._progress)

    def _fresh(self) -> SearchOptions:
        left = max(0.1, self._ends - time.process_time())
        return replace(self._options, work_limit=min(self._options.work_limit, max(0.1, left)))


def _within(variant: Variant, most: Variant) -> bool:
    """Return whether sets that were found beside the lifted counts of ``most`` hold for those of ``variant``."""
    groups, limits = variant.problem.groups, most.problem.groups
    return groups.max <= limits.max and groups.max_warps <= limits.max_warps and variant.stages <= most.stages


def _paced(changes: Iterable[Change]) -> bool:
    """Return whether a unit is faster, so that ops may go at its pace or at their old one."""
    return any(change.family.kind == "unit" and change.after is not None for change in changes)


def _least_bound(variants: Iterable[Variant]) -> int:
    return min(bounds(variant.problem).binding.cycles for variant in variants)


def _rank(relaxed: Relaxed) -> float:
    return float("inf") if relaxed.upper_cycles is None else relaxed.upper_cycles


def _insist(variant: Variant, schedule: Schedule) -> None:
    if not isinstance(check(variant.problem, schedule, max_stages=variant.stages), Verified):
        raise TwillError(
            "explain",
            "a schedule found for a changed problem does not pass the verifier",
            "this is a defect of twillgpu: please report it with the output of --emit graph",
        )


def _record(base: Variant, variant: Variant, changes: tuple[Change, ...], lower: int, upper: int | None) -> Relaxed:
    bound = bounds(variant.problem).binding
    return Relaxed(
        changes=changes,
        lower_cycles=lower,
        upper_cycles=upper,
        stages=max(base.stages, variant.stages),
        bound=bound.name,
        bound_cycles=bound.cycles,
        solved=False,
    )


def _over(base: Variant, variant: Variant, schedule: Schedule) -> tuple[str, ...]:
    """Return the groups that need more registers per thread than a thread has without the changes."""
    limits = base.problem.registers
    if limits is None or variant.problem.registers is None:
        return ()
    over = []
    for index, group in enumerate(schedule.groups):
        most = register_peak(variant.problem, schedule, index)
        if most is not None and most.amount + limits.overhead_per_thread > limits.largest:
            over.append(group.name)
    return tuple(over)
