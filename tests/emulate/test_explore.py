"""Exhaustive exploration, which knows nothing of happens-before, agrees with the one symbolic run."""

import pytest
import warp_programs as warp
from mutants import mutants

from twillgpu.emulate.explore import Exploration, Explorer
from twillgpu.emulate.record import Finding
from twillgpu.emulate.symbolic_check import check_trips
from twillgpu.emulate.unroll import Unroller
from twillgpu.lower.record import Arrive, Wait, WarpProgram

GOOD = {
    "ring of depth 1": warp.producer_consumer(1),
    "ring of depth 2": warp.producer_consumer(2),
    "two consumers": warp.producer_consumer(2, consumers=2),
    "staged": warp.staged(2),
    "staged, deeper ring": warp.staged(3),
    "handover": warp.handover(1),
    "handover, depth 2": warp.handover(2),
    "aliased": warp.aliased(),
}
TRIPS = (3, 2)
BEYOND = {"fence", "drain", "stale", "poison", "arrivals", "exit", "coverage", "missing value", "wrong slot"}
"""What the exploration does not look for: publication, registers, which instance is found, names of phases, the "
"end."""


def _explored(program: WarpProgram, *, reduced: bool) -> Exploration:
    unroller = Unroller(program)
    return Explorer(unroller.barriers, unroller.scripts(TRIPS), reduced=reduced).explore(20_000)


def _kinds(finding: Finding) -> set[str]:
    races, hazards = {race.kind for race in finding.races}, {hazard.kind for hazard in finding.hazards}
    return {*races, *hazards} | ({"deadlock"} if finding.deadlock else set())


@pytest.mark.parametrize("program", GOOD.values(), ids=GOOD.keys())
def test_no_interleaving_of_a_sound_program_goes_wrong(program: WarpProgram) -> None:
    found = _explored(program, reduced=False)
    assert found.complete
    assert found.sound


@pytest.mark.parametrize("name", ["ring of depth 2", "two consumers", "staged", "handover", "aliased"])
def test_one_run_finds_what_some_interleaving_shows_and_no_more(name: str) -> None:
    for what, mutant in mutants(GOOD[name]):
        finding, shown = check_trips(mutant, TRIPS), _explored(mutant, reduced=False)
        reduced = _explored(mutant, reduced=True)
        assert shown.complete, what
        if not shown.sound:
            assert not finding.sound, f"accepted: {what}: {shown}"
        elif not finding.sound:
            assert _kinds(finding) <= BEYOND, f"false alarm: {what}: {finding}"
        # The reduced exploration is for deadlocks and faults alone.
        assert bool(shown.deadlock) == bool(reduced.deadlock), what
        assert bool(shown.faults) == bool(reduced.faults), what
        assert reduced.states <= shown.states


def test_a_race_names_both_accesses() -> None:
    found = _explored(warp.edit(warp.producer_consumer(2), "consumer0", warp.without(Wait)), reduced=False)
    assert (
        "load (iteration 0, group producer; kernel.py:4) against sum0 (iteration 0, group consumer0; kernel.py:4)"
    ) in found.races


def test_a_deadlock_says_where_groups_stand() -> None:
    found = _explored(warp.edit(warp.producer_consumer(1), "consumer0", warp.without(Arrive)), reduced=True)
    assert found.deadlock == (
        "wait empty (iteration 1, group producer)",
        "wait full (iteration 1, group consumer0)",
    )


def test_a_limit_is_said() -> None:
    program = Unroller(warp.staged(3))
    found = Explorer(program.barriers, program.scripts((9,)), reduced=False).explore(50)
    assert not found.complete
    assert found.sound
