"""Closing in on the smallest interval of a changed problem, from the schedule that is known."""

from __future__ import annotations

from twillgpu.explain.variant import Variant
from twillgpu.schedule.ask import Asker
from twillgpu.schedule.finish import finish
from twillgpu.schedule.polish import Draft
from twillgpu.schedule.record import Schedule
from twillgpu.schedule.resolution import slot_cycles
from twillgpu.verify import Verified, check

REFUTATIONS = 2
"""So many slots above the bound are refuted at most for a changed problem."""

STEPS = 4
"""So often the distance to the bound is halved at most."""


def tightened(variant: Variant, known: Schedule, lower: int) -> Schedule | None:
    """Return the known schedule with its order on every unit and its groups, and the smallest interval that the
    changed problem then allows; ``None`` where the order breaks a rule of it. No solver searches.
    """
    draft = Draft(
        ii_cycles=known.ii_cycles,
        starts={op.name: op.start_cycle for op in known.ops},
        groups={op.name: op.group for op in known.ops},
    )
    found = finish(variant.problem, draft, lower=lower, stages=variant.stages)
    # Where ops hold more of a unit than before, it may not serve those that it served together.
    sound = found is not None and isinstance(check(variant.problem, found, max_stages=variant.stages), Verified)
    return found if sound else None


def closest(asker: Asker, lower: int, upper: int, *, asked: bool) -> Schedule | None:
    """Return the best schedule below ``upper`` cycles: tried at the bound (unless ``asked`` before), then in between.

    Feasibility need not be monotone, so that a better one may be missed; what is found is a schedule all the same.
    The halving ends where the solver cannot tell: closer to the bound is harder still.
    """
    slot = slot_cycles(asker.problem, lower, asker.options.resolution)
    best = None if asked else asker.find(-(-lower // slot), slot, lower).schedule
    if best is None and slot == 1:
        best = _next(asker, lower, upper)
    if best is not None or slot == 1:
        return best if best is not None and best.ii_cycles < upper else None
    return _halved(asker, lower, upper)


def _halved(asker: Asker, lower: int, upper: int) -> Schedule | None:
    best, low, bound = None, lower, lower
    for _ in range(STEPS):
        target = (low + upper) // 2
        slot = slot_cycles(asker.problem, target, asker.options.resolution)
        if upper - low <= slot or asker.spent():
            break
        found = asker.find(target // slot, slot, bound)
        if found.schedule is not None and found.schedule.ii_cycles < upper:
            best, upper = found.schedule, found.schedule.ii_cycles
        elif found.known:
            low = target
        else:
            break
    return best


def refuted_to(asker: Asker, lower: int, known: int, slot: int) -> int:
    """Return the bound raised from ``lower`` by a few refutations, at most to ``known``.

    Where the solver could not tell whether there is a schedule, it is not asked for a refutation.
    """
    if any(attempt.outcome == "unknown" for attempt in asker.attempts):
        return lower
    for _ in range(known if slot == 1 else REFUTATIONS):
        count = -(-lower // slot)
        if lower >= known or asker.spent() or not asker.refuted(count, slot):
            break
        lower = min(count * slot + 1, known)
    return lower


def _next(asker: Asker, lower: int, upper: int) -> Schedule | None:
    """Return the first schedule from ``lower`` on, cycle by cycle."""
    for interval in range(lower + 1, upper):
        if asker.spent():
            return None
        found = asker.find(interval, 1, lower).schedule
        if found is not None:
            return found
    return None
