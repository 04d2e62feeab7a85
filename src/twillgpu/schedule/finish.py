"""From a solver's answer at some resolution to a schedule in cycles."""

from __future__ import annotations

from collections.abc import Mapping

from twillgpu.costs.record import Problem
from twillgpu.schedule.assemble import assemble
from twillgpu.schedule.polish import Draft, paused, polish
from twillgpu.schedule.record import Schedule

KEPT: tuple[tuple[frozenset[str], ...], ...] = (
    (frozenset(),),
    (frozenset({"registers"}), frozenset({"buffers"})),
    (frozenset({"registers", "buffers"}),),
)
"""Whose lifetimes keep their order, from the freest to the strictest; the best of a row is taken."""


def drafted(starts: Mapping[str, int], groups: Mapping[str, int], *, slots: int, slot_cycles: int) -> Draft:
    """Return what a solver answers in slots as a draft in cycles."""
    return Draft(
        ii_cycles=slots * slot_cycles,
        starts={name: start * slot_cycles for name, start in starts.items()},
        groups=dict(groups),
    )


def finish(problem: Problem, draft: Draft, *, lower: int, stages: int) -> Schedule | None:
    """Return the schedule of smallest interval in the order of ``draft``, ``None`` where registers or places fail,
    or where the solver was not told of the pauses that a group must have, and they are missing.

    First the order on units alone is kept; where the values then live together do not fit, the order of the
    lifetimes in registers, or in SMEM and TMEM, or both; at last the coarse starts themselves.
    """
    if not paused(problem, draft):
        return None
    for choices in KEPT:
        polished = [polish(problem, draft, lower=lower, stages=stages, keep=keep) for keep in choices]
        schedules = [assemble(problem, found) for found in polished if found is not None]
        fitting = [schedule for schedule in schedules if schedule is not None]
        if fitting:
            return min(fitting, key=lambda schedule: schedule.ii_cycles)
    return assemble(problem, draft)
