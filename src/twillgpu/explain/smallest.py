"""Smallest sets: of families that refute something together, and of families to relax before it fails.

Families are assumptions: a family that is not assumed is lifted. A smallest set of assumptions that still refutes
is a minimal unsatisfiable subset; a smallest set of families without which the rest no longer refutes is a
minimal correction set. Both come out of the hitting-set tree (R. Reiter, A theory of diagnosis from first
principles, Artificial Intelligence 32, 1987), walked by breadth; a set is minimised by deletion, half of what is
left at a time (U. Junker, QuickXplain, AAAI 2004).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from twillgpu.explain.record import Family

Oracle = Callable[[frozenset[Family]], bool | None]
"""Whether the refutation stands with these families lifted; ``None``: unknown."""

DEPTH = 2
"""So many families are relaxed together at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sets:
    """Smallest sets found.

    Attributes:
        forcing: each refutes by itself.
        ways: each has to be relaxed as a whole before the refutation fails.
        complete: whether these are all, with ``ways`` of at most ``DEPTH`` families.
        minimal: whether no answer was unknown while sets were minimised.
    """

    forcing: tuple[tuple[Family, ...], ...]
    ways: tuple[tuple[Family, ...], ...]
    complete: bool
    minimal: bool


def smallest_sets(families: Sequence[Family], stands: Oracle) -> Sets | None:
    """Return the smallest sets of ``families``, ``None`` where the refutation does not stand with all of them."""
    if stands(frozenset()) is not True:
        return None
    return _Tree(families, stands).walk()


class _Tree:
    """The hitting-set tree: a node is a set of lifted families."""

    def __init__(self, families: Sequence[Family], stands: Oracle) -> None:
        self.families = tuple(families)
        self.stands = stands
        self.forcing: list[frozenset[Family]] = []
        self.ways: list[frozenset[Family]] = []
        self.complete = True
        self.minimal = True

    def walk(self) -> Sets:
        """Lift more and more families until the refutation fails, the smallest numbers of them first."""
        level: list[frozenset[Family]] = [frozenset()]
        for depth in range(DEPTH + 1):
            below: list[frozenset[Family]] = []
            for lifted in level:
                forced_by = self._visit(lifted)
                if forced_by and depth == DEPTH:
                    self.complete = False
                below += [lifted | {family} for family in self._ordered(forced_by)]
            level = list(dict.fromkeys(below))
        return Sets(
            forcing=tuple(self._ordered(one) for one in self.forcing),
            ways=tuple(self._ordered(one) for one in self.ways),
            complete=self.complete,
            minimal=self.minimal,
        )

    def _visit(self, lifted: frozenset[Family]) -> frozenset[Family]:
        """Return a smallest set that refutes without ``lifted``; empty where there is nothing to go on with."""
        if any(way <= lifted for way in self.ways):
            return frozenset()
        for known in self.forcing:
            if not known & lifted:
                return known
        answer = self.stands(lifted)
        if answer is True:
            found = self._minimised(lifted)
            self.forcing.append(found)
            return found
        if answer is False:
            self.ways.append(lifted)
        else:
            self.complete = False
        return frozenset()

    def _minimised(self, lifted: frozenset[Family]) -> frozenset[Family]:
        candidates = tuple(family for family in self.families if family not in lifted)
        return frozenset(self._needed((), candidates, grown=True))

    def _needed(self, kept: tuple[Family, ...], candidates: tuple[Family, ...], *, grown: bool) -> tuple[Family, ...]:
        """Return a smallest part of ``candidates`` that refutes together with ``kept``."""
        if grown and self._refutes(kept):
            return ()
        if len(candidates) == 1:
            return candidates
        half = len(candidates) // 2
        first, second = candidates[:half], candidates[half:]
        late = self._needed((*kept, *first), second, grown=bool(first))
        early = self._needed((*kept, *late), first, grown=bool(late))
        return (*early, *late)

    def _refutes(self, kept: tuple[Family, ...]) -> bool:
        answer = self.stands(frozenset(self.families) - frozenset(kept))
        self.minimal = self.minimal and answer is not None
        return answer is True

    def _ordered(self, some: frozenset[Family]) -> tuple[Family, ...]:
        return tuple(family for family in self.families if family in some)
