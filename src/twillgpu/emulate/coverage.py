"""Whether every op of the loop is executed once in every iteration, by one group, and what is outside it at all."""

from __future__ import annotations

from collections import Counter, defaultdict

from twillgpu.emulate.unroll import Moment, number
from twillgpu.emulate.wording import Findings
from twillgpu.frontend.kernel import KernelOp
from twillgpu.graph.kinds import ALLOCS, kind_of
from twillgpu.lower.record import Execute, GroupProgram, WarpProgram

NEEDED = frozenset({"atomic", "local_store", "store", "tma_reduce", "tma_store", "tmem_store"})
"""Kinds of ops that leave something behind other than values in registers, whose users would miss them."""
ONCE = frozenset({"atomic", "tma_reduce"})
"""Kinds of ops that may not be repeated."""

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
    _check_effects(program, trips, findings)


def _check_effects(program: WarpProgram, trips: int, findings: Findings) -> None:
    """Record every op that stores something, and that no instruction executes, or too many do."""
    inside, outside = _members(program, trips)
    kernel = program.kernel
    for op in filter(_has_effect, kernel.loop.body):
        lost = [at for at in range(trips) if not inside[op.name, at]]
        if lost:
            findings.coverage(op.name, f"{op.name} is not executed for iteration {lost[0]} of {trips}")
    for op in filter(_has_effect, (*kernel.before, *kernel.after)):
        if not outside[op.name]:
            findings.coverage(op.name, f"{op.name} is not executed where there are {trips} iterations")
        elif outside[op.name] > 1 and kind_of(op) in ONCE:
            findings.coverage(op.name, f"{op.name} is executed {outside[op.name]} times")


def _has_effect(op: KernelOp) -> bool:
    if op.opcode in ALLOCS and not op.operands:
        return False
    return kind_of(op) in NEEDED or (kind_of(op) == "mma" and all(one.type.space == "token" for one in op.results))


def _members(program: WarpProgram, trips: int) -> tuple[Counter[tuple[str, int]], Counter[str]]:
    """Return how often each kernel op is executed for each iteration of a tile, and outside the loop."""
    inside: Counter[tuple[str, int]] = Counter()
    outside: Counter[str] = Counter()
    for group in program.groups:
        for execute in _all_executes(group):
            if execute.iteration is not None:
                times = _iterations(group, execute, trips)
                inside.update((member, at) for member in execute.members for at in times)
            elif trips >= execute.at_least:
                outside.update(execute.members)
    return inside, outside


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
    return [one for one in _all_executes(group) if one.op and one.iteration is not None]


def _all_executes(group: GroupProgram) -> list[Execute]:
    instructions = (*group.before, *group.prologue, *group.loop, *group.epilogue, *group.after)
    return [one for one in instructions if isinstance(one, Execute)]


def _iterations(group: GroupProgram, execute: Execute, trips: int) -> list[int]:
    at = execute.iteration
    if at is None or trips < execute.at_least:
        return []
    steps = range(group.stages - 1, trips) if at.anchor == "loop" else (0,)
    return [number(at, Moment(0, 0, trips, t)) for t in steps]
