"""What would help: each smallest set of families, relaxed as little as gives a smaller interval, by solving."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from twillgpu.costs.bounds import bounds
from twillgpu.costs.record import Bound, Problem
from twillgpu.explain.asking import Questions
from twillgpu.explain.families import amount_of, amounts, families_of, family_of, raised, step_of
from twillgpu.explain.record import PERCENT, Change, Family, Forced, Kind, Relaxed, Way
from twillgpu.explain.variant import UNLIMITED, Variant, changed
from twillgpu.schedule.record import SearchResult

TOGETHER = 6
"""So many bounds are relaxed together at most."""

WORTH = 0.1
"""Once so much of the bound is gained, no more bounds are relaxed together."""

FASTEST = 200
"""Percent: a bound that twice as much of its resource does not move is left alone."""

EASE: tuple[Kind, ...] = (
    "stages",
    "groups",
    "warps",
    "variable_latency",
    "legality",
    "concurrency",
    "handoff",
    "registers",
    "memory",
    "register_file",
    "latency",
    "unit",
)
"""Kinds from what a programmer decides to what only another chip, or less work, changes."""

COUNTED: tuple[Kind, ...] = ("stages", "groups")
"""Kinds of which one more is often all that it takes."""

LIFTABLE: tuple[Kind, ...] = ("unit", "memory", "registers", "register_file", "handoff")
"""Kinds that are lifted beyond the last of their amounts."""


def ways(base: Variant, result: SearchResult, forced: Sequence[Forced], questions: Questions) -> tuple[Way, ...]:
    """Return what would help, the easiest and smallest changes first.

    Where a bound is reached: its resource, just so much that the next bound is reached. Where a solver refuted: the
    smallest sets that it named. Where the proof is open, or there is no schedule: every family by itself.
    """
    if result.schedule is not None and result.lower_bound_cycles <= result.bounds.binding.cycles:
        found = [*_of_bounds(base, result.schedule.ii_cycles, questions), *_beside(base, forced, questions)]
        if _open(result):
            found += [_least(base, (family,), questions) for family in families_of(base) if family.kind != "unit"]
        return _ordered(found)
    last = forced[-1] if forced else None
    named = last.ways if last is not None and last.ways else tuple((family,) for family in families_of(base))
    return _ordered([_least(base, families, questions) for families in _by_ease(named)])


def _open(result: SearchResult) -> bool:
    """Return whether the gap to the bound is wider than what counts as none."""
    lower, found = result.lower_bound_cycles, result.schedule
    return found is None or found.ii_cycles > lower * (1 + result.options.gap)


def _ordered(found: Sequence[Way]) -> tuple[Way, ...]:
    return tuple(sorted(found, key=lambda way: (way.least is None, len(way.families), _ease(way.families))))


def _by_ease(named: Sequence[tuple[Family, ...]]) -> list[tuple[Family, ...]]:
    return sorted(named, key=lambda families: (len(families), _ease(families)))


def _ease(families: Sequence[Family]) -> int:
    return max(EASE.index(family.kind) for family in families)


def _of_bounds(base: Variant, interval: int, questions: Questions) -> Iterator[Way]:
    """Yield the binding bound's resource, then with it those of the bounds that bind next."""
    families: list[Family] = []
    for _ in range(TOGETHER):
        binding = _binding(changed(base, [_most(base, one) for one in families]).problem)
        family = family_of(binding, base.problem)
        if family is None or family in families or binding.cycles < interval * (1 - WORTH):
            return
        families.append(family)
        changes = _to_next_bound(base, families)
        if changes is None:
            continue
        yield _to_bound(base, tuple(families), changes, questions)


def _beside(base: Variant, forced: Sequence[Forced], questions: Questions) -> Iterator[Way]:
    """Yield the other rules that a single binding bound rests on: groups, legality, the hand-over in a circuit."""
    last = forced[-1] if forced else None
    if last is None or len(last.sets) != 1 or not last.bounds:
        return
    for family in last.sets[0]:
        if last.bounds[0].replace(" ", "_") not in (family.name, family.kind):
            yield _least(base, (family,), questions)


def _to_bound(base: Variant, families: tuple[Family, ...], changes: tuple[Change, ...], questions: Questions) -> Way:
    """Return the least of the amounts of the table that helps, and what reaching the next bound gives.

    Where less than the table's amounts reaches the next bound, it is the least if it helps, too. The largest amount
    is asked about first: where it does not help, less does not, either.
    """
    least, asked, table = None, None, _of_table(base, changes)
    most = questions.relaxed(table[-1])
    if most is not None and not questions.better(most):
        return Way(families=families, least=None, most=most)
    for tried in table:
        relaxed = questions.relaxed(tried)
        asked = relaxed or asked
        if relaxed is None or questions.better(relaxed):
            least = relaxed
            break
    further = questions.relaxed(changes)
    asked = further or asked
    if further is not None and questions.better(further):
        if least is None or _growth(changes) <= _growth(least.changes):
            return Way(families=families, least=further)
        return Way(families=families, least=least, most=further if _gains(further, least) else None)
    return Way(families=families, least=least, most=asked if least is None else None, answered=further is not None)


def _of_table(base: Variant, changes: tuple[Change, ...]) -> list[tuple[Change, ...]]:
    """Return the changes with the amounts of the table, the smallest first; latencies stay as they are."""
    found = [
        tuple(
            change if change.family.kind == "latency" else replace(change, after=raised(base, change.family, percent))
            for change in changes
        )
        for percent in PERCENT
    ]
    return list(dict.fromkeys(found))


def _growth(changes: Sequence[Change]) -> float:
    return sum((change.after or 0) / max(1, change.before) for change in changes if change.family.kind != "latency")


def _binding(problem: Problem) -> Bound:
    """Return the largest bound; of equal ones not the recurrence, which a faster unit may shorten, too."""
    found = bounds(problem)
    largest = [bound for bound in found.bounds if bound.cycles == found.binding.cycles]
    return min(largest, key=lambda bound: bound.name == "recurrence")


def _most(base: Variant, family: Family) -> Change:
    """Return the change after which a bound has twice as much of its resource."""
    before = amount_of(base, family)
    return Change(family=family, before=before, after=0 if family.kind == "latency" else before * FASTEST // 100)


def _to_next_bound(base: Variant, families: Sequence[Family]) -> tuple[Change, ...] | None:
    """Return the least changes with which the bounds fall as far as they do with twice as much of everything."""
    changes = [_most(base, family) for family in families]
    present, target = _bound(base, ()), _bound(base, changes)
    if target >= present:
        return None
    for index, change in enumerate(changes):

        def reaches(amount: int, index: int = index, change: Change = change) -> bool:
            tried = [*changes[:index], replace(change, after=amount), *changes[index + 1 :]]
            return _bound(base, tried) <= target

        grid = _grid(base, change)
        changes[index] = replace(change, after=grid[_first(grid, reaches)])
    return tuple(changes)


def _grid(base: Variant, change: Change) -> Sequence[int]:
    """Return the amounts between a change's ends, the least relaxation first."""
    if change.family.kind == "latency":
        return range(change.before - 1, -1, -1)
    step = 1 if change.family.kind == "unit" else step_of(base, change.family)
    last = change.after or UNLIMITED
    return range(change.before + step, last + step, step)


def _first(grid: Sequence[int], holds: Callable[[int], bool]) -> int:
    """Return the first index at which ``holds``, which does at the last one and goes on holding once it does."""
    low, high = 0, len(grid) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(grid[middle]) else (middle + 1, high)
    return high


def _bound(base: Variant, changes: Sequence[Change]) -> int:
    return bounds(changed(base, changes).problem).binding.cycles


def _least(base: Variant, families: tuple[Family, ...], questions: Questions) -> Way:
    """Return the least relaxation of ``families`` together that gives a smaller interval.

    One more of what is counted is asked about first. Then twice as much of each, then each rule lifted; where one of
    them helps, each amount is made as small as it may be, one after the other.
    """
    if len(families) == 1 and families[0].kind in COUNTED:
        before = amount_of(base, families[0])
        one = questions.relaxed((Change(family=families[0], before=before, after=before + 1),))
        if one is None or questions.better(one):
            return Way(families=families, least=one, answered=one is not None)
    doubled = tuple(_doubled(base, family) for family in families)
    most = questions.relaxed(doubled)
    if most is not None and not questions.better(most) and any(family.kind in LIFTABLE for family in families):
        lifted = tuple(
            replace(change, after=None) if change.family.kind in LIFTABLE else change for change in doubled
        )
        most = questions.relaxed(lifted) or most
    if most is None or not questions.better(most):
        return Way(families=families, least=None, most=most, answered=most is not None)
    changes = list(most.changes)
    for index, change in enumerate(changes):
        if change.after is not None:
            changes[index] = _smallest(base, changes, index, questions)
    least = questions.relaxed(changes) or most
    # Where time ended, the smallest amount known to help may not be the least.
    return Way(
        families=families, least=least, most=most if _gains(most, least) else None, answered=not questions.open
    )


def _doubled(base: Variant, family: Family) -> Change:
    grid = amounts(base, family)
    return Change(family=family, before=amount_of(base, family), after=grid[-1] if grid else None)


def _smallest(base: Variant, changes: Sequence[Change], index: int, questions: Questions) -> Change:
    """Return the change at ``index`` with the least amount that still helps beside the others."""
    grid = amounts(base, changes[index].family)

    def helps(amount: int) -> bool:
        return questions.helps([*changes[:index], replace(changes[index], after=amount), *changes[index + 1 :]])

    return replace(changes[index], after=grid[_first(grid, helps)])


def _gains(most: Relaxed, least: Relaxed) -> bool:
    return most.upper_cycles is not None and (least.upper_cycles is None or most.upper_cycles < least.upper_cycles)
