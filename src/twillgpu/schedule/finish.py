"""From a solver's answer at some resolution to a schedule in cycles."""

from __future__ import annotations

from twillgpu.costs.record import Problem
from twillgpu.schedule.assemble import assemble
from twillgpu.schedule.model import Answer
from twillgpu.schedule.polish import Draft, polish
from twillgpu.schedule.record import Schedule


def finish(
    problem: Problem, answer: Answer, *, slots: int, slot_cycles: int, lower: int, stages: int
) -> Schedule | None:
    """Return the schedule of smallest interval in the order of ``answer``, ``None`` where registers or places fail.

    First the order on units alone is kept; where the values then live together do not fit, the order of
    lifetimes too; at last the coarse starts themselves.
    """
    draft = Draft(
        ii_cycles=slots * slot_cycles,
        starts={name: start * slot_cycles for name, start in answer.starts.items()},
        groups=answer.groups,
    )
    for keep_lifetimes in (False, True):
        polished = polish(problem, draft, lower=lower, stages=stages, keep_lifetimes=keep_lifetimes)
        schedule = assemble(problem, polished) if polished is not None else None
        if schedule is not None:
            return schedule
    return assemble(problem, draft)
