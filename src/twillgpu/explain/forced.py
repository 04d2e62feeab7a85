"""What forces each interval that was refuted: bounds by analysis, the others by questions to the solver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from twillgpu.costs.bounds import bounds
from twillgpu.costs.record import Bound
from twillgpu.explain.asking import Questions
from twillgpu.explain.families import families_of
from twillgpu.explain.record import Family, Forced
from twillgpu.explain.smallest import Sets, smallest_sets
from twillgpu.explain.variant import Variant, lifted
from twillgpu.schedule.record import Attempt, SearchResult

LEVELS = 8
"""Bounds below the largest that are looked at one by one."""


def forced_by_bounds(variant: Variant, below: int) -> tuple[Forced, ...]:
    """Return the intervals up to ``below - 1`` cycles that some bound refutes, those that more bounds refute first.

    Each bound has a smallest set of its own; the intervals below several bounds have several sets.
    """
    families = families_of(variant)
    known = [bound for bound in bounds(variant.problem).bounds if bound.name != "consistency"][:LEVELS]
    sets = {bound.name: _forcing(variant, families, bound) for bound in known}
    steps = sorted({min(bound.cycles, below) for bound in known if bound.cycles > 1})
    found = []
    for first, last in zip([1, *steps], steps, strict=False):
        higher = [bound for bound in known if bound.cycles >= last]
        if last > first:
            found.append(
                Forced(
                    first_cycles=first,
                    last_cycles=last - 1,
                    sets=tuple(sets[bound.name] for bound in higher),
                    bounds=tuple(bound.name for bound in higher),
                )
            )
    return tuple(found)


def _forcing(variant: Variant, families: Sequence[Family], bound: Bound) -> tuple[Family, ...]:
    """Return the smallest set of families that keeps a bound where it is."""

    def stands(without: frozenset[Family]) -> bool:
        return any(
            one.name == bound.name and one.cycles >= bound.cycles
            for one in bounds(lifted(variant, without).problem).bounds
        )

    kept: list[Family] = []
    for family in families:
        others = frozenset(families[families.index(family) + 1 :])
        if not stands(frozenset(families) - frozenset(kept) - others):
            kept.append(family)
    return tuple(kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A question that refuted more than ``count - 1`` and up to ``count`` slots of ``slot`` cycles."""

    count: int
    slot: int

    @property
    def first_cycles(self) -> int:
        """Return the smallest interval refuted."""
        return (self.count - 1) * self.slot + 1

    @property
    def last_cycles(self) -> int:
        """Return the largest interval refuted."""
        return self.count * self.slot


def forced_by_rules(variant: Variant, result: SearchResult, questions: Questions) -> tuple[Forced, ...]:
    """Return the intervals above the bounds that the search refuted, ascending, each with its smallest sets.

    The interval of fewest slots is asked about first, since that is easiest; where the sets of another interval
    refute, too, they are taken over, with the ways. Neighbours of the same sets are joined.
    """
    lower = result.bounds.binding.cycles
    if result.lower_bound_cycles <= lower:
        return ()
    families, asked = families_of(variant), places(result, lower)
    known: dict[Place, Forced] = {}
    for place in sorted(asked, key=lambda one: (one.count, -one.slot)):
        known[place] = _forced_at(variant, families, place, questions, tuple(known.values()))
    found: list[Forced] = []
    for place in asked:
        first = max(lower, place.first_cycles)
        last = min(place.last_cycles, result.lower_bound_cycles - 1)
        forced = replace(known[place], first_cycles=first, last_cycles=last)
        if found and _same(found[-1], forced):
            found[-1] = replace(found[-1], first_cycles=min(first, found[-1].first_cycles))
        else:
            found.append(forced)
    return tuple(reversed(found))


def places(result: SearchResult, lower: int) -> list[Place]:
    """Return questions that together refuted every interval from ``lower`` to the proved bound, the last one first.

    What was refuted at several resolutions is listed once, at the coarsest that reaches furthest down.
    """
    asked = [Place(count=attempt.slots, slot=attempt.slot_cycles) for attempt in result.attempts if _refutes(attempt)]
    chosen: list[Place] = []
    open_to = result.lower_bound_cycles - 1
    while open_to >= lower:
        fitting = [place for place in asked if place.first_cycles <= open_to <= place.last_cycles]
        place = min(fitting, key=lambda one: one.first_cycles, default=Place(count=open_to, slot=1))
        chosen.append(place)
        open_to = place.first_cycles - 1
    return chosen


def _refutes(attempt: Attempt) -> bool:
    exact = attempt.slot_cycles == 1 and attempt.purpose.startswith("find")
    return attempt.outcome == "infeasible" and (exact or attempt.purpose == "refute")


def _forced_at(
    variant: Variant,
    families: Sequence[Family],
    place: Place,
    questions: Questions,
    others: Sequence[Forced],
) -> Forced:
    def stands(without: frozenset[Family]) -> bool | None:
        return questions.refuted(variant, without, place.count, place.slot)

    first, last = place.first_cycles, place.last_cycles
    everything = frozenset(families)
    for other in others:
        if other.sets and all(stands(everything - set(one)) for one in other.sets):
            return other
    found: Sets | None = smallest_sets(families, stands)
    if found is None:
        return Forced(first_cycles=first, last_cycles=last, sets=(), complete=False, minimal=False)
    return Forced(
        first_cycles=first,
        last_cycles=last,
        sets=found.forcing,
        ways=found.ways,
        complete=found.complete,
        minimal=found.minimal,
    )


def _same(one: Forced, other: Forced) -> bool:
    return (one.sets, one.ways) == (other.sets, other.ways)
