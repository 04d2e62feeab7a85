"""Sub-tiles: ops that do the same to different parts of a tile.

Schedules in which sub-tiles follow each other at equal distances are few and often good: where a problem is large,
the search tries these first. The front end numbers what it makes of one op: ``qk_0``, ``qk_1``.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from twillgpu.costs.record import PricedOp, Problem

Family = tuple[str, ...]
"""The ops that sub-tiles 0, 1, ... make of one op."""


def families(problem: Problem) -> tuple[Family, ...]:
    """Return all families of as many ops as there are sub-tiles; () where there are none.

    The members of a family cost the same, and no two that follow each other depend directly on each other.
    """
    numbered: dict[str, list[PricedOp]] = {}
    for op in problem.ops:
        stem, _, number = op.name.rpartition("_")
        members = numbered.setdefault(stem, [])
        if stem and number == str(len(members)):
            members.append(op)
    tied = {frozenset((edge.tail, edge.head)) for edge in problem.edges}
    equal = [tuple(op.name for op in members) for members in numbered.values() if _alike(members)]
    free = [names for names in equal if not any(frozenset(pair) in tied for pair in pairwise(names))]
    most = max((len(names) for names in free), default=0)
    return tuple(names for names in free if len(names) == most)


def _alike(members: list[PricedOp]) -> bool:
    return len(members) > 1 and len({_costs(op) for op in members}) == 1


def _costs(op: PricedOp) -> PricedOp:
    value = replace(op.value, alias=None) if op.value else None
    return replace(op, name="", source="", value=value)
