"""Who goes next: seeded chance, and the extremes that hardware may choose."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from twillgpu.emulate.flight import Flight


class Choice(NamedTuple):
    """What can happen next: a step of a group, or progress of an engine's op (it reads, or completes)."""

    group: int
    flight: Flight | None


class Scheduler(Protocol):
    """Chooses among everything that can happen; ``name`` says in reports how."""

    @property
    def name(self) -> str:
        """Return the name of the scheduler, seed included."""

    def choose(self, groups: Sequence[Choice], flights: Sequence[Choice]) -> Choice:
        """Return one of the choices; at least one of both lists is not empty."""


class Chance:
    """Everything by chance. Each run has its own bias: how eager engines are, and how fast each group is."""

    def __init__(self, seed: int) -> None:
        self.name = f"random, seed {seed}"
        self._random = random.Random(seed)  # noqa: S311  # reproducible, not secret
        self._eager = self._random.choice((0.1, 0.5, 0.9))
        self._speeds = [self._random.choice((1.0, 4.0, 16.0)) for _ in range(64)]

    def choose(self, groups: Sequence[Choice], flights: Sequence[Choice]) -> Choice:
        """Return a choice by chance."""
        if flights and (not groups or self._random.random() < self._eager):
            return self._random.choice(flights)
        return self._random.choices(groups, [self._speeds[choice.group % 64] for choice in groups])[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Extreme:
    """One group as far ahead as it can, and engines at once (``early``), or only when nothing else can go on.

    ``writes_first``: copies into memory are done at once, and ops that read memory as late as possible.
    """

    ahead: int
    early: bool
    writes_first: bool = False

    @property
    def name(self) -> str:
        """Return what it does."""
        engines = (
            "writes at once, reads late" if self.writes_first else "engines early" if self.early else "engines late"
        )
        return f"group {self.ahead} ahead, {engines}"

    def choose(self, groups: Sequence[Choice], flights: Sequence[Choice]) -> Choice:
        """Return the choice that this extreme makes."""
        if self.writes_first:
            writes = [choice for choice in flights if choice.flight is not None and not choice.flight.step.reads]
            if writes:
                return writes[0]
        elif self.early and flights:
            return flights[0]
        if groups:
            return min(groups, key=lambda choice: (choice.group - self.ahead) % 64)
        return flights[-1]


def schedulers(groups: int, seeds: Sequence[int]) -> list[Scheduler]:
    """Return the extremes for every group, and one scheduler by chance for every seed."""
    extremes = [
        Extreme(ahead=group, early=early, writes_first=first)
        for group in range(groups)
        for early, first in ((False, False), (True, False), (False, True))
    ]
    return [*extremes, *(Chance(seed) for seed in seeds)]
