"""SMT-LIB 2 text: terms of propositional logic with integer sums (QF_LIA), constants folded as they are built."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote

TRUE, FALSE = "true", "false"

SAFE = " !#$&()*+,-./:;<=>?@[]^_{}~"
"""Characters, beside letters and digits, that stand for themselves in a symbol."""

Terms = list[tuple[int, str]]
"""Weighted formulas: the weights of those that hold are summed."""


def symbol(text: str) -> str:
    """Return ``text`` as a quoted symbol; what a quoted symbol cannot hold is written as in a web address."""
    return f"|{quote(text, safe=SAFE)}|"


def negation(term: str) -> str:
    """Return the negation of a formula."""
    if term in (TRUE, FALSE):
        return FALSE if term == TRUE else TRUE
    return term[5:-1] if term.startswith("(not ") else f"(not {term})"


def disjunction(terms: Iterable[str]) -> str:
    """Return the formula "at least one of ``terms``"."""
    kept = [term for term in dict.fromkeys(terms) if term != FALSE]
    if TRUE in kept:
        return TRUE
    if len(kept) <= 1:
        return kept[0] if kept else FALSE
    return f"(or {' '.join(kept)})"


def conjunction(terms: Iterable[str]) -> str:
    """Return the formula "all of ``terms``"."""
    kept = [term for term in dict.fromkeys(terms) if term != TRUE]
    if FALSE in kept:
        return FALSE
    if len(kept) <= 1:
        return kept[0] if kept else TRUE
    return f"(and {' '.join(kept)})"


def total(terms: Terms) -> str:
    """Return the sum of the weights of the formulas that hold."""
    constant = sum(weight for weight, term in terms if term == TRUE)
    parts = [f"(ite {term} {weight} 0)" for weight, term in terms if term not in (TRUE, FALSE)]
    if constant or not parts:
        parts.append(str(constant))
    return parts[0] if len(parts) == 1 else f"(+ {' '.join(parts)})"


class Script:
    """Declarations and assertions in order, with the rule that each assertion states.

    Attributes:
        rule: name of the rule that is being stated.
        counts: assertions per rule.
    """

    def __init__(self, title: Iterable[str]) -> None:
        self.rule = ""
        self.counts: dict[str, int] = {}
        self._lines = [f"; {line}" for line in title]
        self._lines.append("(set-logic QF_LIA)")

    def begin(self, rule: str) -> None:
        """Start a new rule."""
        self.rule = rule
        self.counts.setdefault(rule, 0)
        self._lines.append(f"; rule: {rule}")

    def boolean(self, name: str) -> str:
        """Declare a Boolean and return its symbol."""
        return self._declare(name, "Bool")

    def integer(self, name: str, low: int, high: int) -> str:
        """Declare an integer from ``low`` to ``high`` and return its symbol."""
        declared = self._declare(name, "Int")
        self._lines.append(f"(assert (<= {low} {declared} {high}))")
        return declared

    def named(self, name: str, term: str) -> str:
        """Return a symbol that stands for ``term``; constants and plain symbols stand for themselves."""
        if not term.startswith("("):
            return term
        self._lines.append(f"(define-fun {symbol(name)} () Bool {term})")
        return symbol(name)

    def require(self, term: str) -> None:
        """Assert a formula; nothing is written for one that holds anyway."""
        if term != TRUE:
            self.counts[self.rule] = self.counts.get(self.rule, 0) + 1
            self._lines.append(f"(assert {term})")

    def clause(self, *terms: str) -> None:
        """Assert that at least one of ``terms`` holds."""
        self.require(disjunction(terms))

    def implies(self, causes: Iterable[str], effect: str) -> None:
        """Assert that ``effect`` holds where all of ``causes`` do."""
        self.clause(*(negation(cause) for cause in causes), effect)

    def at_most(self, terms: Terms, limit: int) -> None:
        """Assert that the weights of the formulas that hold sum to at most ``limit``.

        Where no two of them can hold together, a clause for each pair says the same.
        """
        limit -= sum(weight for weight, term in terms if term == TRUE)
        kept = [(weight, term) for weight, term in terms if term not in (TRUE, FALSE) and weight > 0]
        if limit < 0:
            self.require(FALSE)
            return
        for term in (term for weight, term in kept if weight > limit):
            self.require(negation(term))
        kept = [(weight, term) for weight, term in kept if weight <= limit]
        if sum(weight for weight, _ in kept) <= limit:
            return
        lightest = sorted(weight for weight, _ in kept)[:2]
        if sum(lightest) > limit:
            for index, (_, term) in enumerate(kept):
                for _, other in kept[:index]:
                    self.clause(negation(term), negation(other))
            return
        self.require(f"(<= {total(kept)} {limit})")

    def text(self, wanted: Iterable[str] = ()) -> str:
        """Return the whole script; ``wanted`` are the symbols whose values are asked for where there is a model."""
        asked = " ".join(wanted)
        tail = ["(check-sat)"] + ([f"(get-value ({asked}))"] if asked else [])
        return "\n".join([*self._lines, *tail, "(exit)"]) + "\n"

    def _declare(self, name: str, sort: str) -> str:
        declared = symbol(name)
        self._lines.append(f"(declare-fun {declared} () {sort})")
        return declared
