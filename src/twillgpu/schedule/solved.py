"""What a solver is given beside a clausal model, and what it says of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as Choice

from twillgpu.schedule.literals import Holds

Outcome = Choice["optimal", "feasible", "infeasible", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How hard to try.

    Attributes:
        work: deterministic work units of one try.
        seconds: wall-clock backstop of all tries.
        seed: of the first try.
        tries: how often to try, each time with the next seed, while the answer is ``unknown``: solving times spread
            so widely that several short tries beat a long one.
    """

    work: float
    seconds: float
    seed: int = 0
    tries: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Solved:
    """What a solver said of a clausal model.

    Attributes:
        outcome: ``optimal`` (of the objective), ``feasible``, ``infeasible`` or ``unknown``.
        holds: whether a literal holds in the solution; ``None`` without one.
        work, seconds: effort spent.
    """

    outcome: Outcome
    holds: Holds | None
    work: float
    seconds: float
