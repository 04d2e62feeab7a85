"""Places: rings that are live together lie apart, others may share bytes."""

from __future__ import annotations

import pytest

from problems import Node, problem
from twillgpu.schedule.paper.places import Ring, place
from twillgpu.schedule.paper.program import Program
from twillgpu.schedule.paper.record import JointQuestion
from twillgpu.schedule.paper.smt import TRUE
from twillgpu.schedule.paper.solve import run_yices

Live = tuple[tuple[str, ...], ...]
NEVER: tuple[str, ...] = ()
ONE, TWO = (TRUE,), (TRUE, TRUE)


@pytest.mark.parametrize(
    ("first", "second", "room", "outcome"),
    [
        ((ONE, NEVER), (ONE, NEVER), 3, "sat"),  # 1 + 2 side by side
        ((ONE, NEVER), (ONE, NEVER), 2, "unsat"),  # together in slot 0
        ((ONE, NEVER), (NEVER, ONE), 2, "sat"),  # never together: the same place
        ((TWO, NEVER), (NEVER, ONE), 2, "sat"),  # two copies of one unit, in the place of one of two
        ((NEVER, ONE), (TWO, NEVER), 3, "unsat"),  # two copies of two units
        ((ONE, ONE), (TWO, TWO), 5, "sat"),
    ],
)
def test_place(first: Live, second: Live, room: int, outcome: str) -> None:
    program = Program(JointQuestion(problem=problem([Node(name="a")]), interval=2, length=2))
    place(program, "smem", [Ring(units=1, lives=first), Ring(units=2, lives=second)], room)
    assert run_yices(program.script.text(), 10).outcome == outcome
