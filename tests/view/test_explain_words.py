"""Changes and answers of an explanation in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from problems import Node, problem, use
from twillgpu.explain.record import RULE, Change, CriticalUnit, Family, Kind, Relaxed, Share, Way
from twillgpu.explain.variant import LIFT, RAISE
from twillgpu.view.explain_words import answer_words, change_words, family_words, set_words, unit_words, way_words

TINY = problem([Node(name="a", uses=(use("x", 3),))])


def change(kind: Kind, name: str, before: int, after: int | None) -> Change:
    return Change(family=Family(kind=kind, name=name), before=before, after=after)


WORDS = {
    "mufu 2 times as fast (or 50% less work for it)": change("unit", "mufu", 100, 200),
    "16 KB more smem (243 KB instead of 227 KB)": change("memory", "smem", 227 * 1024, 243 * 1024),
    "4 bytes more smem (12 bytes instead of 8 bytes)": change("memory", "smem", 8, 12),
    "+24 registers per thread in group softmax0 (279 instead of 255)": change("registers", "", 255, 279),
    "+1,024 registers in the register file (66,560 instead of 65,536)": change("register_file", "", 65536, 66560),
    "one more group (--max-groups 5)": change("groups", "", 4, 5),
    "4 more warps (--warps 36)": change("warps", "", 32, 36),
    "one more stage (--stages 10)": change("stages", "", 9, 10),
    "hand-over between groups at 50 % of its cost": change("handoff", "", 100, 50),
    "hand-over between groups at no cost": change("handoff", "", 100, None),
    "waits that do not hold up their group": change("concurrency", "", 1, None),
    "loads in any group (--variable-latency free)": change("variable_latency", "", 1, None),
    "the legality rule mma_reader lifted (--lift mma_reader)": change("legality", "mma_reader", 1, None),
    "a done 1 cycle sooner (2 instead of 3)": change("latency", "a", 3, 2),
}


@pytest.mark.parametrize("words", WORDS)
def test_a_change_in_the_words_of_those_who_make_it(words: str) -> None:
    assert change_words(WORDS[words], TINY, ("softmax0",)) == words


def test_every_kind_has_words_a_rule_and_a_way_to_lift_it() -> None:
    for kind in RULE:
        assert family_words(Family(kind=kind, name="x"), TINY, 3)
    assert set(LIFT) == set(RULE)
    assert set(RULE) - set(RAISE) == {"concurrency", "variable_latency", "legality"}


ANSWER = Relaxed(
    changes=(change("stages", "", 3, 4),),
    lower_cycles=90,
    upper_cycles=95,
    stages=4,
    bound="tensor",
    bound_cycles=90,
)


def test_an_answer_says_how_far_it_is_proved() -> None:
    assert answer_words(ANSWER) == "I <= 95 (>= 90)"
    assert answer_words(replace(ANSWER, upper_cycles=90)) == "I = 90"
    assert answer_words(replace(ANSWER, upper_cycles=None)) == "no schedule found, I >= 90"
    assert answer_words(replace(ANSWER, upper_cycles=None, infeasible=True)) == "no schedule"


def test_a_way_that_helps_one_that_does_not_and_one_that_was_cut_short() -> None:
    stages = (Family(kind="stages"),)
    found = replace(ANSWER, upper_cycles=90)
    assert (
        way_words(Way(families=stages, least=found), TINY)
        == "one more stage (--stages 4): I = 90, where tensor binds"
    )
    assert way_words(Way(families=stages, least=None, most=ANSWER), TINY) == (
        "one more stage (--stages 4): nothing smaller found, I >= 90"
    )
    more = replace(found, changes=(change("stages", "", 3, 6),))
    assert way_words(Way(families=stages, least=ANSWER, most=more, answered=False), TINY) == (
        "one more stage (--stages 4): I <= 95 (>= 90); 3 more stages (--stages 6): I = 90 "
        "(time ended before all was asked)"
    )


def test_a_set_names_its_rules_once() -> None:
    both = (Family(kind="unit", name="x"), Family(kind="unit", name="y"), Family(kind="stages"))
    assert set_words(both, TINY, 3) == "unit x, unit y and at most 3 stages [capacity, completion]"
    assert set_words((), TINY, 3) == "the dependences alone"


def test_a_unit_by_line_with_the_rest_counted() -> None:
    shares = tuple(Share(source=f"k.py:{line}", ops=(f"op{line}",), cycles=9 - line) for line in range(1, 7))
    unit = CriticalUnit(unit="alu", capacity=1, bound_cycles=33, shares=shares)
    assert unit_words(unit) == "op1 8 (line 1), op2 7 (line 2), op3 6 (line 3), op4 5 (line 4) and 2 more lines"
