"""Legality rules that ask a group for a moment of the period without a product in flight; the paper has none."""

from __future__ import annotations

from collections.abc import Sequence

from twillgpu.costs.record import LegalPair
from twillgpu.schedule.paper.program import Program
from twillgpu.schedule.paper.smt import negation
from twillgpu.schedule.rules_pauses import flights


def pauses(program: Program) -> None:
    """For each group there is a slot c at which no product of it is in flight."""
    for rule, products in flights(program.problem).items():
        for group in range(program.groups):
            cuts = [program.script.boolean(f"{rule} {group} {slot}") for slot in range(program.interval)]
            program.script.clause(*cuts)
            for name, pairs in products.items():
                _landed(program, name, pairs, group, cuts)


def _landed(program: Program, name: str, pairs: Sequence[LegalPair], group: int, cuts: Sequence[str]) -> None:
    """op[u, i, t] with t < c on the group implies op[v, i + delta, t'] with t' < c for one of its readers v."""
    first = program.ranges[name][0]
    last = max(program.ranges[pair.second][1] + pair.distance * program.interval for pair in pairs)
    for time in range(first + 1, last + 1):
        program.script.clause(
            negation(cuts[time % program.interval]),
            negation(program.inside(name, group)),
            negation(program.begun(name, 0, time - 1)),
            *(program.begun(pair.second, 0, time - 1 - pair.distance * program.interval) for pair in pairs),
        )
