"""Smallest sets of assumptions from an oracle that is written down."""

from __future__ import annotations

from twillgpu.explain.record import Family
from twillgpu.explain.smallest import Oracle, smallest_sets

A, B, C, D = (Family(kind="unit", name=name) for name in "abcd")
ALL = (A, B, C, D)


def refuted_by(*sets: frozenset[Family]) -> Oracle:
    """Return an oracle: the refutation stands while some set is not touched."""
    return lambda lifted: any(not one & lifted for one in sets)


def test_two_sets_that_share_a_family() -> None:
    # Lifting b breaks both; otherwise one of each: a and c.
    found = smallest_sets(ALL, refuted_by(frozenset({A, B}), frozenset({B, C})))
    assert found is not None
    assert set(found.forcing) == {(A, B), (B, C)}
    assert set(found.ways) == {(B,), (A, C)}
    assert found.complete
    assert found.minimal


def test_what_nothing_lifts_has_the_empty_set() -> None:
    found = smallest_sets(ALL, lambda _: True)
    assert found is not None
    assert (found.forcing, found.ways, found.complete) == (((),), (), True)


def test_a_refutation_that_does_not_stand_has_no_sets() -> None:
    assert smallest_sets(ALL, lambda _: False) is None
    assert smallest_sets(ALL, lambda _: None) is None


def test_three_disjoint_sets_need_more_than_is_tried() -> None:
    found = smallest_sets(ALL, refuted_by(frozenset({A}), frozenset({B}), frozenset({C, D})))
    assert found is not None
    assert set(found.forcing) == {(A,), (B,), (C, D)}
    assert (found.ways, found.complete) == ((), False)


def test_an_unknown_answer_leaves_the_set_perhaps_too_large() -> None:
    # Only a is needed, but nobody can tell what happens without b.
    def stands(lifted: frozenset[Family]) -> bool | None:
        return None if B in lifted else A not in lifted

    found = smallest_sets(ALL, stands)
    assert found is not None
    assert found.forcing == ((A, B),)
    assert not found.minimal
    assert not found.complete
