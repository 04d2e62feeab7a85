"""Terms fold constants; sums that allow one at a time become clauses; symbols can hold any name."""

import pytest

from twillgpu.schedule.paper.smt import FALSE, TRUE, Script, conjunction, disjunction, negation, symbol, total
from twillgpu.schedule.paper.solve import run_yices


def test_constants_are_folded() -> None:
    assert negation(TRUE) == FALSE
    assert negation(negation("|a|")) == "|a|"
    assert disjunction([FALSE, "|a|", "|a|"]) == "|a|"
    assert disjunction(["|a|", TRUE]) == TRUE
    assert conjunction([TRUE, "|a|", "|b|"]) == "(and |a| |b|)"
    assert conjunction(["|a|", FALSE]) == FALSE
    assert (disjunction([]), conjunction([])) == (FALSE, TRUE)
    assert total([(3, TRUE), (2, "|a|"), (5, FALSE)]) == "(+ (ite |a| 2 0) 3)"
    assert total([]) == "0"


@pytest.mark.parametrize("name", ["load k", "a|b", "a\\b", "ä", 'x"y', "%7C"])
def test_any_name_makes_a_symbol_of_its_own(name: str) -> None:
    script = Script(["names"])
    for text in (name, "a_b", "load_k"):
        script.require(script.boolean(text))
    assert run_yices(script.text([symbol(name)]), 10).holds == {symbol(name)}


@pytest.mark.parametrize(
    ("weights", "limit", "lines"),
    [
        ((1, 1, 1), 1, 3),  # no two together: a clause for each pair
        ((2, 2, 1), 3, 1),  # two of them may: one sum
        ((1, 1), 2, 0),  # always so
        ((5, 1), 3, 1),  # the heavy one never holds; the other is free
    ],
)
def test_at_most(weights: tuple[int, ...], limit: int, lines: int) -> None:
    script = Script(["sums"])
    script.begin("capacity")
    script.at_most([(weight, script.boolean(f"x{index}")) for index, weight in enumerate(weights)], limit)
    assert script.counts == {"capacity": lines}


def test_at_most_counts_what_holds_anyway() -> None:
    script = Script(["sums"])
    script.begin("capacity")
    script.at_most([(3, TRUE), (1, script.boolean("x"))], 3)
    assert "(assert (not |x|))" in script.text()
    script.at_most([(4, TRUE)], 3)
    assert run_yices(script.text(), 10).outcome == "unsat"
