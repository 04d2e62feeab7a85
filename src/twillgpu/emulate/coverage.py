"""Whether every op of the loop is executed once in every iteration, by one group."""

from __future__ import annotations

from collections import Counter, defaultdict

from twillgpu.emulate.unroll import Moment, number
from twillgpu.emulate.wording import Findings
from twillgpu.lower.record import Execute, GroupProgram, WarpProgram

Piece = tuple[str, tuple[str, ...]]
"""An op and those of its members that one instruction executes."""


def check_coverage(program: WarpProgram, trips: int, findings: Findings) -> None:
    """Record every op of the loop that two groups execute, or that some iteration executes twice, never, or as an
    iteration that the tile does not have.
    """
    for op, groups in _owners(program).items():
        if len(groups) > 1:
            findings.coverage(op, f"{op} is executed by groups {', '.join(groups)}")
    for (op, _), times in executions(program, trips).items():
        outside = [at for at in times if not 0 <= at < trips]
        twice = [at for at, count in times.items() if count > 1]
        lost = [at for at in range(trips) if at not in times]
        if outside:
            findings.coverage(op, f"{op} is executed for iteration {outside[0]} where there are {trips}")
        elif twice:
            findings.coverage(op, f"{op} is executed twice for iteration {twice[0]} of {trips}")
        elif lost:
            findings.coverage(op, f"{op} is not executed for iteration {lost[0]} of {trips}")


def executions(program: WarpProgram, trips: int) -> dict[Piece, Counter[int]]:
    """Return how often each piece of an op is executed for each iteration of a tile."""
    found: dict[Piece, Counter[int]] = defaultdict(Counter)
    for group in program.groups:
        for execute in _executes(group):
            found[execute.op, execute.members].update(_iterations(group, execute, trips))
    return found


def _owners(program: WarpProgram) -> dict[str, list[str]]:
    owners: dict[str, list[str]] = defaultdict(list)
    for group in program.groups:
        for op in dict.fromkeys(execute.op for execute in _executes(group)):
            owners[op].append(group.name)
    return owners


def _executes(group: GroupProgram) -> list[Execute]:
    """Return the instructions of a group that execute ops of the loop, scalars left out."""
    instructions = (*group.before, *group.prologue, *group.loop, *group.epilogue, *group.after)
    return [one for one in instructions if isinstance(one, Execute) and one.op and one.iteration is not None]


def _iterations(group: GroupProgram, execute: Execute, trips: int) -> list[int]:
    at = execute.iteration
    if at is None or trips < execute.at_least:
        return []
    steps = range(group.stages - 1, trips) if at.anchor == "loop" else (0,)
    return [number(at, Moment(0, 0, trips, t)) for t in steps]
