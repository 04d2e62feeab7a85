"""SAT solvers answer as CP-SAT does; limits hold; without python-sat there is a remedy."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest
from embedding import question
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from searching import handed
from test_search_cases import MINIMA

from problems import Node, problem, problems, use
from twillgpu.costs.record import PriceOptions, Problem, Scale
from twillgpu.errors import InputError
from twillgpu.inputs import load_problem
from twillgpu.machine.record import Groups, Registers
from twillgpu.schedule import sat
from twillgpu.schedule.ask import SMALL_REGISTERS
from twillgpu.schedule.core import Question
from twillgpu.schedule.finish import drafted, finish
from twillgpu.schedule.model import Backend, answer
from twillgpu.schedule.resolution import default_stages
from twillgpu.schedule.solved import Effort
from twillgpu.verify import check
from twillgpu.verify.record import Verified

EFFORT = Effort(work=30.0, seconds=60.0)
SATISFIABLE = {"optimal": True, "feasible": True, "infeasible": False}
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def outcomes(asked: Question) -> list[bool]:
    """Return whether each back end finds a schedule."""
    backends: tuple[Backend, ...] = ("cp-sat", "cadical", "glucose")
    return [SATISFIABLE[answer(asked, (), EFFORT, backend).outcome] for backend in backends]


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    problems(max_ops=4),
    st.integers(min_value=1, max_value=7),
    st.sampled_from(["exact", "up", "down"]),
    st.booleans(),
)
def test_the_solvers_agree(tiny: Problem, interval: int, rounding: str, placement: bool) -> None:
    scale = Scale(slot_cycles=1 if rounding == "exact" else 2, rounding="down" if rounding == "down" else "up")
    asked = replace(question(tiny, interval, 2, scale), placement=placement)
    assert len(set(outcomes(asked))) == 1


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(problems(max_ops=4), st.sampled_from([16, 24, 32, 40, 48]), st.integers(min_value=2, max_value=6))
def test_the_solvers_agree_on_the_register_file(tiny: Problem, shared: int, interval: int) -> None:
    """A pool that the groups share: integers in CP-SAT, order literals in clauses."""
    limits = Registers(per_thread=48, per_sm=32 * 4 * shared, quota_min=8)
    asked = question(
        replace(tiny, registers=limits, groups=Groups(max=3, warps=(1, 4), max_warps=9)),
        interval,
        2,
        Scale(slot_cycles=1, rounding="up"),
    )
    assert len(set(outcomes(asked))) == 1


@pytest.mark.parametrize(("name", "interval"), MINIMA.items())
def test_the_handed_graphs_have_the_same_minimum(name: str, interval: int) -> None:
    tiny = handed(name)
    stages = default_stages(tiny, interval)
    exact = Scale(slot_cycles=1, rounding="up")
    assert outcomes(question(tiny, interval, stages, exact)) == [True] * 3
    if interval > 1:
        assert outcomes(question(tiny, interval - 1, stages, exact)) == [False] * 3


@pytest.mark.triton
@pytest.mark.parametrize("backend", ["cadical", "glucose"])
def test_attention_is_scheduled_at_its_bound(backend: Backend) -> None:
    """FA3's interval, found without CP-SAT: 2,048 cycles of the tensor core in 32 slots of 64."""
    kernel = load_problem(EXAMPLES / "attention_fwd.py", "h100").problem
    scale = Scale(slot_cycles=64, rounding="up")
    asked = replace(question(kernel, 32, 3, scale), small_registers=SMALL_REGISTERS, pure=True)
    reply = answer(asked, (), EFFORT, backend)
    assert reply.outcome == "feasible"
    schedule = finish(kernel, drafted(reply.starts, reply.groups, slots=32, slot_cycles=64), lower=2048, stages=3)
    assert schedule is not None
    assert schedule.ii_cycles == 2048
    assert isinstance(check(kernel, schedule, max_stages=3), Verified)


@pytest.mark.triton
@pytest.mark.parametrize("machine", ["h100", "b200"])
def test_attention_in_one_group_needs_more_than_its_bound(machine: str) -> None:
    """Every wait holds up the only group: the solvers refute the interval that the units allow."""
    limits = PriceOptions(max_groups=1)
    kernel = load_problem(EXAMPLES / "attention_fwd.py", machine, limits=limits).problem
    assert outcomes(question(kernel, 35, 3, Scale(slot_cycles=60, rounding="down"))) == [False] * 3


def test_a_seed_renumbers_the_variables() -> None:
    tiny = problem([Node(name=name, uses=(use(),)) for name in "abc"])
    asked = question(tiny, 3, 2, Scale(slot_cycles=1, rounding="up"))
    replies = [answer(asked, (), replace(EFFORT, seed=seed), "cadical") for seed in range(6)]
    assert {reply.outcome for reply in replies} == {"feasible"}
    assert all(sorted(start % 3 for start in reply.starts.values()) == [0, 1, 2] for reply in replies)
    assert len({tuple(reply.starts.values()) for reply in replies}) > 1


def pigeons(count: int) -> list[tuple[int, ...]]:
    """Return clauses that put ``count`` pigeons into one hole fewer: exponentially hard for a SAT solver."""
    holes = range(count - 1)
    at = [[1 + pigeon * (count - 1) + hole for hole in holes] for pigeon in range(count)]
    clauses = [tuple(row) for row in at]
    return clauses + [(-a[hole], -b[hole]) for a, b in itertools.combinations(at, 2) for hole in holes]


def test_the_wall_limit_ends_a_solver() -> None:
    reply = sat.run(pigeons(14), seconds=0.5)
    assert (reply.outcome, reply.literals) == ("unknown", ())
    assert 0.5 <= reply.seconds < 30


def test_conflicts_are_a_limit_of_their_own() -> None:
    first, second = (sat.run(pigeons(11), name=sat.GLUCOSE, seconds=60, conflicts=500) for _ in range(2))
    assert (first.outcome, first.conflicts) == ("unknown", second.conflicts)
    assert sat.run(pigeons(5), name=sat.GLUCOSE, seconds=60, conflicts=500).outcome == "infeasible"


def test_without_python_sat_there_is_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sat, "find_spec", lambda _: None)
    with pytest.raises(InputError, match=r"python-sat: is not installed; pip install 'twillgpu\[sat\]'"):
        sat.run([(1,)], seconds=1)
