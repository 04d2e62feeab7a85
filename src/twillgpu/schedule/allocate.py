"""Places of buffers in a memory: rings of copies that may share bytes where they are never live together."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from ortools.sat.python import cp_model

WORK = 0.2
"""Deterministic work units for places that share little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ring:
    """A buffer to place: ``depth`` copies of ``units`` alignment units, live during ``span`` in iteration 0;
    ``span`` is ``None`` where it is live all the time.
    """

    name: str
    units: int
    depth: int
    span: tuple[int, int] | None


def place(rings: list[Ring], interval: int, room: int) -> dict[str, int] | None:
    """Return a place in units for every ring within ``room`` units, or ``None``: side by side if they fit,
    otherwise sharing where no two instances that touch the same unit are live together (exact).
    """
    if sum(ring.units * ring.depth for ring in rings) <= room:
        return _side_by_side(rings)
    if any(ring.units * ring.depth > room for ring in rings):
        return None
    model = cp_model.CpModel()
    places = [model.new_int_var(0, room - ring.units * ring.depth, ring.name) for ring in rings]
    shared: list[cp_model.LinearExprT] = []
    for right, ring in enumerate(rings):
        for left in range(right):
            _separate(model, rings[left], places[left], ring, places[right], interval)
            shared.append(_shared(model, (rings[left], places[left]), (ring, places[right])))
    # Side by side they do not fit, so some two share; said once, it saves the solver from proving it.
    model.add(sum(shared) >= min(ring.units * ring.depth for ring in rings))
    model.minimize(sum(shared))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = WORK
    if solver.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    return {ring.name: solver.value(place) for ring, place in zip(rings, places, strict=True)}


def _shared(
    model: cp_model.CpModel, one: tuple[Ring, cp_model.IntVar], other: tuple[Ring, cp_model.IntVar]
) -> cp_model.LinearExprT:
    """Return the price of two rings that share bytes, 0 if they lie apart: where there is room, it is used."""
    overlap, before = model.new_bool_var("overlap"), model.new_bool_var("before")
    sizes = (one[0].units * one[0].depth, other[0].units * other[0].depth)
    model.add(one[1] + sizes[0] <= other[1]).only_enforce_if(~overlap, before)
    model.add(other[1] + sizes[1] <= one[1]).only_enforce_if(~overlap, ~before)
    return min(sizes) * overlap


def _side_by_side(rings: list[Ring]) -> dict[str, int]:
    places: dict[str, int] = {}
    end = 0
    for ring in rings:
        places[ring.name] = end
        end += ring.units * ring.depth
    return places


def _separate(
    model: cp_model.CpModel, one: Ring, here: cp_model.IntVar, other: Ring, there: cp_model.IntVar, interval: int
) -> None:
    """Keep every two copies apart that are live together at some time."""
    for copy in range(one.depth):
        for twin in range(other.depth):
            if _meet(one, copy, other, twin, interval):
                mine, theirs = here + copy * one.units, there + twin * other.units
                before = model.new_bool_var("before")
                model.add(mine + one.units <= theirs).only_enforce_if(before)
                model.add(theirs + other.units <= mine).only_enforce_if(~before)


def _meet(one: Ring, copy: int, other: Ring, twin: int, interval: int) -> bool:
    """Return whether some instance in ``copy`` of ``one`` and some in ``twin`` of ``other`` are live together.

    Instance i of ``one`` and i + n of ``other`` meet for n in a range; i = copy mod depth and
    i + n = twin mod depth have a common i if and only if twin - copy - n is a multiple of the depths' gcd.
    """
    if one.span is None or other.span is None:
        return True
    last = -(-(one.span[1] - other.span[0]) // interval) - 1
    first = (one.span[0] - other.span[1]) // interval + 1
    step = gcd(one.depth, other.depth)
    return any((twin - copy - n) % step == 0 for n in range(first, last + 1))
