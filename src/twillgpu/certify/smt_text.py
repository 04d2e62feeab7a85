"""Building blocks of SMT-LIB text about a problem: symbols, sums, and what is live at a moment."""

from __future__ import annotations

from collections.abc import Iterable

from twillgpu.costs.record import Problem


class Text:
    """Declarations and assertions in the order in which they are made.

    Attributes:
        problem, interval: what is asked about, in slots.
        group_count: groups that there may be.
    """

    def __init__(self, problem: Problem, interval: int) -> None:
        self.problem = problem
        self.interval = interval
        self.group_count = max(1, min(problem.groups.max, len(problem.ops)))
        self._numbers = {op.name: number for number, op in enumerate(problem.ops)}
        self._head: list[str] = []
        self._lines: list[str] = []
        self._defined = 0
        declared = [f"start{n}" for n in self._numbers.values()] + [f"group{n}" for n in self._numbers.values()]
        for group in range(self.group_count):
            declared += [f"width{group}", f"quota{group}"]
        self._declared = [f"(declare-const {name} Int)" for name in declared]
        self.comment("start and group of op number n:")
        for name, number in self._numbers.items():
            self.comment(f"  {number} {name}")

    def comment(self, text: str) -> None:
        """Add a line at the top."""
        self._head.append("; " + text.replace("\n", " "))

    def rule(self, name: str) -> None:
        """Say which rule follows."""
        self._lines.append(f"; {name}")

    def check(self, *formulas: str) -> None:
        """Assert formulas."""
        self._lines += [f"(assert {formula})" for formula in formulas if formula != "true"]

    def define(self, value: str) -> str:
        """Return a new symbol for the integer ``value``."""
        self._defined += 1
        name = f"value{self._defined}"
        self._lines.append(f"(define-fun {name} () Int {value})")
        return name

    def declare(self, name: str) -> str:
        """Return a new integer."""
        self._declared.append(f"(declare-const {name} Int)")
        return name

    def script(self) -> str:
        """Return the whole script."""
        lines = [*self._head, "(set-logic QF_LIA)", *self._declared, *self._lines, "(check-sat)"]
        return "\n".join(lines) + "\n"

    def start(self, name: str) -> str:
        """Return the start of an op, in slots."""
        return f"start{self._numbers[name]}"

    def group(self, name: str) -> str:
        """Return the group of an op."""
        return f"group{self._numbers[name]}"

    def width(self, group: int) -> str:
        """Return the warps of a group."""
        return f"width{group}"

    def quota(self, group: int) -> str:
        """Return the registers per thread of a group."""
        return f"quota{group}"

    def is_in(self, name: str, group: int) -> str:
        """Return the formula "the op is in the group"."""
        return f"(= {self.group(name)} {group})"

    def same(self, first: str, second: str) -> str:
        """Return the formula "both ops are in one group"."""
        return "true" if first == second else f"(= {self.group(first)} {self.group(second)})"

    def number(self, value: int) -> str:
        """Return an integer; SMT-LIB has no negative numerals."""
        return str(value) if value >= 0 else f"(- {-value})"

    def total(self, terms: Iterable[str]) -> str:
        """Return the sum."""
        kept = [term for term in terms if term != "0"]
        if len(kept) <= 1:
            return kept[0] if kept else "0"
        return f"(+ {' '.join(kept)})"

    def any_of(self, formulas: Iterable[str]) -> str:
        """Return the disjunction."""
        kept = list(dict.fromkeys(formulas))
        if "true" in kept:
            return "true"
        if len(kept) <= 1:
            return kept[0] if kept else "false"
        return f"(or {' '.join(kept)})"

    def all_of(self, formulas: Iterable[str]) -> str:
        """Return the conjunction."""
        kept = [formula for formula in dict.fromkeys(formulas) if formula != "true"]
        if len(kept) <= 1:
            return kept[0] if kept else "true"
        return f"(and {' '.join(kept)})"

    def extreme(self, relation: str, candidates: Iterable[tuple[str, str]], otherwise: str) -> str:
        """Return a symbol for the least (``<``) or largest (``>``) value whose condition holds, or ``otherwise``."""
        best = otherwise
        for condition, value in candidates:
            better = f"({relation} {value} {best})"
            best = self.define(f"(ite {self.all_of((condition, better))} {value} {best})")
        return best

    def plus(self, name: str, cycles: int) -> str:
        """Return an op's start and some slots later."""
        return f"(+ {self.start(name)} {self.number(cycles)})" if cycles else self.start(name)

    def live(self, begin: str, end: str, moment: str) -> str:
        """Return how many instances of a lifetime are live at a moment: those begun less those ended."""
        begun = f"(div (- {moment} {begin}) {self.interval})"
        return f"(- {begun} (div (- {moment} {end}) {self.interval}))"
