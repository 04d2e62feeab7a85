"""The shortest modulo schedule, by both solvers; the length is derived beside each case."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from paper_cases import handed

from problems import Node, problem, problems, use
from twillgpu.costs.record import Problem
from twillgpu.errors import InputError
from twillgpu.schedule.paper import integer, modulo
from twillgpu.schedule.paper.integer import IntegerProgram, solved
from twillgpu.schedule.paper.modulo import shortest
from twillgpu.schedule.paper.record import IntegerSolver

BOTH = pytest.mark.parametrize("solver", ["highs", "scip"])


@BOTH
@pytest.mark.parametrize(
    ("name", "interval", "length"),
    [
        ("paper_figure_1", 1, None),  # two uses of the tensor unit
        ("paper_figure_1", 2, 4),  # S 0, P 1 or 2, O 3: in slot 0 is the next S
        ("paper_figure_1", 3, 3),  # S 0, P 1, O 2
        ("recurrence", 3, None),  # 7 cycles around a circuit of distance 2
        ("recurrence", 4, 7),
        ("not_monotone", 3, None),  # X meets itself
        ("not_monotone", 4, 4),
        ("register_free", 2, 8),  # A 2, B 4, C 2; units are free
    ],
)
def test_shortest(name: str, interval: int, length: int | None, solver: IntegerSolver) -> None:
    found = shortest(handed(name), interval, seconds=60, solver=solver)
    assert found.outcome == ("infeasible" if length is None else "optimal")
    assert found.length == (length or 0)


@BOTH
def test_a_schedule_may_need_more_stages_than_its_path(solver: IntegerSolver) -> None:
    # One op of two runs, at 0 and 2, and one of 2 cycles after it: at I = 4 the slots 1 and 3 are not adjacent.
    split = Node(name="x", uses=(use(cycles=1), use(cycles=1, offset=2)), latency=3)
    tiny = problem([split, Node(name="y", uses=(use(cycles=2),))])
    assert shortest(tiny, 4, seconds=60, solver=solver).outcome == "infeasible"
    # At I = 5 slots 3 and 4 are: y at 3, which ends at 5.
    assert shortest(tiny, 5, seconds=60, solver=solver).length == 5


def test_stages_limit_the_length() -> None:
    # The path of 8 cycles takes 4 stages of 2.
    graph = handed("register_free")
    assert shortest(graph, 2, seconds=60, stages=3).outcome == "infeasible"
    assert shortest(graph, 2, seconds=60, stages=4).length == 8


def test_no_time_is_unknown_not_infeasible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twillgpu.schedule.paper.modulo.solved", lambda *_: integer.Solution(outcome="unknown"))
    assert shortest(handed("paper_figure_1"), 2, seconds=0).outcome == "unknown"


def test_no_program_is_built_once_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before, one was built for every number of stages, and the joint problem had no time left."""

    def never(*_: object) -> None:
        raise AssertionError("a program was built")

    monkeypatch.setattr(modulo, "_Model", never)
    assert shortest(handed("paper_figure_1"), 2, seconds=0).outcome == "unknown"


@BOTH
def test_rows_of_integer_programs(solver: IntegerSolver) -> None:
    program = IntegerProgram()
    x, y = program.variable(upper=5, cost=1), program.variable(upper=5)
    program.at_most([(x, -1), (y, -1)], -7)  # x + y >= 7, y <= 5
    program.at_most([(x, 1), (x, -1)], 0)  # nothing
    assert solved(program, solver, 60) == integer.Solution(outcome="optimal", values=(2, 5))
    program.at_most([], -1)  # a false row without variables
    assert solved(program, solver, 60).outcome == "infeasible"


def test_a_missing_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(integer, "import_module", missing)
    with pytest.raises(InputError, match="the package highspy is missing; pip install 'twillgpu\\[paper\\]'"):
        shortest(handed("paper_figure_1"), 2, seconds=60)


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    for solver in ("highs", "scip"):
        shortest(handed("paper_figure_1"), 2, seconds=60, solver=solver)
    assert capfd.readouterr() == ("", "")


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(problems(max_ops=4, free=True))
def test_both_solvers_agree_on_random_graphs(tiny: Problem) -> None:
    for interval in (2, 3, 4):
        one = shortest(tiny, interval, seconds=60, solver="highs")
        two = shortest(tiny, interval, seconds=60, solver="scip")
        assert (one.outcome, one.length) == (two.outcome, two.length)
