"""The whole adversarial set, on several processes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context

import campaign
import schedule_campaign
import subjects
from campaign import Tally as Programs
from schedule_campaign import Tally as Schedules

SEED = 1
TRIES = 6
"""Partitions of a loop that are tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """How much is broken.

    Attributes:
        programs: good programs to break, each of another schedule, in proportion to the shares of the sources.
        mutants: mutants of each; of those of large loops half as many.
        runs: orders of each block that the oracle tries.
        good: further good programs that the checker is asked about.
        schedules: schedules to break.
        jobs: processes.
    """

    programs: int = 35
    mutants: int = 110
    runs: int = 10
    good: int = 500
    schedules: int = 2400
    jobs: int = 2


ALL = Wanted()
SHARES = [source for source in subjects.SOURCES for _ in range(source.share)]


def run(wanted: Wanted, progress: Callable[[str], None] | None = None) -> tuple[Programs, Schedules]:
    """Return the counts over programs, and over schedules; ``progress`` is told them after every part."""
    programs, schedules = Programs(), Schedules()
    with ProcessPoolExecutor(wanted.jobs, mp_context=get_context("fork")) as pool:
        parts: list[Future[Programs] | Future[Schedules]] = [
            pool.submit(_attack, number, wanted) for number in range(wanted.programs)
        ]
        parts += [pool.submit(schedule_campaign.attack, part, SEED + part) for part in _parts(wanted.schedules, 400)]
        parts += [pool.submit(_good, part, SEED + part) for part in _parts(wanted.good, 25)]
        for one in as_completed(parts):
            found = one.result()
            if isinstance(found, Programs):
                programs.add(found)
            elif isinstance(found, Schedules):
                schedules.add(found)
            if progress is not None:
                progress(f"{programs.mutants} mutants, {schedules.mutants} schedules, {programs.good} good programs")
    return programs, schedules


def _parts(number: int, size: int) -> list[int]:
    """Return sizes that add up to a number, each a little different so that it serves as a seed."""
    sizes: list[int] = []
    while sum(sizes) < number:
        sizes.append(size + len(sizes))
    return sizes


def _attack(number: int, wanted: Wanted) -> Programs:
    source = SHARES[number % len(SHARES)]
    # A partition that has no schedule is slow to find out: where too many are drawn, a smaller loop is broken.
    found = next(subjects.subjects(1, SEED + number, [source] * TRIES + SHARES[:1], persistent=bool(number % 2)))
    mutants = wanted.mutants if source.share > 1 else wanted.mutants // 2
    return campaign.attack(found, mutants, wanted.runs, SEED)


def _good(number: int, seed: int) -> Programs:
    tally = Programs()
    for subject in subjects.variants(number, seed, SHARES):
        campaign.check_good(subject, 0, tally)
    return tally
