"""The whole adversarial set, on several processes."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import campaign
import schedule_campaign
import subjects

SEED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """How much is broken.

    Attributes:
        programs: good programs to break.
        mutants: mutants of each.
        runs: orders of each block that the oracle tries.
        good: further good programs that the checker is asked about.
        schedules: schedules to break.
        jobs: processes.
    """

    programs: int = 48
    mutants: int = 66
    runs: int = 10
    good: int = 500
    schedules: int = 2400
    jobs: int = 2


ALL = Wanted()


def run(wanted: Wanted) -> tuple[campaign.Tally, schedule_campaign.Tally]:
    """Return the counts over programs, and over schedules."""
    found = list(subjects.subjects(wanted.programs, SEED))
    programs, schedules = campaign.Tally(), schedule_campaign.Tally()
    with ProcessPoolExecutor(wanted.jobs, mp_context=get_context("fork")) as pool:
        attacks = [pool.submit(campaign.attack, one, wanted.mutants, wanted.runs, SEED) for one in found]
        jobs = range(wanted.jobs)
        good = [pool.submit(_good, -(-wanted.good // wanted.jobs), SEED + 1 + job) for job in jobs]
        share = -(-wanted.schedules // wanted.jobs)
        broken = [pool.submit(schedule_campaign.attack, share, SEED + job) for job in jobs]
        for one in (*attacks, *good):
            programs.add(one.result())
        for answer in broken:
            schedules.add(answer.result())
    return programs, schedules


def _good(number: int, seed: int) -> campaign.Tally:
    tally = campaign.Tally()
    for subject in subjects.subjects(number, seed):
        campaign.check_good(subject, 0, tally)
    return tally
