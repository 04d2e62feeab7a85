"""The proof checker accepts what follows by unit propagation and nothing else."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twillgpu.certify.rup import check_refutation
from twillgpu.schedule import sat

SQUARE: list[tuple[int, ...]] = [(1, 2), (1, -2), (-1, 2), (-1, -2)]
"""All four clauses over two variables: refuted by the lemma 1."""

clause = st.lists(st.integers(1, 5).flatmap(lambda v: st.sampled_from((v, -v))), min_size=1, max_size=3).map(tuple)


def outcome(clauses: list[tuple[int, ...]], *proof: str) -> tuple[str, str]:
    found = check_refutation(clauses, proof, seconds=60)
    return found.outcome, found.reason


def test_a_lemma_that_follows() -> None:
    assert outcome(SQUARE, "1 0", "0") == ("accepted", "")
    assert outcome(SQUARE, "c a comment", "", "1 0") == ("accepted", "")


def test_clauses_that_contradict_each_other_need_no_lemma() -> None:
    assert outcome([(1,), (-1, 2), (-2,)]) == ("accepted", "")
    assert outcome([(1,), ()]) == ("accepted", "")


@pytest.mark.parametrize(
    ("clauses", "proof", "reason"),
    [
        (SQUARE, (), "the proof ends without a contradiction"),
        (SQUARE, ("0",), "line 1: the empty clause does not follow by unit propagation"),
        (SQUARE[:3], ("1 0", "2 0", "-2 0"), "line 3: -2 does not follow by unit propagation"),
        ([(1, 2, 3)], ("1 2 0",), "line 1: 1 2 does not follow by unit propagation"),
        (SQUARE, ("1",), "line 1: '1' is no clause closed by 0"),
        (SQUARE, ("x 0",), "line 1: 'x 0' is no clause closed by 0"),
        (SQUARE, ("1 0 2 0",), "line 1: '1 0 2 0' is no clause closed by 0"),
        # Deleted before it is used.
        (SQUARE, ("d 1 2 0", "1 0"), "line 2: 1 does not follow by unit propagation"),
    ],
)
def test_what_does_not_follow_is_refused(clauses: list[tuple[int, ...]], proof: tuple[str, ...], reason: str) -> None:
    assert outcome(clauses, *proof) == ("refused", reason)


def test_one_of_two_equal_clauses_is_deleted() -> None:
    assert outcome([*SQUARE, (2, 1)], "d 1 2 0", "1 0")[0] == "accepted"


def test_a_deletion_of_what_is_not_there_is_left() -> None:
    assert outcome(SQUARE, "d 7 8 0", "1 0")[0] == "accepted"


def test_time_is_limited() -> None:
    found = check_refutation(SQUARE[:3], ["1 2 0"] * 1000, seconds=0)
    assert (found.outcome, found.reason) == ("time limit", "line 64 was reached")


def satisfiable(clauses: list[tuple[int, ...]]) -> bool:
    values = itertools.product((False, True), repeat=5)
    return any(all(any(value[abs(v) - 1] == (v > 0) for v in one) for one in clauses) for value in values)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(clause, min_size=1, max_size=25), st.lists(clause, max_size=8))
def test_no_proof_refutes_what_is_satisfiable(clauses: list[tuple[int, ...]], lemmas: list[tuple[int, ...]]) -> None:
    proof = [" ".join(map(str, (*lemma, 0))) for lemma in lemmas]
    if check_refutation(clauses, proof, seconds=60).outcome == "accepted":
        assert not satisfiable(clauses)


@pytest.mark.parametrize("name", [sat.GLUCOSE, sat.CADICAL])
def test_proofs_of_solvers_are_accepted_and_broken_ones_are_not(tmp_path: Path, name: str) -> None:
    choose = random.Random(0)  # noqa: S311
    refuted = broken = 0
    for _ in range(12):
        clauses = [tuple(choose.choice((v, -v)) for v in choose.sample(range(1, 41), 3)) for _ in range(190)]
        proof = tmp_path / "proof"
        if sat.run(clauses, name=name, seconds=60, proof=proof).outcome != "infeasible":
            continue
        refuted += 1
        lines = proof.read_text(encoding="ascii").splitlines()
        assert outcome(clauses, *lines)[0] == "accepted"
        broken += outcome(clauses[1:], "0")[0] == "refused"
        assert outcome(clauses, *(line for line in lines if line.startswith("d")))[0] == "refused"
    assert refuted >= 3
    assert broken == refuted
