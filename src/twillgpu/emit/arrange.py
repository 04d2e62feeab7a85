"""Order of register work on tiles that are cut in slices: what takes many registers late, what frees them early.

A load from TMEM moves down to its first reader, past waits but not past the arrival that gives the columns back; a
cast to a smaller type moves up to where its operand is made.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from twillgpu.emit.frame import Frame
from twillgpu.lower.record import Arrive, Commit, Execute, GroupProgram, Instruction, Put


def arranged(frame: Frame, group: GroupProgram, sliced: Iterable[str]) -> GroupProgram:
    """Return the group's program with loads late and casts early, of the values in ``sliced``."""
    cut = frozenset(sliced)
    if not cut:
        return group

    def moved(region: tuple[Instruction, ...]) -> tuple[Instruction, ...]:
        return _early_casts(frame, _late_loads(frame, region, cut), cut)

    return replace(
        group,
        before=moved(group.before),
        prologue=moved(group.prologue),
        loop=moved(group.loop),
        epilogue=moved(group.epilogue),
        after=moved(group.after),
    )


def _late_loads(frame: Frame, region: tuple[Instruction, ...], cut: frozenset[str]) -> tuple[Instruction, ...]:
    steps = list(region)
    for one in region:
        if not isinstance(one, Execute) or not _only(frame, one, "ttng.tmem_load", cut):
            continue
        at = next(place for place, step in enumerate(steps) if step is one)
        last = at
        value = frame.op_named(one.members[0]).results[0].name
        rings = {access.ring for access in one.reads}
        while last + 1 < len(steps) and not _stops(frame, steps[last + 1], one, value, rings):
            last += 1
        if last + 1 < len(steps) and _reads(frame, steps[last + 1], value):
            steps.insert(last, steps.pop(at))
    return tuple(steps)


def _early_casts(frame: Frame, region: tuple[Instruction, ...], cut: frozenset[str]) -> tuple[Instruction, ...]:
    steps = list(region)
    for one in region:
        if not isinstance(one, Execute) or not _only(frame, one, "arith.truncf", cut):
            continue
        operand = frame.op_named(one.members[0]).operands[0]
        at = next(place for place, step in enumerate(steps) if step is one)
        made = [place for place, step in enumerate(steps[:at]) if _makes(frame, step, operand)]
        if made and _together(steps[made[-1]], one):
            steps.insert(made[-1] + 1, steps.pop(at))
    return tuple(steps)


def _only(frame: Frame, one: Execute, opcode: str, cut: frozenset[str]) -> bool:
    """Return whether an instruction is one op of this kind whose result is cut."""
    op = frame.op_named(one.members[0])
    return len(one.members) == 1 and op.opcode == opcode and op.results[0].name in cut


def _stops(frame: Frame, step: Instruction, load: Execute, value: str, rings: set[str]) -> bool:
    """Return whether a load may not move past a step: it reads the value, it may write the columns, or it tells
    somebody that they were read.
    """
    if not _together(step, load) or _reads(frame, step, value):
        return True
    if isinstance(step, Arrive | Commit):
        return any(said.startswith(f"{load.op} ") for said in frame.barriers[step.use.barrier].serves)
    return isinstance(step, Execute) and any(access.ring in rings for access in step.writes)


def _together(one: Instruction, other: Execute) -> bool:
    """Return whether two instructions are under the same condition and, if both say, of the same iteration."""
    own = one.iteration if isinstance(one, Execute) and one.members else other.iteration
    return one.at_least == other.at_least and own == other.iteration


def _reads(frame: Frame, step: Instruction, value: str) -> bool:
    if isinstance(step, Put):
        return value in _leaves(frame, step.value)
    if not isinstance(step, Execute):
        return False
    return any(value in _leaves(frame, name) for member in step.members for name in frame.op_named(member).operands)


def _makes(frame: Frame, step: Instruction, value: str) -> bool:
    return isinstance(step, Execute) and any(
        result.name == value for member in step.members for result in frame.op_named(member).results
    )


def _leaves(frame: Frame, value: str) -> set[str]:
    maker = frame.makers.get(value)
    if maker is None or not frame.inline(maker):
        return {value}
    return {leaf for operand in maker.operands for leaf in _leaves(frame, operand)}
