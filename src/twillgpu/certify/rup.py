"""A checker of refutations in clauses: every lemma of a DRAT proof must follow by unit propagation (RUP).

It knows nothing of the solver that wrote the proof. A lemma is accepted if assuming its negation and propagating
units ends in a conflict with the clauses accepted before it; the proof is accepted once the clauses without any
assumption end in a conflict. Deletions are followed, except those of unit clauses, as usual. Lemmas that are only RAT
are refused.

After Goldberg and Novikov, "Verification of Proofs of Unsatisfiability for CNF Formulas" (DATE 2003).
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal as Choice

Clause = tuple[int, ...]
EVERY = 64
"""Lemmas between two looks at the clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What the checker found: outcome, lemmas checked, why not (empty where accepted), and wall seconds."""

    outcome: Choice["accepted", "refused", "time limit"]
    lemmas: int
    reason: str
    seconds: float


def check_refutation(clauses: Iterable[Clause], proof: Iterable[str], *, seconds: float) -> Checked:
    """Check that ``proof`` refutes ``clauses``.

    Args:
        clauses: the formula in DIMACS numbering.
        proof: lines of a DRAT proof in text: literals closed by 0, deletions after ``d``.
        seconds: wall limit.
    """
    started = time.monotonic()
    state = _Clauses(clauses)
    lemmas = 0
    for number, line in enumerate(proof, 1):
        if state.conflict:
            break
        if number % EVERY == 0 and time.monotonic() - started > seconds:
            return _checked("time limit", lemmas, f"line {number} was reached", started)
        words = line.split()
        if not words or words[0] == "c":
            continue
        try:
            lemma, deleted = _lemma(words)
        except ValueError:
            return _checked(
                "refused", lemmas, f"line {number}: {line.strip()[:40]!r} is no clause closed by 0", started
            )
        if deleted:
            state.delete(lemma)
            continue
        lemmas += 1
        if not state.implies(lemma):
            text = " ".join(map(str, lemma)) or "the empty clause"
            return _checked("refused", lemmas, f"line {number}: {text} does not follow by unit propagation", started)
        state.add(lemma)
    if state.conflict:
        return _checked("accepted", lemmas, "", started)
    return _checked("refused", lemmas, "the proof ends without a contradiction", started)


def _checked(
    outcome: Choice["accepted", "refused", "time limit"], lemmas: int, reason: str, started: float
) -> Checked:
    return Checked(outcome=outcome, lemmas=lemmas, reason=reason, seconds=time.monotonic() - started)


def _lemma(words: list[str]) -> tuple[Clause, bool]:
    deleted = words[0] == "d"
    numbers = tuple(int(word) for word in words[1 if deleted else 0 :])
    if not numbers or numbers[-1] != 0 or 0 in numbers[:-1]:
        raise ValueError
    return numbers[:-1], deleted


class _Clauses:
    """Clauses under unit propagation with two watched literals each.

    Attributes:
        conflict: whether they contradict each other by unit propagation alone.
    """

    def __init__(self, clauses: Iterable[Clause]) -> None:
        self.conflict = False
        self._true: dict[int, bool] = {}
        self._trail: list[int] = []
        self._watches: dict[int, list[list[int]]] = {}
        self._known: dict[Clause, list[list[int]]] = {}
        for clause in clauses:
            self.add(clause)

    def add(self, clause: Clause) -> None:
        """Add a clause, and what follows from it by unit propagation."""
        literals = list(dict.fromkeys(clause))
        true = self._true
        if self.conflict or any(-literal in literals for literal in literals):
            return
        # Literals that are not false come first, so that the two watched ones are among them where there are two.
        literals.sort(key=lambda literal: true.get(literal, True) is False)
        self._known.setdefault(tuple(sorted(literals)), []).append(literals)
        open_literals = sum(true.get(literal, True) for literal in literals)
        if len(literals) > 1:
            for literal in literals[:2]:
                self._watches.setdefault(literal, []).append(literals)
        if open_literals == 0:
            self.conflict = True
        elif open_literals == 1 and literals[0] not in true:
            self._assume(literals[0])
            self.conflict = not self._propagate(len(self._trail) - 1)

    def delete(self, clause: Clause) -> None:
        """Delete a clause; one that is unknown, or the reason of a unit, is left."""
        key = tuple(sorted(dict.fromkeys(clause)))
        found = self._known.get(key)
        if not found or len(key) < 2 or sum(self._true.get(literal, True) for literal in key) < 2:
            return
        literals = found.pop()
        for literal in literals[:2]:
            watching = self._watches[literal]
            watching[:] = [other for other in watching if other is not literals]

    def implies(self, lemma: Clause) -> bool:
        """Return whether the negation of ``lemma`` ends in a conflict by unit propagation."""
        base = len(self._trail)
        refuted = self.conflict
        for literal in lemma:
            held = self._true.get(literal)
            if held:
                refuted = True
                break
            if held is None:
                self._assume(-literal)
        refuted = refuted or not self._propagate(base)
        for literal in self._trail[base:]:
            del self._true[literal], self._true[-literal]
        del self._trail[base:]
        return refuted

    def _assume(self, literal: int) -> None:
        self._true[literal] = True
        self._true[-literal] = False
        self._trail.append(literal)

    def _propagate(self, position: int) -> bool:
        """Propagate the trail from ``position`` on; return whether no clause became false."""
        true, trail, watches = self._true, self._trail, self._watches
        while position < len(trail):
            false = -trail[position]
            position += 1
            watching = watches.get(false)
            if not watching:
                continue
            kept = []
            for index, clause in enumerate(watching):
                if clause[0] == false:
                    clause[0], clause[1] = clause[1], false
                first = clause[0]
                held = true.get(first)
                if held:
                    kept.append(clause)
                    continue
                for place in range(2, len(clause)):
                    other = clause[place]
                    if true.get(other, True):
                        clause[1], clause[place] = other, false
                        watches.setdefault(other, []).append(clause)
                        break
                else:
                    kept.append(clause)
                    if held is False:
                        kept.extend(watching[index + 1 :])
                        watches[false] = kept
                        return False
                    true[first] = True
                    true[-first] = False
                    trail.append(first)
            watches[false] = kept
        return True
