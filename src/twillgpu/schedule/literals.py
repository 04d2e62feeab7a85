"""Order-encoded starts and clauses over CP-SAT, with Python booleans for what is known beforehand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from ortools.sat.python import cp_model

Literal: TypeAlias = "cp_model.LiteralT"
"""A CP-SAT literal, or ``True`` / ``False`` for a constant."""


def negate(literal: Literal) -> Literal:
    """Return the negation; constants stay constants."""
    return (not literal) if isinstance(literal, bool) else ~literal


class Clauses:
    """A CP-SAT model that takes clauses with constants in them, and counts clauses per rule."""

    def __init__(self) -> None:
        self.model = cp_model.CpModel()
        self.counts: dict[str, int] = {}
        self.rule = ""

    def fresh(self, name: str) -> Literal:
        """Return a new literal called ``name``."""
        return self.model.new_bool_var(name)

    def add(self, *literals: Literal) -> None:
        """Add the clause: at least one of ``literals`` holds."""
        kept = []
        for literal in literals:
            if literal is True:
                return
            if literal is not False:
                kept.append(literal)
        self.counts[self.rule] = self.counts.get(self.rule, 0) + 1
        self.model.add_bool_or(kept)

    def imply(self, cause: Iterable[Literal], effect: Literal) -> None:
        """Add the clause: if all of ``cause`` hold, so does ``effect``."""
        self.add(*(negate(literal) for literal in cause), effect)

    def at_most(self, terms: Iterable[tuple[int, Literal]], limit: int) -> None:
        """Add: the weights of the literals that hold sum to at most ``limit``."""
        kept = []
        for weight, literal in terms:
            if literal is True:
                limit -= weight
            elif literal is not False:
                kept.append((weight, literal))
        for literal in [literal for weight, literal in kept if weight > limit]:
            self.add(negate(literal))
        kept = [(weight, literal) for weight, literal in kept if weight <= limit]
        if limit < 0:
            self.add()
            return
        if sum(weight for weight, _ in kept) <= limit:
            return
        self.counts[self.rule] = self.counts.get(self.rule, 0) + 1
        if all(2 * weight > limit for weight, _ in kept):
            self.model.add_at_most_one(literal for _, literal in kept)
            return
        self.model.add(weighted(kept) <= limit)


def weighted(terms: list[tuple[int, Literal]]) -> cp_model.LinearExpr:
    """Return the sum of the weights of the literals that hold."""
    constant = sum(weight for weight, literal in terms if literal is True)
    kept = [(weight, literal) for weight, literal in terms if not isinstance(literal, bool)]
    variables = [literal for _, literal in kept]
    return cp_model.LinearExpr.weighted_sum(variables, [weight for weight, _ in kept]) + constant


class Order:
    """An integer in ``first..last`` as literals ``ge(t)``: the integer is at least t (order encoding)."""

    def __init__(self, clauses: Clauses, name: str, first: int, last: int) -> None:
        self.first = first
        self.last = last
        self._clauses = clauses
        self._name = name
        self._ge = [clauses.fresh(f"{name}>={t}") for t in range(first + 1, last + 1)]
        self._at: dict[int, Literal] = {}
        for low, high in zip(self._ge, self._ge[1:], strict=False):
            clauses.imply([high], low)

    def ge(self, t: int) -> Literal:
        """Return the literal "at least t"."""
        if t <= self.first:
            return True
        return False if t > self.last else self._ge[t - self.first - 1]

    def lt(self, t: int) -> Literal:
        """Return the literal "less than t"."""
        return negate(self.ge(t))

    def at(self, t: int) -> Literal:
        """Return the literal "equal to t"."""
        if t < self.first or t > self.last:
            return False
        if self.first == self.last:
            return True
        if t not in self._at:
            self._at[t] = self._equal(t)
        return self._at[t]

    def _equal(self, t: int) -> Literal:
        low, high = self.ge(t), self.lt(t + 1)
        if low is True:
            return high
        if high is True:
            return low
        equal = self._clauses.fresh(f"{self._name}={t}")
        self._clauses.add(equal, negate(low), negate(high))
        self._clauses.imply([equal], low)
        self._clauses.imply([equal], high)
        return equal

    def value(self, solver: cp_model.CpSolver) -> int:
        """Return the integer in the solver's solution."""
        return self.first + sum(1 for literal in self._ge if solver.boolean_value(literal))
