"""All ways of scheduling one loop, side by side with the optimum, under the same rules, costs and stages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from twillgpu.baselines.attention import (
    FA3,
    FA4,
    FA4_GROUPS,
    O_BEHIND,
    S_AHEAD,
    flash_attention_3,
    flash_attention_4,
    flash_attention_4_groups,
    o_behind,
    s_ahead,
)
from twillgpu.baselines.complete import STAGES, complete
from twillgpu.baselines.heuristics import rau, swinging
from twillgpu.baselines.loops import (
    SEQUENTIAL,
    buffers_way,
    consumers_way,
    load_pipelining,
    producer_consumer,
    sequential,
)
from twillgpu.baselines.record import Comparison, Figures, Found, Outcome, Plan, Row, Unsuited, Way
from twillgpu.costs.bounds import bounds
from twillgpu.costs.record import Problem
from twillgpu.schedule.ask import Progress
from twillgpu.schedule.measure import measured, stage_count
from twillgpu.schedule.record import Schedule, SearchOptions, SearchResult, Status
from twillgpu.schedule.resolution import MOST_STAGES, default_stages
from twillgpu.schedule.search import search
from twillgpu.verify.registers import register_peak, registers_taken

OPTIMUM = Way(name="optimum", says="the search of twillgpu schedule", source="docs/search.md")

Planner = Callable[[Problem], Plan | Unsuited]

PLANS: tuple[tuple[Way, Planner], ...] = (
    (SEQUENTIAL, sequential),
    *((buffers_way(copies), partial(load_pipelining, copies=copies)) for copies in (2, 3, 4)),
    *((consumers_way(depth), partial(producer_consumer, depth=depth)) for depth in (1, 2)),
    (FA3, flash_attention_3),
    (FA4, flash_attention_4),
    (FA4_GROUPS, flash_attention_4_groups),
    (S_AHEAD, s_ahead),
    (O_BEHIND, o_behind),
)
"""Ways that fix groups and orders; what is left is searched."""

HEURISTICS: tuple[Callable[[Problem, SearchOptions, Progress], Found], ...] = (rau, swinging)
"""Ways that give their own starts."""

OUTCOMES: dict[Status, Outcome] = {
    "optimal": "found",
    "feasible": "found",
    "infeasible": "infeasible",
    "limit": "limit",
}


def compare(problem: Problem, options: SearchOptions, progress: Progress | None = None) -> Comparison:
    """Return the optimum of ``problem`` and what every baseline makes of it.

    All have the same number of stages: ``options.max_stages``, by default that of the search, and 5 at least (loads
    three iterations ahead). Every schedule passes the verifier; where a rule of relation ``pause`` refuses a plan at
    every interval, without this rule, which its row names (``lifted``). Where the search ended at a limit, a baseline
    may be better than what it found: then that schedule stands in the first row, too.

    Raises:
        InputError: a circuit of distance 0 with a positive latency.
    """
    report = progress or (lambda _: None)
    fewest = default_stages(problem, bounds(problem).binding.cycles)
    result = search(problem, replace(options, max_stages=options.max_stages or fewest), _under(report, OPTIMUM.name))
    stages = min(MOST_STAGES, options.max_stages or max(STAGES, fewest))
    options = replace(options, max_stages=stages)
    if _at_the_bound(result):
        result = replace(result, max_stages=stages)
    elif result.max_stages != stages:
        result = search(problem, options, _under(report, OPTIMUM.name))
    planned = _planned if result.schedule is None else planned_anyway
    found = [planned(problem, way, planner, options, report) for way, planner in PLANS]
    found += [heuristic(problem, options, _under(report, "heuristic")) for heuristic in HEURISTICS]
    first = _first(result, found)
    best = first.schedule.ii_cycles if first.schedule is not None else None
    return Comparison(
        problem=problem.name,
        machine=problem.machine,
        max_stages=result.max_stages,
        optimum=result,
        rows=tuple(Row(found=one, figures=_figures(problem, one.schedule, best)) for one in (first, *found)),
    )


def _at_the_bound(result: SearchResult) -> bool:
    """Return whether the interval is that of an analytic bound, which holds for any number of stages."""
    return result.schedule is not None and result.schedule.ii_cycles == result.bounds.binding.cycles


def _planned(problem: Problem, way: Way, planner: Planner, options: SearchOptions, report: Progress) -> Found:
    plan = planner(problem)
    if isinstance(plan, Unsuited):
        return Found(way=way, outcome="unsuited", reason=plan.reason)
    return complete(problem, way, plan, options, _under(report, way.name))


def planned_anyway(problem: Problem, way: Way, planner: Planner, options: SearchOptions, report: Progress) -> Found:
    """Return what comes of a way; where a rule of relation ``pause`` refuses its plan, what comes of it without."""
    found = _planned(problem, way, planner, options, report)
    rules = ", ".join(dict.fromkeys(pair.rule for pair in problem.legality if pair.relation == "pause"))
    if not rules or (found.outcome, found.rule) != ("infeasible", "legality"):
        return found
    other = replace(problem, legality=tuple(pair for pair in problem.legality if pair.relation != "pause"))
    without = _planned(other, way, planner, options, _under(report, f"without {rules}"))
    return replace(without, lifted=rules, reason=found.reason) if without.outcome == "found" else found


def _under(report: Progress, name: str) -> Progress:
    return lambda text: report(f"{name}: {text}")


def _first(result: SearchResult, found: list[Found]) -> Found:
    """Return the row of the optimum: what the search found, or a baseline that is better than that."""
    own = result.schedule
    better = [
        one
        for one in found
        if one.schedule is not None and not one.lifted and (own is None or one.schedule.ii_cycles < own.ii_cycles)
    ]
    if better:
        best = min(better, key=lambda one: one.schedule.ii_cycles if one.schedule is not None else 0)
        why = f"the search ended at a limit; the best schedule known is that of {best.way.name}"
        proved = best.schedule is not None and best.schedule.ii_cycles == result.lower_bound_cycles
        lower = result.lower_bound_cycles
        return Found(
            way=OPTIMUM, outcome="found", schedule=best.schedule, reason=why, proved=proved, lower_cycles=lower
        )
    return Found(
        way=OPTIMUM,
        outcome=OUTCOMES[result.status],
        schedule=own,
        rule=", ".join(result.refuted[-1].families) if own is None and result.refuted else "",
        reason=result.bound_reason if own is None else "",
        proved=result.status == "optimal",
        lower_cycles=result.lower_bound_cycles if own is not None else 0,
    )


def _figures(problem: Problem, schedule: Schedule | None, best: int | None) -> Figures | None:
    if schedule is None or best is None:
        return None
    counts = dict(measured(problem, schedule, ("groups", "warps", "barriers", "handoff")))
    unit, share = _busiest(problem, schedule.ii_cycles)
    limits = problem.registers
    needs = [register_peak(problem, schedule, index) for index in range(len(schedule.groups))]
    most = max((need.amount for need in needs if need is not None), default=0)
    return Figures(
        ii_cycles=schedule.ii_cycles,
        ratio=schedule.ii_cycles / best,
        stages=stage_count(problem, schedule),
        groups=counts["groups"],
        warps=counts["warps"],
        registers=registers_taken(schedule, limits) if limits is not None else 0,
        registers_needed=most + (limits.overhead_per_thread if limits is not None else 0),
        barriers=counts["barriers"],
        handoff_cycles=counts["handoff"],
        unit=unit,
        utilisation=share,
    )


def _busiest(problem: Problem, interval: int) -> tuple[str, float]:
    """Return the unit that is held for the largest share of the period, and that share."""
    held = {unit.name: 0.0 for unit in problem.units}
    for op in problem.ops:
        for use in op.uses:
            held[use.unit] += use.cycles * use.amount
    shares = {unit.name: held[unit.name] / (unit.capacity * interval) for unit in problem.units}
    unit = max(shares, key=lambda name: shares[name], default="")
    return unit, shares.get(unit, 0.0)
