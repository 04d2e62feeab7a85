"""Which variables of a group must exist before its prologue."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import replace

from twillgpu.emit.loop_variables import InFlight, LoopVariables, advance, identity
from twillgpu.lower.record import Instruction

Variables = set[tuple[str, int]]
"""Values, and which variables of their chains."""


def needed(variables: LoopVariables, *, rolled: bool, peeled: bool) -> Variables:
    """Return the variables that a step may read before it makes them, those that are read after the loop, and those
    that pass from one conditional block to another.

    Args:
        variables: of the group's loop.
        rolled: whether there is no prologue.
        peeled: whether prologue and epilogue are written without conditions.
    """
    group = variables.group
    found = set(variables.entering)
    after = {leaf for one in group.after for _, leaf in variables.reads(one, 0)}
    for carried in variables.frame.program.kernel.loop.carried:
        if carried.result in after and carried.yielded in variables.defined:
            found.add((carried.yielded, 0))
    if peeled:
        return found | _unmade(variables, (*group.prologue, *group.epilogue))
    if not rolled:
        found |= _across(variables, group.prologue, [])
    settled = [replace(one) for one in variables.flight]
    return found | _across(variables, group.epilogue, settled)


def _across(variables: LoopVariables, instructions: tuple[Instruction, ...], flight: list[InFlight]) -> Variables:
    """Return the variables that one conditional block makes and another one reads or waits for."""
    found: Variables = set()
    made: dict[str, int] = {}
    blocks = itertools.groupby(instructions, key=lambda one: one.at_least)
    for number, (_, some) in enumerate(blocks):
        for instruction in some:
            elsewhere = {value for value, block in made.items() if block != number}
            found |= _read(variables, instruction, elsewhere)
            made |= dict.fromkeys(variables.made(instruction), number)
            advance(flight, instruction, variables.frame)
        found |= {(one.value, one.variable) for one in flight}
    return found


def _unmade(variables: LoopVariables, instructions: Iterable[Instruction]) -> Variables:
    """Return the variables of the loop that straight code reads before it has made them."""
    found: Variables = set()
    missing = set(variables.defined)
    for instruction in instructions:
        found |= _read(variables, instruction, missing)
        missing -= set(variables.made(instruction))
    return found


def _read(variables: LoopVariables, instruction: Instruction, wanted: set[str]) -> Variables:
    """Return all variables of the chains that an instruction reads, of values in ``wanted``."""
    position = variables.places.get(identity(instruction), 0)
    values = (
        value
        for at, leaf in variables.reads(instruction, position)
        if (value := variables.source(leaf).value) in wanted and not variables.beside(value, at)
    )
    return {(value, chained) for value in values for chained in range(variables.last.get(value, 0) + 1)}
