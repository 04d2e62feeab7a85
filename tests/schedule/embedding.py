"""Whether the clausal model admits a given schedule: its starts and groups are fixed, and the solver is asked."""

from __future__ import annotations

from collections.abc import Mapping

from twillgpu.costs.record import Problem, Scale
from twillgpu.costs.scale import scaled
from twillgpu.schedule.core import Core, Question
from twillgpu.schedule.cpsat import solve
from twillgpu.schedule.model import build
from twillgpu.schedule.record import Schedule
from twillgpu.schedule.solved import Effort


def question(problem: Problem, interval: int, stages: int, scale: Scale) -> Question:
    """Return the question at one interval in slots, with every register value counted where that is exact."""
    exact = scale.slot_cycles == 1
    return Question(
        problem=scaled(problem, scale),
        interval=interval,
        stages=stages,
        rounding="exact" if exact else scale.rounding,
        small_registers=0,
    )


def admits(problem: Problem, schedule: Schedule, stages: int, slot: int = 1) -> bool:
    """Return whether the model rounded down to slots of ``slot`` cycles (1: exact) has ``schedule`` as a solution.

    Starts ``k I + r`` become ``k n + r // slot``, the map that the refutations in slots rest on.
    """
    interval = -(-schedule.ii_cycles // slot)
    core = build(question(problem, interval, stages, Scale(slot_cycles=slot, rounding="down")), ())
    if core is None:
        return False
    turns = {op.name: divmod(op.start_cycle, schedule.ii_cycles) for op in schedule.ops}
    fix(core, {name: turn * interval + rest // slot for name, (turn, rest) in turns.items()}, _groups(core, schedule))
    return solvable(core)


def fix(core: Core, starts: Mapping[str, int], groups: Mapping[str, int]) -> None:
    """Demand these starts, moved so that the anchor begins at slot 0 of some period, and these groups."""
    moved = -starts[core.anchor] % core.interval
    core.clauses.add(core.base.at(moved))
    for name, start in starts.items():
        core.clauses.add(core.starts[name].at(start + moved))
        core.clauses.add(core.groups[name][groups[name]])


def solvable(core: Core) -> bool:
    return solve(core.clauses, Effort(work=5.0, seconds=60.0)).holds is not None


def _groups(core: Core, schedule: Schedule) -> dict[str, int]:
    """Return the groups numbered by their first ops, the one set apart for variable-latency ops staying 0."""
    numbers: dict[int, int] = {0: 0} if core.designated else {}
    given = {op.name: op.group for op in schedule.ops}
    for op in core.problem.ops:
        if not (core.designated and op.variable_latency):
            numbers.setdefault(given[op.name], len(numbers))
    return {name: numbers[group] for name, group in given.items()}
