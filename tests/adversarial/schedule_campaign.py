"""Breaks sound schedules of random problems; a slow execution of the loop says which are still sound."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded

from problems import problems
from slow_oracle import faults
from twillgpu.costs.record import Problem
from twillgpu.schedule.record import Schedule
from twillgpu.verify import Verified, check

sys.path.append(str(Path(__file__).parents[1] / "verify"))

import test_mutations as spoiling  # another folder of tests

Change: TypeAlias = Callable[[Problem, Schedule, random.Random], Schedule]
EACH = 2
"""Mutants of each class of a sound schedule."""


@dataclass(slots=True)
class Tally:
    """Counts by class, truth (``unsafe``, ``harmless``) and verdict (``refused``, ``accepted``)."""

    verdicts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)
    good: int = 0
    accepted: list[str] = field(default_factory=list)
    false_alarms: list[str] = field(default_factory=list)

    @property
    def mutants(self) -> int:
        """Number of mutants."""
        return sum(self.verdicts.values())

    def add(self, other: Tally) -> None:
        """Add the counts of another tally."""
        self.verdicts.update(other.verdicts)
        self.rules.update(other.rules)
        self.good += other.good
        self.accepted += other.accepted
        self.false_alarms += other.false_alarms


def _far(_case: Problem, schedule: Schedule, draw: random.Random) -> Schedule:
    ops = list(schedule.ops)
    index = draw.randrange(len(ops))
    ops[index] = replace(ops[index], start_cycle=draw.randrange(3 * schedule.ii_cycles + 8))
    return replace(schedule, ops=tuple(ops))


def _exchange(_case: Problem, schedule: Schedule, draw: random.Random) -> Schedule:
    ops = list(schedule.ops)
    one, two = draw.randrange(len(ops)), draw.randrange(len(ops))
    first, second = ops[one].start_cycle, ops[two].start_cycle
    ops[one], ops[two] = replace(ops[one], start_cycle=second), replace(ops[two], start_cycle=first)
    return replace(schedule, ops=tuple(ops))


def _one_place(_case: Problem, schedule: Schedule, draw: random.Random) -> Schedule:
    if not schedule.buffers:
        return schedule
    place = draw.choice(schedule.buffers).offset_bytes
    return replace(schedule, buffers=tuple(replace(one, offset_bytes=place) for one in schedule.buffers))


CLASSES: dict[str, Change] = {
    "start one cycle or one interval off": spoiling._move,
    "start anywhere": _far,
    "starts of two ops exchanged": _exchange,
    "op in another group": spoiling._regroup,
    "groups exchanged": spoiling._swap_groups,
    "interval one cycle off": spoiling._change_interval,
    "width of a group": spoiling._change_width,
    "register quota": spoiling._change_quota,
    "depth, place or floor of a buffer": spoiling._change_buffer,
    "all buffers in one place": _one_place,
}


def attack(number: int, seed: int) -> Tally:
    """Return what the verifier says about at least ``number`` changed schedules."""
    tally, turn = Tally(), 0
    while tally.mutants < number:
        for case in _drawn(seed + 1000 * turn):
            if tally.mutants < number:
                _compare(case, random.Random(seed), tally)  # noqa: S311  # not for cryptography
        turn += 1
    return tally


def _drawn(seed: int) -> list[Problem]:
    found: list[Problem] = []

    @seeded(seed)
    @settings(
        max_examples=40,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(problems(max_ops=4))
    def draw(case: Problem) -> None:
        found.append(case)

    draw()
    return found


def _compare(case: Problem, draw: random.Random, tally: Tally) -> None:
    for schedule in spoiling.sound_schedules(case, draw):
        tally.good += 1
        if not isinstance(check(case, schedule), Verified):
            tally.false_alarms.append(f"{case} {schedule}")
        for kind, change in CLASSES.items():
            for _ in range(EACH):
                changed = change(case, schedule, draw)
                if changed != schedule:
                    _judge(kind, case, changed, tally)


def _judge(kind: str, case: Problem, changed: Schedule, tally: Tally) -> None:
    wrong = faults(case, changed)
    verdict = check(case, changed)
    accepted = isinstance(verdict, Verified)
    truth = "unsafe" if wrong else "harmless"
    tally.verdicts[kind, truth, "accepted" if accepted else "refused"] += 1
    tally.rules.update(wrong)
    if wrong and accepted:
        tally.accepted.append(f"{kind}: {sorted(wrong)}: {case} {changed}")
