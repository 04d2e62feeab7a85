"""The oracle sees each kind of accident in a small program made for it, and none in good ones."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import subjects
from mutations import Mutant, mutants
from oracle import judge

from twillgpu.lower.record import Arrive, Commit, Execute, Wait, WarpProgram

pytestmark = pytest.mark.triton


def _subject(name: str) -> subjects.Subject:
    return next(
        one for one in subjects.subjects(12, seed=3) if one.name.startswith(name) and len(one.program.groups) > 1
    )


@pytest.mark.parametrize("name", ["gemm h100", "gemm b200"])
def test_a_good_program_has_no_accident(name: str) -> None:
    subject = _subject(name)
    assert judge(subject.program, subject.blocks, runs=30) is None


def _shown(name: str, choose: Callable[[Mutant], bool]) -> set[str]:
    subject = _subject(name)
    found = [mutant for mutant in mutants(subject.program) if choose(mutant)]
    assert found
    outcomes = (judge(mutant.program, subject.blocks, runs=30) for mutant in found[:6])
    return {outcome.kind for outcome in outcomes if outcome is not None}


@pytest.mark.parametrize(
    ("kind", "accidents"),
    [
        ("drop expect", {"deadlock", "arrivals"}),
        ("wrong bytes", {"deadlock", "arrivals", "wrong version", "phase lag", "early pass"}),
        ("wrong count", {"deadlock", "arrivals", "wrong version", "phase lag", "early pass"}),
        ("after dropped", {"registers", "deadlock", "exit"}),
        ("missing anti edge", {"wrong version", "phase lag", "arrivals", "early pass", "deadlock"}),
        ("no fences", {"unpublished"}),
    ],
)
def test_a_mistake_shows_as_the_accident_that_it_makes(kind: str, accidents: set[str]) -> None:
    shown = _shown("gemm h100", lambda mutant: mutant.kind == kind)
    assert shown
    assert shown <= accidents


def test_work_that_is_not_waited_for_outlives_the_block() -> None:
    def drains_left_out(program: WarpProgram) -> WarpProgram:
        return replace(
            program,
            groups=tuple(
                replace(group, after=tuple(one for one in group.after if type(one).__name__ != "Drain"))
                for group in program.groups
            ),
        )

    subject = _subject("gemm b200")
    outcome = judge(drains_left_out(subject.program), ((2,),), runs=30)
    assert outcome is not None
    assert outcome.kind == "exit"


def test_mutants_differ_from_the_program_and_name_their_place() -> None:
    subject = _subject("gemm h100")
    found = list(mutants(subject.program))
    assert all(mutant.program != subject.program for mutant in found)
    assert {mutant.kind for mutant in found} >= {
        "drop wait",
        "early release",
        "wrong slot",
        "depth minus one",
        "swap",
    }
    assert any(isinstance(one, Wait | Arrive | Commit | Execute) for one in subject.program.groups[0].loop)
