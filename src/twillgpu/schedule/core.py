"""What all rules of the clausal model share: the question, the variables, and derived literals."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal as Choice

from twillgpu.costs.record import PricedEdge, Problem
from twillgpu.schedule.literals import Clauses, Literal, Order, Shifted, negate
from twillgpu.schedule.symmetry import families
from twillgpu.schedule.windows import Windows


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked of the solver: is there a schedule of ``problem`` (in slots) at this interval?

    Attributes:
        problem: scaled problem.
        interval: initiation interval in slots.
        stages: stages allowed.
        rounding: how the problem was scaled; ``exact`` where a slot is a cycle.
        pure: no op in a group that is not its own kind: only variable-latency ops in their group, and no op in a
            group wider than it needs. A solution is best in the first objective, so nothing is lost where it exists.
        placement: demand places in the memories that the sum alone does not settle.
        spare: leave a part of SMEM free, so that places are likely to exist for what is found.
        skew: slots between one sub-tile and the next, where they are to follow each other at equal distances (see
            ``symmetry``); 0: no such demand. It only ever serves to find schedules.
        small_registers: register values of at most so many registers per thread are counted once per group that
            holds them instead of slot by slot (``up``), or not at all (``down``).
        groups: the group of every op where the partition is given, otherwise ``None``.
        known: (op, start, group) of a solution known beforehand, from which better ones are looked for; or empty.
        without: rules left out, to find which of them force a refutation.
    """

    problem: Problem
    interval: int
    stages: int
    rounding: Choice["up", "down", "exact"]
    pure: bool = False
    placement: bool = False
    spare: bool = False
    skew: int = 0
    small_registers: int = 0
    groups: tuple[tuple[str, int], ...] | None = None
    known: tuple[tuple[str, int, int], ...] = ()
    without: frozenset[str] = field(default=frozenset())


class Core:
    """Variables and derived literals of one question.

    Attributes:
        starts: order literals of every op's start, in slots.
        base: slot of the first period at which the claimed stages begin.
        groups: ``groups[op][g]`` is the literal "op is in group g".
    """

    def __init__(self, question: Question, windows: Windows) -> None:
        self.question = question
        self.problem: Problem = question.problem
        self.interval = question.interval
        self.clauses = Clauses()
        self.ops = {op.name: op for op in self.problem.ops}
        self.anchor = windows.anchor
        self._leader: dict[str, tuple[str, int]] = {}
        self.starts = self._starts(windows)
        self.base = Order(self.clauses, "base", 0, self.interval - 1)
        self._given = dict(question.groups or ())
        self.group_count = max(1, min(self.problem.groups.max, len(self.ops)))
        self.designated = (
            self.group_count > 1
            and self.problem.rules.variable_latency != "free"
            and any(op.variable_latency for op in self.problem.ops)
        )
        self.groups = {name: self._group_literals(name) for name in self.ops}
        self.outgoing: dict[str, list[PricedEdge]] = {name: [] for name in self.ops}
        self.incoming: dict[str, list[PricedEdge]] = {name: [] for name in self.ops}
        for edge in self.problem.edges:
            self.outgoing[edge.tail].append(edge)
            self.incoming[edge.head].append(edge)
        self._same: dict[tuple[str, str], Literal] = {}
        self._slot: dict[tuple[str, int], Literal] = {}
        self._during: dict[tuple[str, int, int], list[Literal]] = {}
        self._received: dict[tuple[str, int], Literal] = {}
        self._wide: dict[tuple[int, int], Literal] = {}

    def _starts(self, windows: Windows) -> dict[str, Order]:
        """Return the start of every op; those of later sub-tiles are the first one's, shifted, if asked for."""
        skew = self.question.skew
        for names in families(self.problem) if skew else ():
            self._leader |= {name: (names[0], number * skew) for number, name in enumerate(names)}
        spans = dict(windows.of)
        for name, (leader, shift) in self._leader.items():
            first, last = windows.of[name]
            spans[leader] = (max(spans[leader][0], first - shift), min(spans[leader][1], last - shift))
        orders: dict[str, Order] = {}
        for name in self.ops:
            if name not in self._leader or self._leader[name][0] == name:
                first, last = spans[name]
                orders[name] = Order(self.clauses, name, first, max(first, last))
                if last < first:
                    self.clauses.add()
        for name, (leader, shift) in self._leader.items():
            if name != leader:
                orders[name] = Shifted(orders[leader], shift)
        return {name: orders[name] for name in self.ops}

    def _group_literals(self, name: str) -> list[Literal]:
        if self.group_count == 1:
            return [True]
        allowed = self._allowed_groups(name)
        if len(allowed) == 1:
            return [group in allowed for group in range(self.group_count)]
        literals: list[Literal] = [
            self.clauses.fresh(f"{name}@{group}") if group in allowed else False for group in range(self.group_count)
        ]
        self.clauses.exactly_one(literals[group] for group in allowed)
        return literals

    def _allowed_groups(self, name: str) -> range:
        """Return the groups that an op may be in: group 0 is for variable-latency ops where it is set apart."""
        rules = self.problem.rules.variable_latency
        if self._given:
            return range(self._given[name], self._given[name] + 1)
        if not self.designated or "variable_latency" in self.question.without:
            return range(self.group_count)
        if self.ops[name].variable_latency:
            return range(1)
        return range(1 if self.question.pure or rules == "iff" else 0, self.group_count)

    def consumers(self, name: str) -> list[PricedEdge]:
        """Return the data edges that leave op ``name``."""
        return [edge for edge in self.outgoing[name] if edge.kind == "data"]

    def same(self, first: str, second: str) -> Literal:
        """Return the literal "both ops are in one group"."""
        if first == second or self.group_count == 1:
            return True
        if self._given:
            return self._given[first] == self._given[second]
        key = (first, second) if first < second else (second, first)
        if key not in self._same:
            self._same[key] = self._same_literal(*key)
        return self._same[key]

    def _same_literal(self, first: str, second: str) -> Literal:
        if self.question.pure and self.ops[first].warps != self.ops[second].warps:
            self._separate(first, second)
            return False
        same = self.clauses.fresh(f"same {first} {second}")
        for mine, other in zip(self.groups[first], self.groups[second], strict=True):
            self.clauses.imply([same, mine], other)
            self.clauses.imply([same, other], mine)
            self.clauses.imply([mine, other], same)
        return same

    def _separate(self, first: str, second: str) -> None:
        for mine, other in zip(self.groups[first], self.groups[second], strict=True):
            self.clauses.add(negate(mine), negate(other))

    def slot(self, name: str, slot: int) -> Literal:
        """Return the literal "op starts in ``slot`` (modulo the interval)"."""
        leader, shift = self._leader.get(name, (name, 0))
        key = (leader, (slot - shift) % self.interval)
        if key not in self._slot:
            self._slot[key] = self._slot_literal(*key)
        return self._slot[key]

    def _slot_literal(self, name: str, slot: int) -> Literal:
        start = self.starts[name]
        first = start.first + (slot - start.first) % self.interval
        times = [start.at(t) for t in range(first, start.last + 1, self.interval)]
        if len(times) <= 1:
            return times[0] if times else False
        literal = self.clauses.fresh(f"{name}%{slot}")
        for time in times:
            self.clauses.imply([time], literal)
        self.clauses.add(negate(literal), *times)
        return literal

    def during(self, name: str, offset: int, length: int) -> list[Literal]:
        """Return, per slot, the literal "the run [start + offset, start + offset + length) covers the slot".

        The run must be shorter than the interval.
        """
        key = (name, offset, length)
        if key not in self._during:
            self._during[key] = self._during_literals(name, offset, length)
        return self._during[key]

    def _during_literals(self, name: str, offset: int, length: int) -> list[Literal]:
        if length == 1:
            return [self.slot(name, slot - offset) for slot in range(self.interval)]
        covers = [self.clauses.fresh(f"{name}~{slot}") for slot in range(self.interval)]
        for slot in range(self.interval):
            for step in range(length):
                self.clauses.imply([self.slot(name, slot)], covers[(slot + offset + step) % self.interval])
        for slot, cover in enumerate(covers):
            starts = [self.slot(name, slot - offset - step) for step in range(length)]
            self.clauses.add(negate(cover), *starts)
        return covers

    def received(self, name: str, group: int) -> Literal:
        """Return a literal that holds if ``group`` is not the op's own and holds a head of one of its edges."""
        if self.group_count == 1:
            return False
        key = (name, group)
        if key not in self._received:
            literal = self.clauses.fresh(f"{name}->{group}")
            for head in sorted({edge.head for edge in self.outgoing[name] if edge.head != name}):
                self.clauses.add(negate(self.groups[head][group]), self.groups[name][group], literal)
            self._received[key] = literal
        return self._received[key]

    def at_least_as_wide(self, group: int, width: int) -> Literal:
        """Return a literal that holds if the group is ``width`` warps wide or wider (widths ascending)."""
        key = (group, width)
        if key not in self._wide:
            narrower = max((other for other in self.problem.groups.warps if other < width), default=0)
            needing = [self.groups[op.name][group] for op in self.problem.ops if op.warps > narrower]
            self._wide[key] = self.any_of(f"group {group} >= {width}", needing)
        return self._wide[key]

    def any_of(self, name: str, literals: list[Literal]) -> Literal:
        """Return a literal implied by each of ``literals``."""
        kept = [literal for literal in literals if literal is not False]
        if any(literal is True for literal in kept):
            return True
        if len(kept) <= 1:
            return kept[0] if kept else False
        some = self.clauses.fresh(name)
        for literal in kept:
            self.clauses.imply([literal], some)
        return some

    def width_terms(self) -> list[tuple[int, Literal]]:
        """Return weighted literals that sum to the warps of all groups."""
        terms = []
        for group in range(self.group_count):
            previous = 0
            for width in self.problem.groups.warps:
                terms.append((width - previous, self.at_least_as_wide(group, width)))
                previous = width
        return terms
