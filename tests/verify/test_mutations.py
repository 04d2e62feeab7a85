"""Sound schedules of random problems, spoiled at random: the verifier says what a slow execution of the loop says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exhaustive import brute_force, schedules
from problems import problems
from slow_oracle import faults
from twillgpu.costs.record import Problem
from twillgpu.schedule.record import Buffer, Schedule
from twillgpu.verify import Verified, check

PROBLEMS = settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
SPOILED = 12
"""Spoiled schedules per sound one."""
EXECUTABLE = (
    "dependence",
    "capacity",
    "memory_capacity",
    "warp_uniqueness",
    "variable_latency",
    "register_limit",
    "cross_warp_spill",
    "concurrency",
    "legality",
)
"""The rules that an execution can see broken."""


@pytest.mark.slow
def test_spoiled_schedules_are_judged_as_an_execution_judges_them() -> None:
    seen: Counter[str] = Counter()

    @PROBLEMS
    @given(problems(max_ops=4), st.integers(min_value=0, max_value=2**32))
    def compare(case: Problem, seed: int) -> None:
        rng = Random(seed)  # noqa: S311  # no secret: a reproducible choice
        for schedule in sound_schedules(case, rng):
            assert faults(case, schedule) == set()
            for _ in range(SPOILED):
                spoiled = spoil(case, schedule, rng)
                verdict = check(case, spoiled)
                rules = set() if isinstance(verdict, Verified) else {violation.rule for violation in verdict}
                assert rules == faults(case, spoiled), (case, spoiled)
                seen.update(rules or {"sound"})
                seen["unsound"] += bool(rules)

    compare()
    assert seen["unsound"] >= 500, seen
    assert seen["sound"] >= 100, seen
    assert all(seen[rule] >= 10 for rule in EXECUTABLE), seen


def sound_schedules(case: Problem, rng: Random) -> list[Schedule]:
    """Return a few schedules with different groups, at the least interval or a little above it."""
    least = brute_force(case, 2, longest=7)
    if least is None:
        return []
    seen: dict[tuple[int, ...], Schedule] = {}
    for schedule in islice(schedules(case, least[0] + rng.choice((0, 1)), 2), 300):
        seen.setdefault(tuple(op.group for op in schedule.ops), schedule)
    return [least[1], *sorted(seen.values(), key=lambda schedule: -len(schedule.groups))[:2]]


def spoil(case: Problem, schedule: Schedule, rng: Random) -> Schedule:
    """Return the schedule with one or two small changes."""
    for _ in range(rng.choice((1, 1, 2))):
        schedule = rng.choice(CHANGES)(case, schedule, rng)
    return schedule


def _move(_case: Problem, schedule: Schedule, rng: Random) -> Schedule:
    ops = list(schedule.ops)
    index = rng.randrange(len(ops))
    step = rng.choice((-1, 1, -schedule.ii_cycles, schedule.ii_cycles))
    ops[index] = replace(ops[index], start_cycle=max(0, ops[index].start_cycle + step))
    return replace(schedule, ops=tuple(ops))


def _regroup(_case: Problem, schedule: Schedule, rng: Random) -> Schedule:
    ops = list(schedule.ops)
    index = rng.randrange(len(ops))
    ops[index] = replace(ops[index], group=rng.randrange(len(schedule.groups)))
    return replace(schedule, ops=tuple(ops))


def _swap_groups(_case: Problem, schedule: Schedule, rng: Random) -> Schedule:
    last = len(schedule.groups) - 1
    other = rng.randrange(last + 1)
    exchange = {other: last, last: other}
    return replace(schedule, ops=tuple(replace(op, group=exchange.get(op.group, op.group)) for op in schedule.ops))


def _change_interval(_case: Problem, schedule: Schedule, rng: Random) -> Schedule:
    return replace(schedule, ii_cycles=max(1, schedule.ii_cycles + rng.choice((-1, 1))))


def _change_width(case: Problem, schedule: Schedule, rng: Random) -> Schedule:
    groups = list(schedule.groups)
    index = rng.randrange(len(groups))
    groups[index] = replace(groups[index], warps=rng.choice(case.groups.warps))
    return replace(schedule, groups=tuple(groups))


def _change_quota(case: Problem, schedule: Schedule, rng: Random) -> Schedule:
    groups = list(schedule.groups)
    index = rng.randrange(len(groups))
    step = case.registers.quota_step if case.registers else 8
    quota = groups[index].registers_per_thread + rng.choice((-step, step))
    groups[index] = replace(groups[index], registers_per_thread=max(0, quota))
    return replace(schedule, groups=tuple(groups))


def _change_buffer(case: Problem, schedule: Schedule, rng: Random) -> Schedule:
    buffers = list(schedule.buffers)
    if not buffers:
        return schedule
    index = rng.randrange(len(buffers))
    memory = next((memory for memory in case.memories if memory.name == buffers[index].space), None)
    buffers[index : index + 1] = _changed(buffers[index], memory.alignment_bytes if memory else 4, rng)
    return replace(schedule, buffers=tuple(buffers))


def _changed(buffer: Buffer, step: int, rng: Random) -> Iterator[Buffer]:
    what = rng.choice(("depth", "place", "place", "both", "both", "floor", "drop"))
    if what == "drop":
        return
    if what in ("depth", "both"):
        buffer = replace(buffer, depth=max(1, buffer.depth + rng.choice((-1, 1, 1))))
    if what in ("place", "both"):
        places = (-step, step, -1, -buffer.offset_bytes, 2 * step)
        buffer = replace(buffer, offset_bytes=max(0, buffer.offset_bytes + rng.choice(places)))
    if what == "floor":
        buffer = replace(buffer, depth_floor=buffer.depth_floor + 1)
    yield buffer


CHANGES: tuple[Callable[[Problem, Schedule, Random], Schedule], ...] = (
    _move,
    _move,
    _regroup,
    _swap_groups,
    _change_interval,
    _change_width,
    _change_quota,
    _change_buffer,
    _change_buffer,
)
