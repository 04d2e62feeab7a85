"""A clausal model that knows no solver: literals, clauses, sums, and integers in order encoding.

A literal is a non-zero integer as in DIMACS (negative: negated), or ``True`` / ``False`` for what is known
beforehand. ``cpsat`` and ``cnf`` translate what is recorded here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Literal: TypeAlias = int
"""A variable 1, 2, ... or its negation -1, -2, ..., or ``True`` / ``False`` for a constant."""

Term: TypeAlias = tuple[int, Literal]
"""A weight and the literal that adds it to a sum."""

Holds: TypeAlias = Callable[[Literal], bool]
"""Whether a literal holds in a solution."""

Clause: TypeAlias = tuple[int, ...]
"""At least one of these literals holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OneOf:
    """At most one of the literals holds; exactly one where ``exactly``."""

    literals: tuple[int, ...]
    exactly: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """The weights of the literals that hold sum to at most ``limit``, unless a literal of ``unless`` holds.

    ``terms`` are free of each other; in ``chain`` each literal implies the next one; an integer of ``integers`` adds
    its weight times its value.
    """

    terms: tuple[Term, ...]
    chain: tuple[Term, ...]
    integers: tuple[Term, ...]
    limit: int
    unless: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AtLeast:
    """An integer is at least ``constant`` and the weights of the literals of ``chain`` that hold, if ``condition``
    does; each literal of the chain implies the one before.
    """

    integer: int
    constant: int
    chain: tuple[Term, ...]
    condition: Literal


Constraint: TypeAlias = Clause | OneOf | Sum | AtLeast


def negate(literal: Literal) -> Literal:
    """Return the negation; constants stay constants."""
    return (not literal) if isinstance(literal, bool) else -literal


class Clauses:
    """A model under construction: constraints in the order in which they are stated, constants resolved.

    Attributes:
        names: what each variable stands for; variable v is ``names[v - 1]``.
        integers: variables that are no literals: integers from 0 to the value here. They are bounded from below by
            ``at_least``, from above by sums, and in no other way.
        constraints: everything stated.
        counts: constraints per rule; ``rule`` is the one that is being stated.
        objective: weighted literals whose sum is to be minimised; empty: any solution will do.
        hint: literals that hold in a solution known beforehand, where there is one.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.integers: dict[int, int] = {}
        self.constraints: list[Constraint] = []
        self.counts: dict[str, int] = {}
        self.rule = ""
        self.objective: tuple[Term, ...] = ()
        self.hint: tuple[int, ...] = ()

    def fresh(self, name: str) -> Literal:
        """Return a new literal called ``name``."""
        self.names.append(name)
        return len(self.names)

    def integer(self, name: str, last: int) -> int:
        """Return a new integer in ``0..last`` for ``at_least`` and for the ``integers`` of ``at_most_if``."""
        self.names.append(name)
        self.integers[len(self.names)] = last
        return len(self.names)

    def add(self, *literals: Literal) -> None:
        """Add the clause: at least one of ``literals`` holds."""
        kept = []
        for literal in literals:
            if literal is True:
                return
            if literal is not False:
                kept.append(literal)
        self._state(tuple(kept))

    def imply(self, cause: Iterable[Literal], effect: Literal) -> None:
        """Add the clause: if all of ``cause`` hold, so does ``effect``."""
        self.add(*(negate(literal) for literal in cause), effect)

    def exactly_one(self, literals: Iterable[Literal]) -> None:
        """Add: exactly one of ``literals``, none of which is a constant, holds."""
        self._state(OneOf(literals=tuple(literals), exactly=True))

    def at_most(self, terms: Iterable[Term], limit: int, *, chain: Sequence[Term] = ()) -> None:
        """Add: the weights of the literals that hold sum to at most ``limit``.

        In ``chain`` each literal implies the next one; this makes clauses out of sums smaller.
        """
        terms = tuple(terms)
        limit -= _constant((*terms, *chain))
        terms, chain = self._fitting(terms, limit), self._fitting(chain, limit)
        everything = (*terms, *chain)
        if limit < 0:
            self.add()
        elif sum(weight for weight, _ in everything) <= limit:
            return
        elif all(2 * weight > limit for weight, _ in everything):
            self._state(OneOf(literals=tuple(literal for _, literal in everything), exactly=False))
        else:
            self._state(Sum(terms=terms, chain=tuple(chain), integers=(), limit=limit, unless=()))

    def _fitting(self, terms: Iterable[Term], limit: int) -> tuple[Term, ...]:
        """Return the variable terms of at most ``limit``; forbid heavier ones."""
        variable = _variable(terms)
        for weight, literal in variable:
            if weight > limit:
                self.add(negate(literal))
        return tuple((weight, literal) for weight, literal in variable if weight <= limit)

    def at_most_if(
        self, condition: Literal, terms: Iterable[Term], limit: int, *, integers: Sequence[Term] = ()
    ) -> None:
        """Add: if ``condition`` (no constant) holds, terms and weighted integers sum to at most ``limit``."""
        terms = tuple(terms)
        self._state(
            Sum(
                terms=_variable(terms),
                chain=(),
                integers=tuple(integers),
                limit=limit - _constant(terms),
                unless=(negate(condition),),
            )
        )

    def at_least(self, integer: int, condition: Literal, constant: int, chain: Sequence[Term]) -> None:
        """Add: if ``condition`` holds, the integer is at least ``constant`` and the weights that hold in ``chain``.

        Each literal of the chain implies the one before.
        """
        if condition is not False:
            self._state(AtLeast(integer=integer, constant=constant, chain=tuple(chain), condition=condition))

    def minimize(self, terms: Iterable[Term]) -> None:
        """Ask for a solution whose weights of literals that hold sum to the least; constants do not matter."""
        self.objective = tuple((weight, literal) for weight, literal in terms if not isinstance(literal, bool))

    def _state(self, constraint: Constraint) -> None:
        self.counts[self.rule] = self.counts.get(self.rule, 0) + 1
        self.constraints.append(constraint)


def _constant(terms: Iterable[Term]) -> int:
    return sum(weight for weight, literal in terms if literal is True)


def _variable(terms: Iterable[Term]) -> tuple[Term, ...]:
    return tuple((weight, literal) for weight, literal in terms if weight and not isinstance(literal, bool))


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

    def above(self, weight: int) -> list[Term]:
        """Return literals that sum to ``weight`` times what exceeds ``first``; each implies the one before."""
        return [(weight, self.ge(t)) for t in range(self.first + 1, self.last + 1)]

    def below(self, weight: int) -> list[Term]:
        """Return a chain that sums to ``weight`` times what is missing from ``last``."""
        return [(weight, self.lt(t)) for t in range(self.first + 1, self.last + 1)]

    def value(self, holds: Holds) -> int:
        """Return the integer in a solution."""
        return self.first + sum(1 for literal in self._ge if holds(literal))


class Shifted(Order):
    """Another integer plus a constant: it has no literals of its own."""

    def __init__(self, order: Order, shift: int) -> None:
        self.first = order.first + shift
        self.last = order.last + shift
        self._order = order
        self._shift = shift

    def ge(self, t: int) -> Literal:
        """Return the literal "at least t"."""
        return self._order.ge(t - self._shift)

    def at(self, t: int) -> Literal:
        """Return the literal "equal to t"."""
        return self._order.at(t - self._shift)

    def below(self, weight: int) -> list[Term]:
        """Return a chain that sums to ``weight`` times what is missing from ``last``."""
        return self._order.below(weight)

    def value(self, holds: Holds) -> int:
        """Return the integer in a solution."""
        return self._order.value(holds) + self._shift
