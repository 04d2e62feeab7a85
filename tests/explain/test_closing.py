"""The known schedule's order in a changed problem, and what is asked beyond it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from explaining import EXACT

from problems import Node, problem, use
from twillgpu.explain.asking import Questions
from twillgpu.explain.closing import tightened
from twillgpu.explain.record import Change, ExplainOptions, Family
from twillgpu.explain.variant import Variant, changed
from twillgpu.machine.record import Groups
from twillgpu.schedule import ask
from twillgpu.schedule.ask import Asker
from twillgpu.schedule.model import Answer
from twillgpu.schedule.record import SearchOptions
from twillgpu.schedule.search import search

LONG = problem([Node(name="a", uses=(use("x", 40),)), Node(name="b", uses=(use("x", 20), use("y", 24)))])
BASE = Variant(problem=LONG, stages=3)
FASTER = Change(family=Family(kind="unit", name="x"), before=100, after=200)


def test_the_known_order_gives_a_smaller_interval_without_a_search() -> None:
    # 40 + 20 cycles of x are 60. With x twice as fast, b is 24 long on y, and x takes 30.
    known = search(LONG, SearchOptions(resolution=EXACT)).schedule
    assert known is not None
    assert known.ii_cycles == 60
    found = tightened(changed(BASE, (FASTER,)), known, 30)
    assert found is not None
    assert found.ii_cycles == 30


def test_a_known_order_that_breaks_a_rule_of_the_changed_problem_is_none() -> None:
    # Two ops at once take both instances of x; where each holds two, they cannot go together.
    tiny = problem([Node(name=name, uses=(use("x", 3),)) for name in "ab"], units={"x": 2})
    found = search(tiny, SearchOptions(resolution=EXACT)).schedule
    assert found is not None
    known = replace(found, ops=tuple(replace(op, start_cycle=0) for op in found.ops))
    assert tightened(Variant(problem=tiny, stages=3), known, 3) is not None
    crowded = problem([Node(name=name, uses=(use("x", 3, amount=2),)) for name in "ab"], units={"x": 2})
    assert tightened(Variant(problem=crowded, stages=3), known, 3) is None


def test_whether_a_change_helps_takes_no_more_than_the_known_order() -> None:
    long = problem([Node(name="a", uses=(use("x", 400),)), Node(name="b", uses=(use("x", 200), use("y", 240)))])
    result = search(long, SearchOptions())
    questions = Questions(Variant(problem=long, stages=3), result, ExplainOptions(), lambda _: None)
    assert questions.helps((FASTER,))
    assert not questions.helps((Change(family=Family(kind="unit", name="y"), before=100, after=200),))
    assert questions.count == 0


def test_without_an_objective_no_question_is_put_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = Answer(outcome="unknown", starts={}, groups={}, work=0.1, seconds=0.0)
    monkeypatch.setattr(ask, "answer", lambda *_: unknown)
    two = replace(LONG, groups=Groups(max=2, warps=(1, 4), max_warps=8))
    asker = Asker(two, SearchOptions(objective=()), 3, lambda _: None)
    assert not asker.find(60, 1, 60).known
    assert [attempt.purpose for attempt in asker.attempts] == ["find"]


def test_what_less_of_a_capacity_reached_more_of_it_reaches() -> None:
    questions = Questions(BASE, search(LONG, SearchOptions()), ExplainOptions(), lambda _: None)
    doubled = questions.relaxed((FASTER,))
    assert doubled is not None
    assert doubled.upper_cycles == 30
    tripled = replace(doubled, changes=(replace(FASTER, after=300),), upper_cycles=60)
    assert questions.reached(tripled) == 30
    assert questions.reached(replace(tripled, changes=(replace(FASTER, after=150),))) == 60
