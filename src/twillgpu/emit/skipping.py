"""Chains of variables in a prologue of which a short loop leaves steps out.

A reader in a later step of the prologue counts the steps since its value was made, and one in the epilogue counts the
iterations. So chains move on in the steps that are left out, too, and go back behind the prologue.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from twillgpu.emit.loop_variables import LoopVariables
from twillgpu.emit.versions import variable

NEAR = 2
"""Steps that a reader may be behind without seeing in the epilogue that its chain has moved on."""


def moved_on(moves: Iterable[tuple[str, str]], started: Collection[str]) -> Iterator[str]:
    """Yield what a step of the prologue does where there is no such iteration: its chains move on.

    What was turned into an accumulator, since the step has one in flight (``started``), moves on as a tile.
    """
    yield "else:"
    for target, source in moves:
        waited = source in started and target not in started
        yield f"    {target} = {f'warpgroup_mma_wait(0, deps=[{source}])' if waited else source}"


def turned_back(variables: LoopVariables) -> Iterator[str]:
    """Yield how chains go back, behind the prologue, by the steps that were left out."""
    for value in sorted(variables.last):
        made = variables.defined.get(value)
        if made is None or variables.behind.get(value, 0) <= NEAR:
            continue
        name = variables.frame.names.name(value)
        for iterations in range(2, variables.group.stages - made.stage):
            yield f"if trips < {iterations}:"
            for at in range(variables.last[value]):
                yield f"    {variable(name, at)} = {variable(name, at + 1)}"
