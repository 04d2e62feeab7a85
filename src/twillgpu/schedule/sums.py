"""Sums of weighted literals in clauses: decision diagrams whose nodes say "what is left to add fits".

After Abio, Nieuwenhuis, Oliveras, Rodriguez-Carbonell and Mayer-Eichberger, "A New Look at BDDs for Pseudo-Boolean
Constraints" (JAIR 2012): a node stands for all limits between which no sum of the remaining literals lies, and since
sums only grow with their literals, one direction of each implication is enough. A chain of literals each of which
implies the next is one level with several branches. Nodes of equal remainders are shared between sums.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable
from dataclasses import dataclass

from twillgpu.schedule.literals import Literal

Level = tuple[tuple[int, int], ...]
"""(value, literal) in ascending order: the level adds the largest value whose literal holds, or nothing."""

INFINITE = 1 << 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """The literal "the levels from here add up to at most the limit", for every limit in ``low..high``."""

    literal: Literal
    low: int
    high: int


class Tail:
    """The last levels of some sums: one level and the tail below it, with the nodes known; without it, the end."""

    def __init__(self, level: Level = (), below: Tail | None = None) -> None:
        self.level = level
        self.below: Tail = below or self
        self.most: int = level[-1][0] + self.below.most if level else 0
        self._nodes = [
            Node(literal=False, low=-INFINITE, high=-1),
            Node(literal=True, low=self.most, high=INFINITE),
        ]

    def keep(self, node: Node) -> None:
        """Add a node for limits that have none."""
        insort(self._nodes, node, key=_low)

    def known(self, limit: int) -> bool:
        """Return whether there is a node for ``limit``."""
        return self.node(limit).high >= limit

    def node(self, limit: int) -> Node:
        """Return the node for ``limit``; where none is known, that for the next smaller limits."""
        return self._nodes[bisect_right(self._nodes, limit, key=_low) - 1]


def _low(node: Node) -> int:
    return node.low


class Sums:
    """Builds diagrams; gives literals that imply that a sum is at most some limit."""

    def __init__(self, fresh: Callable[[], int], add: Callable[[tuple[int, ...]], None]) -> None:
        self._fresh = fresh
        self._add = add
        self._end = Tail()
        self._tails: dict[tuple[Level, int], Tail] = {}

    def at_most(self, levels: list[Level], limit: int) -> Literal:
        """Return a literal that implies that the levels sum to at most ``limit``."""
        tail = self._end
        for level in reversed(levels):
            key = (level, id(tail))
            if key not in self._tails:
                self._tails[key] = Tail(level, tail)
            tail = self._tails[key]
        self._build(tail, limit)
        return tail.node(limit).literal

    def _build(self, top: Tail, limit: int) -> None:
        """Build the nodes that ``limit`` needs, from the last level up, without recursion (sums may be long)."""
        wanted: list[tuple[Tail, set[int]]] = []
        tail, limits = top, {limit}
        while tail is not self._end:
            limits = {missing for missing in limits if not tail.known(missing)}
            wanted.append((tail, limits))
            limits = {missing - value for missing in limits for value in (0, *(value for value, _ in tail.level))}
            tail = tail.below
        for tail, limits in reversed(wanted):
            for missing in sorted(limits):
                if not tail.known(missing):
                    tail.keep(self._made(tail, missing))

    def _made(self, tail: Tail, limit: int) -> Node:
        """Return the node of ``tail`` for ``limit``; those below it exist."""
        without = tail.below.node(limit)
        low, high = without.low, without.high
        branches: list[tuple[int, Literal]] = []
        last = without
        for value, literal in tail.level:
            node = tail.below.node(limit - value)
            low, high = max(low, node.low + value), min(high, node.high + value)
            if node is not last:
                branches.append((literal, node.literal))
            last = node
        return Node(literal=self._literal(without.literal, branches), low=low, high=high)

    def _literal(self, without: Literal, branches: list[tuple[int, Literal]]) -> Literal:
        """Return a literal that implies ``without``, and for each branch that its literal implies its node."""
        if not branches:
            return without
        if without is True and len(branches) == 1 and branches[0][1] is False:
            return -branches[0][0]
        literal = self._fresh()
        if without is not True:
            self._add((-literal, without))
        for branch, node in branches:
            self._add((-literal, -branch) if node is False else (-literal, -branch, node))
        return literal
