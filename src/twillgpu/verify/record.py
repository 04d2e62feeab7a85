"""What the verifier says: a list of violations, or a schedule that passed."""

from __future__ import annotations

from dataclasses import InitVar, dataclass

from twillgpu.costs.record import Problem
from twillgpu.schedule.record import Schedule

PASSED = object()
"""The seal that ``twillgpu.verify.check`` puts on a schedule that passed every rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One broken rule: its name, the ops (or buffers, groups) concerned, and both sides of the condition."""

    rule: str
    subjects: tuple[str, ...]
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """A schedule that passed every rule. Made only by ``twillgpu.verify.check``, which holds the seal.

    Raises ``TypeError`` where anything else makes one: a mistake of the program, not of its user.
    """

    problem: Problem
    schedule: Schedule
    seal: InitVar[object]

    def __post_init__(self, seal: object) -> None:
        if seal is not PASSED:
            raise TypeError("a Verified schedule is made by twillgpu.verify.check only")
