"""Building blocks of SMT-LIB text about a problem: symbols, sums, and what is live at a moment."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from twillgpu.costs.record import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """So many slots after the start of an op."""

    op: str
    cycles: int = 0


class Text:
    """Declarations and assertions in the order in which they are made.

    Attributes:
        problem, interval, stages: what is asked about, in slots.
        group_count: groups that there may be.
    """

    def __init__(self, problem: Problem, interval: int, stages: int) -> None:
        self.problem = problem
        self.interval = interval
        self.stages = stages
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

    def weighted(self, weight: int, formula: str) -> str:
        """Return the weight if the formula holds, otherwise 0."""
        if formula in ("true", "false"):
            return str(weight) if formula == "true" else "0"
        return f"(ite {formula} {weight} 0)"

    def any_of(self, formulas: Iterable[str]) -> str:
        """Return the disjunction."""
        kept = list(dict.fromkeys(formulas))
        kept = [formula for formula in kept if formula != "false"]
        if "true" in kept:
            return "true"
        if len(kept) <= 1:
            return kept[0] if kept else "false"
        return f"(or {' '.join(kept)})"

    def all_of(self, formulas: Iterable[str]) -> str:
        """Return the conjunction."""
        kept = [formula for formula in dict.fromkeys(formulas) if formula != "true"]
        if "false" in kept:
            return "false"
        if len(kept) <= 1:
            return kept[0] if kept else "true"
        return f"(and {' '.join(kept)})"

    def not_later(self, first: Moment, second: Moment, shift: int = 0) -> str:
        """Return the formula "``first``, ``shift`` intervals later, is not after ``second``"."""
        limit = second.cycles - first.cycles - shift * self.interval
        if first.op == second.op:
            return "true" if limit >= 0 else "false"
        return f"(<= (- {self.start(first.op)} {self.start(second.op)}) {self.number(limit)})"

    def since(self, moment: Moment, start: Moment, first: int, last: int) -> str:
        """Return the formula "``moment`` is ``first`` to ``last`` slots after ``start``, modulo the interval"."""
        reach = self.stages + 1 + abs(moment.cycles - start.cycles) // self.interval
        return self.any_of(
            self.all_of(
                (
                    self.not_later(replace(start, cycles=start.cycles + first), moment, shift),
                    self.not_later(replace(moment, cycles=moment.cycles - last), start, -shift),
                )
            )
            for shift in range(-reach, reach + 1)
        )
