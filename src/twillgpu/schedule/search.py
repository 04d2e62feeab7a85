"""The search: the smallest interval that any schedule reaches, proved, then the best of its schedules.

Intervals are asked from the largest analytic bound upwards, in slots. At each one the problem rounded up is asked
for a schedule (which the polish turns into cycles), and the problem rounded down for a refutation (which then
holds in cycles). Feasibility is not monotone: the proved bound rises interval by interval and never by bisection;
only schedules are looked for in any order. Where a gap is left, slots are halved.
"""

from __future__ import annotations

import time
from importlib.metadata import version

from twillgpu.costs.record import Problem
from twillgpu.schedule.ask import ANY_TRIES, Progress
from twillgpu.schedule.measure import measured
from twillgpu.schedule.record import SearchOptions, SearchResult
from twillgpu.schedule.resolution import slot_cycles
from twillgpu.schedule.state import State

WIDE = 1.1
"""Interval over bound from which on refutations begin with slots twice as long: fewer intervals to ask about."""

HEURISTIC_STEPS = 32
"""The heuristic's interval grows by one part in so many."""

NEAR = 3
"""Intervals next to the bound, one slot apart, that are tried first."""

GROWTH = 1.12
"""Beyond them, how much larger each interval is than the last: schedules are easier to find with room."""

FINER, ROOM = 1.25, 1.05
"""Slots (times the resolution) and interval (times the bound) of a second look where the first could not tell."""

RETRIES = 3
"""Seeds tried at the coarse resolution where the solver could not tell at first."""

FAILURES = 2
"""Intervals (in slots) below the best schedule that must fail before a finer resolution gives up."""


def search(problem: Problem, options: SearchOptions, progress: Progress | None = None) -> SearchResult:
    """Return the schedule of smallest initiation interval of ``problem``, with what is proved about it.

    The claim is over all schedules of at most ``max_stages`` stages. ``progress`` is called with one line of
    text per solver call. Infeasibility and limits are statuses of the result.

    Raises:
        InputError: a circuit of distance 0 with a positive latency.
    """
    started = time.monotonic()
    state = State(problem, options, progress or (lambda _: None))
    if not state.bounds.impossible:
        if state.slot == 1:
            _by_cycles(state)
        else:
            _by_slots(state)
    return _result(state, time.monotonic() - started)


def _by_cycles(state: State) -> None:
    """Scan upwards cycle by cycle: an interval without a schedule is refuted, unless only places are missing."""
    if state.asker.plain():
        _place(state)
    interval = state.lower
    while interval <= _last(state) and not state.asker.spent():
        if state.find(interval, 1).schedule is not None:
            break
        if interval == state.lower:
            state.refute(1)
        interval = max(interval + 1, state.lower)
    _settle(state)


def _place(state: State) -> None:
    """Keep what the heuristic finds at the smallest interval: better than none where the solver cannot tell."""
    interval = state.lower
    while state.best is None and interval <= state.last:
        found = state.asker.iterative(interval, 1, state.lower)
        if found is not None:
            state.keep(found.schedule, (interval, 1), proved=found.proved)
        interval += max(1, interval // HEURISTIC_STEPS)


def _last(state: State) -> int:
    """Return the last interval at which a schedule would be news."""
    if state.best is None:
        return state.last
    settled = state.proved or state.asker.rough(state.best.ii_cycles)
    return state.best.ii_cycles - (1 if settled else 0)


def _by_slots(state: State) -> None:
    """Find a schedule near the bound, close in on the bound, then raise the bound or refine the slots."""
    if state.asker.skewing():
        _climb_skewed(state)
    if state.best is None:
        _climb(state)
    _regroup(state)
    _fall_back(state)
    _close_in(state)
    _retry(state)
    _settle(state)
    slot = state.slot
    if state.best is None:
        state.refute(slot)
    while state.best is None and state.slot > 1 and state.gap() and not state.asker.spent():
        slot = state.slot = max(1, state.slot // 2)
        _climb(state)
    while state.open() and state.best is not None and slot > 1:
        finer = max(1, slot // 2)
        before = state.best.ii_cycles
        if slot == state.slot:
            if before > WIDE * state.lower:
                state.refute(2 * slot)
            state.refute(slot)
        _improve(state, finer)
        state.refute(finer)
        slot = finer
        if state.best.ii_cycles < before:
            _settle(state)


def _climb(state: State) -> None:
    """Ask for schedules at larger and larger intervals until there is one."""
    first = -(-state.lower // state.slot)
    interval = float(first * state.slot)
    while interval - state.slot < state.last and not state.asker.spent():
        count, slot = _slots(state, interval)
        if state.find(count, slot).schedule is not None:
            return
        if interval == first * state.slot and state.unknown and _look_finer(state):
            return
        near = not state.unknown and interval < (first + NEAR - 1) * state.slot
        interval = interval + state.slot if near else interval * GROWTH


def _look_finer(state: State) -> bool:
    """Look harder for any schedule at the bound, in finer slots where rounding then costs less."""
    slot = slot_cycles(state.problem, state.lower, round(FINER * state.options.resolution))
    count = -(-state.lower // slot)
    if slot <= state.slot and state.asker.possible(count, slot):
        found = state.asker.find_again(count, slot, state.lower)
        state.keep(found.schedule, (count, slot), proved=found.proved)
    return state.best is not None


def _climb_skewed(state: State) -> None:
    """Ask for schedules in which sub-tiles follow each other at equal distances, with more and more room."""
    interval = float(-(-state.lower // state.slot) * state.slot)
    while state.best is None and interval < 2 * state.lower and state.searching():
        count, slot = _slots(state, interval)
        state.keep(state.asker.find_skewed(count, slot, state.lower), (count, slot), proved=False)
        interval *= GROWTH


def _regroup(state: State) -> None:
    """Where the solver could not tell at the bound, look in finer slots with a little room, then in those groups.

    With rounding that costs less, schedules are easier to find; with the groups given, easier still.
    """
    if not state.unknown or not state.open():
        return
    slot = slot_cycles(state.problem, state.lower, round(FINER * state.options.resolution))
    roomy = -(-round(ROOM * state.lower) // slot)
    found = state.asker.find_any(roomy, slot, state.lower, 0).schedule
    state.keep(found, (roomy, slot), proved=False)
    if found is not None and state.open():
        count = -(-state.lower // slot)
        state.keep(state.asker.find_given(found, count, slot, state.lower), (count, slot), proved=False)


def _fall_back(state: State) -> None:
    """Where the effort ended without a schedule, look for one with much room and few stages: better than none."""
    interval = 1.5 * state.longest
    while state.best is None and state.asker.spent() and state.asker.in_time() and interval < 2 * state.last:
        count, slot = _slots(state, interval)
        state.keep(state.asker.find_roomy(count, slot, state.lower), (count, slot), proved=False)
        interval *= 1.5


def _slots(state: State, interval: float) -> tuple[int, int]:
    """Return an interval in slots; slots are doubled where it would have too many."""
    slot = state.slot
    while interval / slot > 1.5 * max(state.options.resolution, state.lower / state.slot):
        slot *= 2
    return -(-round(interval) // slot), slot


def _close_in(state: State) -> None:
    """Look for schedules between the bound and the best one, halving the distance each time."""
    low = -(-state.lower // state.slot) + (0 if state.unknown else NEAR - 1)
    while state.searching() and state.best is not None:
        high = -(-state.best.ii_cycles // state.slot)
        if high - low <= 1:
            return
        middle = (low + high) // 2
        before = state.best.ii_cycles
        state.find(*_slots(state, middle * state.slot))
        if state.best.ii_cycles == before:
            low = middle


def _retry(state: State) -> None:
    """Look again, with other seeds, where the solver could not tell, below the best schedule."""
    for turn in range(1, RETRIES + 1):
        for count, slot in state.unknown:
            if (state.best is None or (count - 1) * slot < state.best.ii_cycles) and state.searching():
                found = state.asker.find_any(count, slot, state.lower, turn * ANY_TRIES)
                state.keep(found.schedule, (count, slot), proved=False)


def _improve(state: State, slot: int) -> None:
    """At a finer resolution, look for schedules just below the best one, until two in a row are none."""
    failures = 0
    while state.open() and state.best is not None and failures < FAILURES:
        before = state.best.ii_cycles
        state.find(-(-(before - 1) // slot) - failures, slot)
        failures = 0 if state.best.ii_cycles < before else failures + 1


def _settle(state: State) -> None:
    """Improve the secondary objective of the best schedule where it is not proved, then shorten lifetimes."""
    if state.best is not None and not state.proved:
        state.best = state.asker.improve(state.best, *state.place)
    if state.best is not None:
        state.best = state.asker.compact(state.best, *state.place)


def _result(state: State, seconds: float) -> SearchResult:
    schedule, options = state.best, state.options
    return SearchResult(
        status=state.status(),
        schedule=schedule,
        bounds=state.bounds,
        lower_bound_cycles=state.lower,
        bound_reason="; ".join(state.bounds.impossible) or state.bound_reason,
        max_stages=state.stages,
        objective=measured(state.problem, schedule, options.objective) if schedule else (),
        objective_proved=state.proved,
        refuted=tuple(state.refuted),
        attempts=tuple(state.asker.attempts),
        method="clauses",
        solver="OR-Tools CP-SAT",
        version=version("ortools"),
        options=options,
        slot_cycles=state.slot,
        seconds=seconds,
        work=state.asker.work,
        limit=state.limit(),
    )
