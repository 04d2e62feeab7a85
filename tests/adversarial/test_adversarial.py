"""No unsafe mutant of a program or a schedule is accepted, and nothing good is refused."""

from collections import Counter

import campaign
import pytest
import schedule_campaign
import subjects
import whole

pytestmark = pytest.mark.triton


def test_a_sample_of_broken_programs() -> None:
    tally = campaign.Tally()
    for subject in subjects.subjects(3, seed=7):
        tally.add(campaign.attack(subject, number=16, runs=5))
    assert (tally.programs, tally.mutants) == (3, 48)
    assert tally.accepted == []
    assert tally.false_alarms == []
    assert sum(tally.shown.values()) >= 24


def test_a_sample_of_broken_schedules() -> None:
    tally = schedule_campaign.attack(60, seed=7)
    assert tally.mutants >= 60
    assert tally.accepted == []
    assert tally.false_alarms == []
    truths = Counter(truth for _, truth, _ in tally.verdicts.elements())
    assert min(truths["unsafe"], truths["harmless"]) >= 10


@pytest.mark.slow
def test_the_whole_set() -> None:
    programs, schedules = whole.run(whole.ALL)
    assert programs.mutants >= 3000
    assert programs.programs >= 30
    assert programs.good >= 500
    assert programs.accepted == []
    assert programs.false_alarms == []
    assert schedules.mutants >= 2000
    assert schedules.accepted == []
    assert schedules.false_alarms == []
