"""The report of one run: what was scheduled, the claim and its proof, the schedule, and what limits it."""

from __future__ import annotations

from types import MappingProxyType

from twillgpu.schedule.record import Schedule, SearchResult
from twillgpu.view.claim import bounds_section, claim_section, refuted_section
from twillgpu.view.columns import columns_remark, columns_section
from twillgpu.view.picture import picture
from twillgpu.view.plan import buffers_section, groups_section, ops_section, utilisation_section
from twillgpu.view.prediction import prediction_section
from twillgpu.view.record import Run
from twillgpu.view.text import WIDTH, number, plural, section, wrap

UNPROVED = MappingProxyType({"registers": "registers in quotas", "length": "length in cycles"})
"""Figures of a schedule that the proof of the secondary objective says nothing about, in words."""


def report(run: Run, *, width: int = WIDTH) -> str:
    """Return the report of ``run`` as plain text that ends in a newline.

    Args:
        run: the records of every stage; ``run.result.schedule`` may be ``None``.
        width: columns; tables with long names may exceed it.
    """
    result = run.result
    lines = [
        *_heading(run),
        *_remarks(run),
        *claim_section(result),
        *bounds_section(result),
        *refuted_section(result),
        *columns_section(run.problem, result),
    ]
    if result.schedule is not None:
        lines += _schedule_sections(run, result.schedule, width)
    lines += _search(run)
    return "\n".join(lines) + "\n"


def _heading(run: Run) -> list[str]:
    title = f" ({run.machine.title})" if run.machine.title else ""
    lines = wrap(f"{_subject(run)}, on {run.machine.name}{title}", indent="")
    if run.kernel is not None:
        trips = run.kernel.loop.trip_count
        many = "unknown until run time" if trips is None else number(trips)
        lines += wrap(
            f"target {run.kernel.target}, {plural(len(run.problem.ops), 'op')} in the loop, trip count {many}"
        )
    return lines


def _subject(run: Run) -> str:
    if run.kernel is None:
        return f"graph {run.graph.name} from {run.source}"
    return f"kernel {run.kernel.name}, loop at {run.kernel.loop.source or run.kernel.loop.name}"


def _remarks(run: Run) -> list[str]:
    remarks = [*run.remarks, *([columns_remark(run.problem)] if run.limits.columns == "fixed" else [])]
    return section("Remarks", [line for remark in remarks for line in wrap(f"- {remark}", hang="  ")])


def _schedule_sections(run: Run, schedule: Schedule, width: int) -> list[str]:
    problem = run.problem
    title = f"One period of the steady state, {plural(schedule.ii_cycles, 'cycle')}"
    return [
        *ops_section(problem, schedule),
        *groups_section(problem, schedule),
        *buffers_section(problem, schedule),
        *utilisation_section(problem, schedule),
        *section(title, picture(problem, schedule, width=width)),
        *prediction_section(run.machine, run.graph, problem, schedule),
    ]


def _search(run: Run) -> list[str]:
    result = run.result
    effort = f"{plural(len(result.attempts), 'solver call')}, slots of {plural(result.slot_cycles, 'cycle')}"
    kept = "" if run.kept_since is None else " (from the cache)"
    lines = [
        f"  {result.method} with {result.solver} {result.version}",
        f"  {effort}, seed {result.options.seed}",
        f"  search {result.seconds:.2f} s{kept}, in all {run.seconds:.2f} s",
    ]
    if result.schedule is not None:
        lines.append("  the schedule passed the independent verifier, rule by rule")
    if result.objective:
        lines += _objective(result)
    return section("Search", lines)


def _objective(result: SearchResult) -> list[str]:
    """The secondary objective: first what the solver decides, then what nothing is proved about."""
    decided = ", ".join(f"{name} {number(value)}" for name, value in result.objective if name not in UNPROVED)
    others = ", ".join(f"{UNPROVED[name]} {number(value)}" for name, value in result.objective if name in UNPROVED)
    proved = "proved least at this resolution" if result.objective_proved else "not proved least"
    lines = wrap(f"secondary objective ({proved}): {decided}", hang="  ") if decided else []
    return lines + (wrap(f"of this schedule, not proved least: {others}", hang="  ") if others else [])
