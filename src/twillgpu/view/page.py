"""What an interactive report holds: every picture of every schedule of one loop, as data."""

from __future__ import annotations

from dataclasses import dataclass

from twillgpu.costs.record import Problem
from twillgpu.schedule.record import Schedule
from twillgpu.simulate.record import Trace
from twillgpu.view.lanes import Chart, default_iterations, steady_chart, whole_chart
from twillgpu.view.modulo import ModuloTable, modulo_table
from twillgpu.view.network import Network, network
from twillgpu.view.occupancy import Occupancy, occupancies
from twillgpu.view.palette import COLOURS
from twillgpu.view.simulated import simulated_chart


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A schedule to show: its name, what it is in a few words, and a simulated run of it where there is one."""

    name: str
    says: str
    schedule: Schedule
    trace: Trace | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOp:
    """An op, whatever the schedule."""

    name: str
    kind: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedOp:
    """An op in a schedule, in cycles."""

    name: str
    start_cycle: int
    stage: int
    slot: int
    group: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """All pictures of one schedule."""

    name: str
    says: str
    ii_cycles: int
    groups: tuple[str, ...]
    ops: tuple[PlacedOp, ...]
    steady: Chart
    whole: Chart
    simulated: Chart | None
    occupancies: tuple[Occupancy, ...]
    modulo: ModuloTable
    network: Network


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A report: ``lines`` are the source lines that ops come from, (``file:line``, text)."""

    title: str
    verdict: str
    colours: tuple[str, ...]
    lines: tuple[tuple[str, str], ...]
    ops: tuple[PageOp, ...]
    variants: tuple[Variant, ...]


def page(
    title: str,
    verdict: str,
    problem: Problem,
    candidates: tuple[Candidate, ...],
    lines: tuple[tuple[str, str], ...],
    iterations: int | None = None,
) -> Page:
    """Return the report of a problem.

    Args:
        title: what was scheduled, on what.
        verdict: what is proved of the first schedule, empty where nothing is.
        problem: the problem.
        candidates: its schedules, all verified; the first is shown first.
        lines: texts of source lines.
        iterations: of the chart with prologue and epilogue, ``None`` for the fewest that show a steady state.
    """
    wanted = {op.source for op in problem.ops}
    return Page(
        title=title,
        verdict=verdict,
        colours=COLOURS,
        lines=tuple(line for line in lines if line[0] in wanted),
        ops=tuple(PageOp(name=op.name, kind=op.kind, source=op.source) for op in problem.ops),
        variants=tuple(_variant(problem, candidate, iterations) for candidate in candidates),
    )


def _variant(problem: Problem, candidate: Candidate, iterations: int | None) -> Variant:
    schedule = candidate.schedule
    steady = steady_chart(problem, schedule)
    return Variant(
        name=candidate.name,
        says=candidate.says,
        ii_cycles=schedule.ii_cycles,
        groups=tuple(group.name for group in schedule.groups),
        ops=_placed(schedule),
        steady=steady,
        whole=whole_chart(problem, schedule, iterations or default_iterations(schedule)),
        simulated=simulated_chart(candidate.trace) if candidate.trace is not None else None,
        occupancies=occupancies(problem, schedule),
        modulo=modulo_table(steady),
        network=network(problem, schedule),
    )


def _placed(schedule: Schedule) -> tuple[PlacedOp, ...]:
    return tuple(
        PlacedOp(
            name=op.name,
            start_cycle=op.start_cycle,
            stage=op.start_cycle // schedule.ii_cycles,
            slot=op.start_cycle % schedule.ii_cycles,
            group=op.group,
        )
        for op in sorted(schedule.ops, key=lambda op: (op.start_cycle, op.name))
    )
