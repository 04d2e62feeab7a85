"""The straight-line program Q of the paper: ceil(L / I) copies of the loop body, each I cycles after the last.

Q assumes that the steady state runs exactly once. The Boolean ``op[v, i, t]`` says that op v of copy i starts at
cycle t. It is written through ``begun[v, i, t]`` (op v of copy i has started by cycle t), which never falls again.
"""

from __future__ import annotations

from collections.abc import Callable

from twillgpu.costs.record import PricedEdge, Problem
from twillgpu.schedule.paper.record import JointQuestion
from twillgpu.schedule.paper.smt import FALSE, TRUE, Script, conjunction, disjunction, negation
from twillgpu.schedule.windows import windows


class Program:
    """Variables of one question, and what the rules share.

    Where the question is literal, every copy has variables of its own, which the rule ``consistency`` ties together,
    and rules look at every cycle of Q. Otherwise copies share the variables of copy 0, moved by multiples of the
    interval, and rules look at one period of the steady state, with as many copies as any lifetime needs.

    Attributes:
        copies: number of copies in Q.
        end: T, the cycles of Q.
        ranges: first and last start of every op in copy 0.
        possible: whether every op has a start at all.
    """

    def __init__(self, question: JointQuestion) -> None:
        self.question = question
        self.problem: Problem = question.problem
        self.interval, self.length = question.interval, question.length
        self.literal = question.literal
        self.copies = -(-self.length // self.interval)
        self.end = (self.copies - 1) * self.interval + self.length
        self.script = Script(self._title())
        self.ops = {op.name: op for op in self.problem.ops}
        self.ranges = self._ranges()
        self.possible = all(first <= last for first, last in self.ranges.values())
        self.groups = self._group_count()
        self.designated = (
            self.groups > 1
            and self.problem.rules.variable_latency != "free"
            and any(op.variable_latency for op in self.problem.ops)
        )
        self.outgoing: dict[str, list[PricedEdge]] = {name: [] for name in self.ops}
        self.incoming: dict[str, list[PricedEdge]] = {name: [] for name in self.ops}
        for edge in self.problem.edges:
            self.outgoing[edge.tail].append(edge)
            self.incoming[edge.head].append(edge)
        self.script.begin("variables")
        self._begun = {
            (name, copy, cycle): self.script.boolean(f"begun {name} {copy} {cycle}")
            for name, (first, last) in self.ranges.items()
            for copy in (range(self.copies) if self.literal else range(1))
            for cycle in range(first + copy * self.interval, last + copy * self.interval)
        }
        self._inside = {name: self._inside_terms(name) for name in self.ops}
        self._same: dict[tuple[str, str], str] = {}
        self._terms: dict[str, str] = {}
        self._lists: dict[str, tuple[str, ...]] = {}

    def _title(self) -> list[str]:
        kind = "as published" if self.literal else "with the rules of docs/formulation.md"
        return [
            f"SWP-AND-WS of {self.problem.name!r} on {self.problem.machine!r}, {kind}",
            f"I = {self.interval}, L = {self.length}: {self.copies} copies, T = {self.end}",
        ]

    def _ranges(self) -> dict[str, tuple[int, int]]:
        """Return earliest and latest starts by longest paths, so that every op ends by L; empty ranges if none."""
        span = windows(self.problem, self.interval, self.copies)
        if span is None:
            return dict.fromkeys(self.ops, (0, -1))
        later = self.interval - 1 + self.copies * self.interval - self.length
        return {name: (first, last - later) for name, (first, last) in span.of.items()}

    def _group_count(self) -> int:
        return max(1, min(self.problem.groups.max, len(self.ops)))

    def _inside_terms(self, name: str) -> list[str]:
        if self.groups == 1:
            return [TRUE]
        return [self.script.boolean(f"opw {name} {group}") for group in range(self.groups)]

    def tied(self) -> range:
        """Return the copies about which rules have to speak: all in a literal program, otherwise copy 0."""
        return range(self.copies) if self.literal else range(1)

    def has(self, copy: int) -> bool:
        """Return whether rules may refer to ``copy``: a literal program ends with its last copy."""
        return not self.literal or 0 <= copy < self.copies

    def begun(self, name: str, copy: int, cycle: int) -> str:
        """Return "op ``name`` of ``copy`` has started by ``cycle``"."""
        first, last = self.ranges[name]
        own = cycle - copy * self.interval
        if own < first or own >= last:
            return FALSE if own < first else TRUE
        return self._begun[(name, copy, cycle) if self.literal else (name, 0, own)]

    def op(self, name: str, copy: int, cycle: int) -> str:
        """Return op[v, i, t]: "op ``name`` of ``copy`` starts at ``cycle``"."""
        return self.during(name, copy, cycle, 1)

    def during(self, name: str, copy: int, cycle: int, length: int) -> str:
        """Return "op ``name`` of ``copy`` has started less than ``length`` cycles ago, or just now"."""
        now, before = self.begun(name, copy, cycle), self.begun(name, copy, cycle - length)
        shift = 0 if self.literal else copy
        text = f"{name} {copy - shift} {cycle - shift * self.interval}"
        label = f"op {text}" if length == 1 else f"during {length} {text}"
        return self._named(label, conjunction((now, negation(before))))

    def in_slot(self, name: str, slot: int, length: int) -> str:
        """Return "some copy of op ``name`` has started less than ``length`` cycles before ``slot``, modulo I"."""
        first, last = self.ranges[name]
        times = range(first + (slot - first) % self.interval, last + length, self.interval)
        term = disjunction(self.during(name, 0, time, length) for time in times)
        return self._named(f"slot {length} {name} {slot}", term)

    def _named(self, label: str, term: str) -> str:
        if label not in self._terms:
            self._terms[label] = self.script.named(label, term)
        return self._terms[label]

    def once(self, label: str, make: Callable[[], tuple[str, ...]]) -> tuple[str, ...]:
        """Return what ``make`` makes, made where it is first asked for."""
        if label not in self._lists:
            self._lists[label] = make()
        return self._lists[label]

    def moments(self, last: int) -> list[list[tuple[int, int]]]:
        """Return, for each sum that a rule has to check, the (copy, cycle) pairs that it ranges over.

        A literal program has one sum for each cycle of Q. Otherwise there is one for each slot of the period,
        with as many cycles of copy 0 as lie in the slot before ``last``.
        """
        if self.literal:
            return [[(copy, cycle) for copy in range(self.copies)] for cycle in range(self.end)]
        return [[(0, cycle) for cycle in range(slot, last, self.interval)] for slot in range(self.interval)]

    def inside(self, name: str, group: int) -> str:
        """Return opw[v, w]: "op ``name`` is on ``group``"."""
        return self._inside[name][group]

    def same(self, first: str, second: str) -> str:
        """Return "both ops are in one group"."""
        if first == second or self.groups == 1:
            return TRUE
        key = (first, second) if first < second else (second, first)
        if key not in self._same:
            self._same[key] = self._same_term(*key)
        return self._same[key]

    def _same_term(self, first: str, second: str) -> str:
        same = self.script.boolean(f"same {first} {second}")
        for group in range(self.groups):
            mine, other = self.inside(first, group), self.inside(second, group)
            self.script.implies((same, mine), other)
            self.script.implies((same, other), mine)
            self.script.implies((mine, other), same)
        return same

    def consumers(self, name: str) -> list[PricedEdge]:
        """Return the data edges that leave op ``name``."""
        return [edge for edge in self.outgoing[name] if edge.kind == "data"]

    def wanted(self) -> list[str]:
        """Return the symbols whose values make a schedule: starts of copy 0, and groups."""
        begun = [term for (_, copy, _), term in self._begun.items() if copy == 0]
        return begun + [term for terms in self._inside.values() for term in terms if term != TRUE]

    def starts(self, holds: frozenset[str]) -> dict[str, int]:
        """Return M(v) from the symbols that hold in a model."""
        return {
            name: last - sum(1 for cycle in range(first, last) if self._begun[name, 0, cycle] in holds)
            for name, (first, last) in self.ranges.items()
        }

    def assigned(self, holds: frozenset[str]) -> dict[str, int]:
        """Return A(v) from the symbols that hold in a model, groups numbered without gaps."""
        raw = {
            name: next(group for group, term in enumerate(terms) if term == TRUE or term in holds)
            for name, terms in self._inside.items()
        }
        number = {group: index for index, group in enumerate(sorted(set(raw.values())))}
        return {name: number[group] for name, group in raw.items()}
