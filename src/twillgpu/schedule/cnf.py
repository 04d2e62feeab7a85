"""A clausal model in conjunctive normal form: sums and cliques become clauses with auxiliary variables."""

from __future__ import annotations

from itertools import accumulate, pairwise

from twillgpu.schedule.literals import AtLeast, Clause, Clauses, Literal, OneOf, Sum
from twillgpu.schedule.sums import Level, Sums

PAIRWISE = 4
"""Up to so many literals, at most one of which holds, are excluded pair by pair."""


class Cnf:
    """Clauses over variables ``1..variables``; the first ones are those of the clausal model, in its numbering."""

    def __init__(self, clauses: Clauses) -> None:
        self.variables = len(clauses.names)
        self.clauses: list[Clause] = []
        self._integers = {integer: self._integer(clauses, integer) for integer in clauses.integers}
        self._sums = Sums(self.fresh, self.clauses.append)
        for constraint in clauses.constraints:
            if isinstance(constraint, tuple):
                self.clauses.append(constraint)
            elif isinstance(constraint, OneOf):
                self._one_of(constraint)
            elif isinstance(constraint, Sum):
                self._sum(constraint)
            else:
                self._at_least(constraint)

    def fresh(self) -> int:
        """Return a new variable."""
        self.variables += 1
        return self.variables

    def _one_of(self, constraint: OneOf) -> None:
        if constraint.exactly:
            self.clauses.append(constraint.literals)
        rest = constraint.literals
        while len(rest) > PAIRWISE:
            # One more variable stands for "one of the first ones holds" among the others.
            first, rest = rest[: PAIRWISE - 1], rest[PAIRWISE - 1 :]
            some = self.fresh()
            self.clauses.extend((-literal, some) for literal in first)
            self._pairs(first)
            rest = (some, *rest)
        self._pairs(rest)

    def _pairs(self, literals: tuple[int, ...]) -> None:
        self.clauses.extend(
            (-first, -second) for index, first in enumerate(literals) for second in literals[index + 1 :]
        )

    def _integer(self, clauses: Clauses, integer: int) -> Level:
        """Return literals "at least the value", for the values that some lower bound of an integer can take."""
        bounds = [c for c in clauses.constraints if isinstance(c, AtLeast) and c.integer == integer]
        values = sorted({value for bound in bounds for value, _ in _steps(bound) if value > 0})
        level = tuple((value, self.fresh()) for value in values)
        self.clauses.extend((-high, low) for (_, low), (_, high) in pairwise(level))
        if values and values[-1] > clauses.integers[integer]:
            self.clauses.append((-next(literal for value, literal in level if value > clauses.integers[integer]),))
        return level

    def _at_least(self, constraint: AtLeast) -> None:
        literals = dict(self._integers[constraint.integer])
        for value, literal in _steps(constraint):
            causes = [-cause for cause in (constraint.condition, literal) if cause is not True]
            if value > 0:
                self.clauses.append((*causes, literals[value]))

    def _sum(self, constraint: Sum) -> None:
        levels: list[Level] = [((weight, literal),) for weight, literal in constraint.terms]
        for weight, integer in constraint.integers:
            levels.append(tuple((weight * value, literal) for value, literal in self._integers[integer]))
        if constraint.chain:
            totals = accumulate(weight for weight, _ in reversed(constraint.chain))
            literals = (literal for _, literal in reversed(constraint.chain))
            levels.append(tuple(zip(totals, literals, strict=True)))
        within = self._sums.at_most(levels, constraint.limit)
        if within is not True:
            kept = () if within is False else (within,)
            self.clauses.append((*constraint.unless, *kept))


def _steps(bound: AtLeast) -> list[tuple[int, Literal]]:
    """Return the values that the lower bound takes, with the literal that the last step to each is."""
    totals = accumulate((weight for weight, _ in bound.chain), initial=bound.constant)
    return list(zip(totals, (True, *(literal for _, literal in bound.chain)), strict=True))
