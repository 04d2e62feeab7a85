"""The legality rules that ask a group for a pause: a moment of the period without a product in flight."""

from __future__ import annotations

from collections.abc import Iterable

from twillgpu.costs.record import LegalPair, Problem
from twillgpu.schedule.core import Core
from twillgpu.schedule.literals import Literal, negate

Flights = dict[str, tuple[LegalPair, ...]]
"""Products by name, each with the pairs that may end its flight: the earliest of them does."""


def flights(problem: Problem) -> dict[str, Flights]:
    """Return the flights that each rule speaks of, by rule."""
    found: dict[str, Flights] = {}
    for pair in problem.legality:
        if pair.relation == "pause":
            of_rule = found.setdefault(pair.rule, {})
            of_rule[pair.first] = (*of_rule.get(pair.first, ()), pair)
    return found


def pauses(core: Core) -> None:
    """For every group there is a c such that no u of it has M(u) < c <= min over its readers v of M(v) + delta I,
    modulo I.
    """
    for rule, products in flights(core.problem).items():
        for group in range(core.group_count):
            cuts = [core.clauses.fresh(f"{rule} of {group} at {slot}") for slot in range(core.interval)]
            core.clauses.add(*cuts)
            for name, pairs in products.items():
                _landed(core, name, pairs, group, cuts)


def _landed(core: Core, name: str, pairs: Iterable[LegalPair], group: int, cuts: list[Literal]) -> None:
    """At every cut the product is not issued yet, or one of its readers has started before.

    Rounded down, a reader that started before the cut may be in the cut's own slot.
    """
    start = core.starts[name]
    late = 1 if core.question.rounding == "down" else 0
    last = max(core.starts[pair.second].last + pair.distance * core.interval for pair in pairs)
    for time in range(start.first + 1, last + 1):
        ended = (core.starts[pair.second].lt(time + late - pair.distance * core.interval) for pair in pairs)
        away = (negate(cuts[time % core.interval]), negate(core.groups[name][group]))
        core.clauses.add(*away, start.ge(time), *ended)
