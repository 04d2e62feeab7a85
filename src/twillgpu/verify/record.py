"""What the verifier says: a list of violations, or a schedule that passed."""

from __future__ import annotations

from dataclasses import dataclass

from twillgpu.costs.record import Problem
from twillgpu.schedule.record import Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One broken rule: its name, the ops (or buffers, groups) concerned, and both sides of the condition."""

    rule: str
    subjects: tuple[str, ...]
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """A schedule that passed every rule. Made only by ``twillgpu.verify.check``."""

    problem: Problem
    schedule: Schedule
