"""What holds of every run: nothing before its dependences, no unit beyond its capacity, no gain from slower loads."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st
from timed_programs import MACHINE, arrive, barrier, execute, expect, group, options, program, ring, wait

from problems import Node, problem, use
from twillgpu.costs.record import Problem
from twillgpu.lower.record import Instruction, WarpProgram
from twillgpu.simulate.critical import HELD, chain
from twillgpu.simulate.record import Event, Latency, Trace
from twillgpu.simulate.simulate import simulate, steady_state

TRIPS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A step of a chain of groups: what it costs, on which unit, and how many copies its result has."""

    cycles: int
    latency: int
    unit: str
    amount: int
    depth: int


def stages(units: tuple[str, ...]) -> st.SearchStrategy[list[Stage]]:
    one = st.builds(
        Stage,
        cycles=st.integers(1, 40),
        latency=st.integers(0, 30),
        unit=st.sampled_from(units),
        amount=st.integers(1, 3),
        depth=st.integers(1, 3),
    )
    return st.lists(one, min_size=2, max_size=4)


def chained(steps: list[Stage], *, own: bool) -> tuple[WarpProgram, Problem]:
    """Return groups that hand tiles on, the first of them by TMA; ``own``: each has a unit for itself."""
    nodes, groups, rings, barriers = [], [], [], []
    last = len(steps) - 1
    for at, step in enumerate(steps):
        unit = f"unit{at}" if own else step.unit
        name, result = f"op{at}", f"ring{at}" if at < last else ""
        loads = at == 0
        latency = step.cycles + step.latency
        issue = min(5, step.cycles) if loads else None
        uses = (use(unit, step.cycles, amount=step.amount),)
        nodes.append(Node(name=name, uses=uses, issue=issue, latency=latency, variable=loads))
        loop: list[Instruction] = [] if loads else [wait(f"full{at - 1}")]
        loop += [wait(f"ready{at}", step.depth)] if result else []
        if loads:
            loop += [expect("full0"), execute(name, "tma", writes=result, completes="full0")]
        else:
            loop += [execute(name, reads=f"ring{at - 1}", writes=result), arrive(f"ready{at - 1}")]
            loop += [arrive(f"full{at}")] if result else []
        groups.append(group(f"group{at}", loop))
        if result:
            rings.append(ring(result, step.depth))
            barriers += [barrier(f"full{at}", step.depth), barrier(f"ready{at}", step.depth)]
    units = {node.uses[0].unit: 4 for node in nodes}
    return program(groups, rings, barriers), problem(nodes, units=units)


def run(made: tuple[WarpProgram, Problem], scale: float = 1) -> Trace:
    chosen = options(trips=(TRIPS,), latency=Latency(scale=scale))
    return simulate(*made, MACHINE, chosen)


def works(trace: Trace) -> dict[tuple[str, int], Event]:
    return {(one.op, one.iteration or 0): one for one in trace.events if one.kind == "op"}


@given(stages(("alu", "mufu")))
@settings(max_examples=30, deadline=None)
def test_nothing_starts_before_its_dependences(steps: list[Stage]) -> None:
    found = works(run(chained(steps, own=False)))
    for at in range(1, len(steps)):
        for iteration in range(TRIPS):
            made, read = found[f"op{at - 1}", iteration], found[f"op{at}", iteration]
            assert read.start_cycle >= made.work_end_cycle
            again = found.get((f"op{at - 1}", iteration + steps[at - 1].depth))
            assert again is None or again.work_start_cycle >= read.work_end_cycle


@given(stages(("alu", "mufu")))
@settings(max_examples=30, deadline=None)
def test_no_unit_is_held_beyond_its_capacity(steps: list[Stage]) -> None:
    trace = run(chained(steps, own=False))
    changes: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for event in trace.events:
        for one in event.uses:
            start = event.work_start_cycle + one.offset
            changes[one.unit] += [(start, one.amount), (start + one.cycles, -one.amount)]
    for unit in trace.units:
        held = 0
        for _, amount in sorted(changes[unit.name]):
            held += amount
            assert held <= unit.capacity


@given(stages(("alu", "mufu")))
@settings(max_examples=30, deadline=None)
def test_streams_execute_one_instruction_after_the_other(steps: list[Stage]) -> None:
    ends: dict[str, int] = defaultdict(int)
    for event in run(chained(steps, own=False)).events:
        waited = 0 if event.kind in {"wait", "drain", "fence"} else event.stall_cycles
        assert event.start_cycle - waited == ends[event.group]
        ends[event.group] = event.end_cycle


@given(stages(("alu", "mufu")))
@settings(max_examples=30, deadline=None)
def test_the_critical_chain_fills_the_time_up_to_any_event(steps: list[Stage]) -> None:
    trace = run(chained(steps, own=False))
    for event in [one for one in trace.events if one.kind not in HELD][::5]:
        links = list(chain(trace.events, event, 0))
        assert all(link.cycles > 0 for link in links)
        assert sum(link.cycles for link in links) == event.start_cycle


@given(stages(("alu",)), st.integers(1, 10))
@settings(max_examples=30, deadline=None)
def test_slower_loads_never_help_where_nothing_contends(steps: list[Stage], scale: int) -> None:
    made = chained(steps, own=True)
    assert run(made, scale).cycles >= run(made).cycles


@given(stages(("alu", "mufu")))
@settings(max_examples=30, deadline=None)
def test_the_steady_state_is_the_pace_of_a_long_run(steps: list[Stage]) -> None:
    made = chained(steps, own=False)
    found = steady_state(*made, MACHINE, options())
    if not found.period:
        return
    lengths = (40, 40 + 3 * found.period)
    first, second = (simulate(*made, MACHINE, options(trips=(trips,))).cycles for trips in lengths)
    assert abs((second - first) / (3 * found.period) - found.cycles) < 1e-9


def test_slower_loads_do_not_help_on_average_where_groups_contend() -> None:
    chance = random.Random(7)  # noqa: S311  # a test
    totals = [0, 0, 0]
    for _ in range(40):
        steps = [
            Stage(
                cycles=chance.randint(5, 40),
                latency=chance.randint(0, 30),
                unit=chance.choice(("alu", "mufu")),
                amount=chance.randint(1, 4),
                depth=chance.randint(1, 3),
            )
            for _ in range(4)
        ]
        made = chained(steps, own=False)
        totals = [total + run(made, scale).cycles for total, scale in zip(totals, (1, 3, 9), strict=True)]
    assert totals == sorted(totals)
