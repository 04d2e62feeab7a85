"""The examples: within 2 % of the schedule's interval, or it is named what keeps them from it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from twillgpu.api import find_schedule
from twillgpu.inputs import Priced, load_problem
from twillgpu.lower.lower import lower
from twillgpu.lower.record import WarpProgram
from twillgpu.simulate.record import Latency, SimulationOptions, SteadyState
from twillgpu.simulate.simulate import causes, steady_state
from twillgpu.verify import check
from twillgpu.verify.record import Verified

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MODEL = SimulationOptions(arrive_cycles=0, wait_cycles=0, staging=False)
EXPLAINED = 0.02

pytestmark = [pytest.mark.triton, pytest.mark.slow]


@cache
def lowered(example: str, machine: str) -> tuple[Priced, WarpProgram]:
    priced = load_problem(EXAMPLES / f"{example}.py", machine)
    schedule = find_schedule(priced).result.schedule
    assert schedule is not None
    verdict = check(priced.problem, schedule)
    assert isinstance(verdict, Verified)
    assert priced.loaded.kernel is not None
    return priced, lower(priced.loaded.kernel, priced.loaded.graph, verdict)


def paced(example: str, machine: str, options: SimulationOptions) -> SteadyState:
    priced, made = lowered(example, machine)
    return steady_state(made, priced.problem, priced.loaded.machine, options)


def named(found: SteadyState, *words: str) -> float:
    """Return the cycles of the critical chain that are spent on what any of ``words`` names."""
    return sum(one.cycles for one in found.critical if one.reason.startswith(words))


@pytest.mark.parametrize("machine", ["h100", "b200"])
def test_attention_keeps_its_interval_by_the_costs_of_the_model_or_waits_for_barrier_hops(machine: str) -> None:
    """On b200 the accumulator goes to the group that rescales it and back, between two products."""
    found = paced("attention_fwd", machine, MODEL)
    assert abs(found.excess) <= EXPLAINED or named(found, "barrier hop") > 0.8 * (found.cycles - found.ii_cycles)


@pytest.mark.parametrize("machine", ["h100", "b200"])
def test_gemm_waits_for_loads_where_its_rings_are_shallow(machine: str) -> None:
    """Its chain goes load, product, barrier, load: with one copy more than it has, the loads would be hidden. With
    loads that take no longer than the model needs, it keeps its interval.
    """
    found = paced("gemm", machine, MODEL)
    assert found.excess <= EXPLAINED or named(found, "latency: load") > found.cycles - found.ii_cycles
    quick = SimulationOptions(arrive_cycles=0, wait_cycles=0, latency=Latency(cycles=200))
    assert abs(paced("gemm", machine, quick).excess) <= EXPLAINED


@pytest.mark.parametrize("machine", ["h100", "b200"])
@pytest.mark.parametrize("example", ["gemm", "attention_fwd"])
def test_the_critical_chain_accounts_for_every_cycle(example: str, machine: str) -> None:
    found = paced(example, machine, SimulationOptions())
    assert found.period > 0
    assert sum(one.cycles for one in found.critical) == pytest.approx(found.cycles)


@pytest.mark.parametrize("machine", ["h100", "b200"])
@pytest.mark.parametrize("example", ["gemm", "attention_fwd"])
def test_causes_end_at_what_is_simulated(example: str, machine: str) -> None:
    priced, made = lowered(example, machine)
    found = causes(made, priced.problem, priced.loaded.machine)
    assert len(found) == 3
    assert found[-1].cycles == paced(example, machine, SimulationOptions()).cycles
    assert found[0].cycles >= made.ii_cycles * (1 - EXPLAINED)


@pytest.mark.parametrize(("example", "machine"), [("gemm", "b200"), ("attention_fwd", "h100")])
def test_loads_that_take_longer_slow_the_loop_down(example: str, machine: str) -> None:
    paces = [
        paced(example, machine, SimulationOptions(latency=Latency(scale=scale))).cycles for scale in (1, 2, 5, 10)
    ]
    assert paces == sorted(paces)
    assert paces[-1] > 1.5 * paces[0]
