"""Classes of failure that users of warp-specialising compilers reported, made in programs of real kernels.

The small hand-made programs of each are in ``tests/emulate/test_known_failures.py`` and ``test_deadlock.py``.
"""

import campaign
import pytest
import subjects
from mutations import mutants
from oracle import judge

pytestmark = pytest.mark.triton

SOURCES = [subjects.SOURCES[place] for place in (0, 2, 5)]
CASES = (
    ("trip counts 0, 1 and fewer than stages: unguarded prologue", "attention_fwd h100", "no guards"),
    ("depth off by one", "gemm h100", "depth minus one"),
    ("one buffer, two consumers: count of the empty barrier", "gemm h100", "wrong count"),
    ("wait on a consumed phase", "gemm h100", "wrong phase everywhere"),
    ("wait for one of two producers", "gemm b200", "value not waited for"),
    ("aliased storage without an anti edge", "gemm h100", "buffer over another"),
    ("ring written before its readers are done", "gemm h100", "missing anti edge"),
    ("store published before it completed", "gemm b200", "no fences"),
    ("release before the read", "gemm h100", "early release"),
)


@pytest.fixture(scope="module")
def found() -> list[subjects.Subject]:
    return list(subjects.subjects(9, seed=11, sources=SOURCES))


@pytest.mark.parametrize(("lesson", "name", "kind"), CASES, ids=[case[0] for case in CASES])
def test_a_reported_failure_is_refused(found: list[subjects.Subject], lesson: str, name: str, kind: str) -> None:
    unsafe = 0
    for subject in (one for one in found if one.name.startswith(name) and len(one.program.groups) > 1):
        for mutant in [one for one in mutants(subject.program) if one.kind == kind][:6]:
            if judge(mutant.program, subject.blocks, runs=12) is not None:
                unsafe += 1
                assert campaign.refusal(mutant.program, subject.blocks) is not None, f"{lesson}: {mutant.where}"
    assert unsafe, f"{lesson}: no mutant of {name} is unsafe"
