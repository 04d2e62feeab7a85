"""Cost normalisation: small integers C' with nearly the ratios of the costs C in cycles, by SCIP.

Minimise F subject to |C[i] C'[j] - C[j] C'[i]| <= F for all i and j and 1 <= sum C' <= U, all integers. Many C'
reach the smallest F, among them some that send most costs to zero; so a second program, built anew, asks for
the largest sum at that F.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from twillgpu.costs.record import PricedEdge, PricedOp, Problem
from twillgpu.graph.record import Use
from twillgpu.schedule.paper.integer import package

BAD_SHARE, BAD_RATIO = 0.25, 1.5
"""A normalisation is bad where more costs than this share become zero, or some ratio is off by more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Normalised:
    """Costs in cycles and in units, ascending by cycles, and how well they agree.

    Attributes:
        costs: (C[i], C'[i]) pairs.
        deviation: F, the largest cross product.
    """

    costs: tuple[tuple[int, int], ...]
    deviation: int

    @property
    def cycles_per_unit(self) -> float:
        """What a unit stands for: sum C / sum C'."""
        return sum(cycles for cycles, _ in self.costs) / max(1, sum(units for _, units in self.costs))

    @property
    def zeros(self) -> int:
        """How many costs became zero."""
        return sum(1 for _, units in self.costs if units == 0)

    @property
    def worst_ratio(self) -> float:
        """The largest factor by which a ratio of two costs that did not become zero is off."""
        sizes = [cycles / units for cycles, units in self.costs if units]
        return max(sizes) / min(sizes)

    @property
    def bad(self) -> bool:
        """Whether the costs are so coarse that a schedule found with them means little."""
        return self.zeros > BAD_SHARE * len(self.costs) or self.worst_ratio > BAD_RATIO

    def units(self, cycles: int) -> int:
        """Return C' of a cost; other times are rounded at the average size of a unit."""
        known = dict(self.costs)
        return known[cycles] if cycles in known else round(cycles / self.cycles_per_unit)

    def remark(self) -> str:
        """Return how well the costs agree, in words."""
        whole = sum(units for _, units in self.costs)
        text = (
            f"cost normalisation: sum of costs {whole}, {self.cycles_per_unit:.1f} cycles per unit on average; "
            f"{self.zeros} of {len(self.costs)} costs became zero; ratios of the others are off by a factor of "
            f"at most {self.worst_ratio:.2f}; F = {self.deviation}"
        )
        return f"{text}; this is coarse: raise --units" if self.bad else text


def costs_of(problem: Problem) -> tuple[int, ...]:
    """Return C: each distinct positive cost once, ascending: cycles(v) of reservation tables and d of edges."""
    tables = {use.offset + use.cycles for op in problem.ops for use in op.uses if use.amount}
    delays = {edge.latency_cycles for edge in problem.edges}
    return tuple(sorted(cost for cost in tables | delays if cost > 0))


def normalised(costs: tuple[int, ...], units: int, *, largest: bool, seconds: float) -> Normalised:
    """Return the normalised costs with ``sum C' <= units``; ``largest``: those of the largest sum at the smallest F.

    With ``largest`` no unit is finer than a cycle. Where the time is over, the best found so far is taken.

    Raises:
        InputError: PySCIPOpt is not installed.
    """
    only_the_largest = (0,) * (len(costs) - 1) + (1,)
    if largest and sum(costs) <= units:
        return Normalised(costs=tuple((cost, cost) for cost in costs), deviation=0)
    found = _solve(costs, units, deviation=None, seconds=seconds) or only_the_largest
    if largest:
        found = _solve(costs, units, deviation=_deviation(costs, found), seconds=seconds) or found
    return Normalised(costs=tuple(zip(costs, found, strict=True)), deviation=_deviation(costs, found))


def _deviation(costs: tuple[int, ...], units: tuple[int, ...]) -> int:
    pairs = list(zip(costs, units, strict=True))
    return max(abs(one * mine - other * yours) for one, yours in pairs for other, mine in pairs)


def _solve(costs: tuple[int, ...], units: int, *, deviation: int | None, seconds: float) -> tuple[int, ...]:
    """Minimise F, or maximise the sum at the F given; empty where nothing was found."""
    pyscipopt = package("pyscipopt")
    model = pyscipopt.Model()
    model.hideOutput()
    model.setParam("limits/time", max(0.05, seconds))
    # The second program is ours: in it, no unit is finer than a cycle.
    finest = [units if deviation is None else min(units, cost) for cost in costs]
    small = [model.addVar(vtype="I", lb=0, ub=most) for most in finest]
    worst = model.addVar(vtype="I", lb=0, ub=deviation)
    _constrain(model, costs, small, worst)
    whole = pyscipopt.quicksum(small)
    model.addCons(whole >= 1)
    model.addCons(whole <= units)
    if deviation is None:
        model.setObjective(worst, "minimize")
    else:
        model.setObjective(whole, "maximize")
    model.optimize()
    return tuple(round(model.getVal(one)) for one in small) if model.getNSols() else ()


def _constrain(model: Any, costs: tuple[int, ...], small: list[Any], worst: Any) -> None:  # noqa: ANN401  # untyped
    """State |C[i] C'[j] - C[j] C'[i]| <= F for every pair."""
    for index, cost in enumerate(costs):
        for other in range(index):
            difference = cost * small[other] - costs[other] * small[index]
            model.addCons(difference <= worst)
            model.addCons(difference >= -worst)


def in_units(problem: Problem, units: Callable[[int], int]) -> Problem:
    """Return ``problem`` with every time in units instead of cycles."""
    return replace(
        problem,
        ops=tuple(_op(op, units) for op in problem.ops),
        edges=tuple(_edge(edge, units) for edge in problem.edges),
    )


def _op(op: PricedOp, units: Callable[[int], int]) -> PricedOp:
    uses = tuple(use for run in op.uses if (use := _use(run, units)) is not None)
    return replace(
        op,
        uses=uses,
        issue_cycles=units(op.issue_cycles),
        latency_cycles=units(op.latency_cycles),
        real_latency_cycles=units(op.real_latency_cycles),
        handoff_cycles=units(op.handoff_cycles),
    )


def _use(run: Use, units: Callable[[int], int]) -> Use | None:
    """Return a run from unit to unit, ``None`` where nothing is left of it."""
    first, end = units(run.offset), units(run.offset + run.cycles)
    return replace(run, offset=first, cycles=end - first) if end > first else None


def _edge(edge: PricedEdge, units: Callable[[int], int]) -> PricedEdge:
    return replace(
        edge,
        latency_cycles=units(edge.latency_cycles),
        handoff_cycles=units(edge.handoff_cycles),
        read_cycles=units(edge.read_cycles),
    )
