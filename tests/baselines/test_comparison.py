"""Comparisons: the optimum is never worse than any baseline, on handed graphs and on random ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from problems import problems
from twillgpu.baselines.attention import (
    FA4,
    FA4_GROUPS,
    S_AHEAD,
    flash_attention_4,
    flash_attention_4_groups,
    s_ahead,
)
from twillgpu.baselines.compare import compare, planned_anyway
from twillgpu.baselines.complete import complete
from twillgpu.baselines.record import Comparison, Plan
from twillgpu.costs.bounds import bounds
from twillgpu.costs.price import price
from twillgpu.costs.record import Problem
from twillgpu.graph.jsonform import read_graph
from twillgpu.inputs import load_problem
from twillgpu.machine.record import Machine
from twillgpu.schedule.record import SearchOptions
from twillgpu.verify import Verified, check

ROOT = Path(__file__).parents[2]
GRAPHS = sorted((ROOT / "tests" / "graph" / "data").glob("*.json"))
EXACT = 10**6


def handed(file: Path) -> Problem | None:
    graph = read_graph(file.read_text(encoding="utf-8"), file.name)
    return price(graph, graph.machine) if isinstance(graph.machine, Machine) else None


def without_pauses(tiny: Problem) -> Problem:
    return replace(tiny, legality=tuple(pair for pair in tiny.legality if pair.relation != "pause"))


def compared(tiny: Problem, options: SearchOptions) -> Comparison:
    """Compare, and check that every schedule is sound and none is better than the first."""
    found = compare(tiny, options)
    first = found.rows[0]
    for row in found.rows:
        schedule = row.found.schedule
        assert (schedule is None) == (row.figures is None) == (row.found.outcome != "found")
        if schedule is None or row.figures is None:
            assert row.found.reason or row.found.way.name == "optimum"
            continue
        rules = without_pauses(tiny) if row.found.lifted else tiny
        assert isinstance(check(rules, schedule, max_stages=found.max_stages), Verified)
        if row.found.lifted:
            assert not isinstance(check(tiny, schedule, max_stages=found.max_stages), Verified)
            continue
        assert first.figures is not None
        assert first.figures.ii_cycles <= schedule.ii_cycles
        assert row.figures.ratio >= 1
        assert row.figures.stages <= found.max_stages
        assert schedule.ii_cycles >= found.optimum.lower_bound_cycles
    if found.optimum.status == "infeasible":
        assert all(row.found.schedule is None for row in found.rows)
    return found


@pytest.mark.parametrize("file", GRAPHS, ids=lambda file: file.stem)
def test_no_baseline_is_better_on_the_handed_graphs(file: Path) -> None:
    tiny = handed(file)
    if tiny is not None:
        compared(tiny, SearchOptions())


@settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(problems(max_ops=4))
def test_no_baseline_is_better_on_random_loops(tiny: Problem) -> None:
    compared(tiny, SearchOptions(resolution=EXACT, max_stages=3))


@pytest.mark.slow
@settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(problems(max_ops=4))
def test_no_baseline_is_better_on_random_loops_often(tiny: Problem) -> None:
    compared(tiny, SearchOptions(resolution=EXACT, max_stages=3))


@pytest.mark.slow
@pytest.mark.triton
@pytest.mark.parametrize("machine", ["h100", "h200", "b200"])
@pytest.mark.parametrize("example", ["gemm.py", "rms_norm.py", "attention_fwd.py", "attention_bwd.py"])
def test_no_baseline_is_better_on_the_examples(example: str, machine: str) -> None:
    found = compared(load_problem(ROOT / "examples" / example, machine).problem, SearchOptions())
    outcomes = {row.found.way.name: row.found.outcome for row in found.rows}
    assert outcomes["optimum"] == "found"
    if example == "attention_fwd.py":
        hand_made = "FlashAttention-4" if machine == "b200" else "FlashAttention-3"
        assert outcomes[hand_made] != "unsuited"
        assert (outcomes["stages: O behind the rest"] == "found") == (machine != "b200")


@pytest.mark.triton
def test_a_plan_without_a_pause_is_shown_without_the_rule_and_is_not_the_optimum() -> None:
    # S of the next iteration is issued before software waits for S of this one: it is in flight all the time.
    tiny = load_problem(ROOT / "examples" / "attention_fwd.py", "h100").problem
    reports: list[str] = []
    row = planned_anyway(tiny, S_AHEAD, s_ahead, SearchOptions(max_stages=5), reports.append)
    assert (row.outcome, row.lifted) == ("found", "wgmma_pause")
    assert row.reason.startswith(
        "wgmma_pause: qk_0 is waited for (by m_ij_0 and p_subf_0) an iteration or more after"
    )
    assert row.schedule is not None
    assert isinstance(check(without_pauses(tiny), row.schedule, max_stages=5), Verified)
    found = check(tiny, row.schedule, max_stages=5)
    assert not isinstance(found, Verified)
    assert {one.rule for one in found} == {"legality"}


@pytest.mark.triton
def test_flash_attention_4_is_held_up_by_its_order_of_products_alone() -> None:
    # O of a sub-tile, then S of its next iteration on the tensor core (512 + 648 cycles), then softmax and P: a
    # circuit of 2,941 cycles; the row sum lengthens it, since registers do not suffice for P in both widths.
    tiny = load_problem(ROOT / "examples" / "attention_fwd.py", "b200").problem
    options = SearchOptions(max_stages=5)
    plans = {FA4: flash_attention_4(tiny), FA4_GROUPS: flash_attention_4_groups(tiny)}
    found = {
        way.name: complete(tiny, way, plan, options, lambda _: None)
        for way, plan in plans.items()
        if isinstance(plan, Plan)
    }
    ordered, free = found[FA4.name], found[FA4_GROUPS.name]
    assert ordered.schedule is not None
    assert (ordered.proved, ordered.schedule.ii_cycles) == (True, ordered.lower_cycles)
    assert "acc_0 -> qk_0" in ordered.forced or "acc_1 -> qk_1" in ordered.forced
    assert free.schedule is not None
    assert (free.proved, free.schedule.ii_cycles) == (True, bounds(tiny).binding.cycles)
    assert free.schedule.ii_cycles < ordered.schedule.ii_cycles
