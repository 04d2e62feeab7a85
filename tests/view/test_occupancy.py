"""Occupancy over the period is what the verifier sees: its peaks, its floors."""

from dataclasses import replace

from handmade import PROBLEM, SCHEDULE
from hypothesis import given, settings

from problems import problems
from twillgpu.costs.record import Problem
from twillgpu.schedule.record import Schedule, SearchOptions
from twillgpu.schedule.search import search
from twillgpu.verify.expand import peak
from twillgpu.verify.lifetimes import tenants
from twillgpu.verify.registers import register_peak
from twillgpu.verify.sheet import sheet
from twillgpu.view.occupancy import Occupancy, occupancies


def _check(problem: Problem, schedule: Schedule) -> None:
    found = occupancies(problem, schedule)
    overhead = problem.registers.overhead_per_thread if problem.registers is not None else 0
    for index, one in enumerate(found[: len(schedule.groups)]):
        most = register_peak(problem, schedule, index)
        assert one.peak == overhead + (most.amount if most is not None else 0)
    for one in found[len(schedule.groups) :]:
        buffers = {buffer.name: buffer for buffer in schedule.buffers if buffer.space == one.name}
        needed = [tenant for tenant in tenants(sheet(problem, schedule)) if tenant.name in buffers]
        most = peak((replace(need.span, amount=buffers[need.name].bytes) for need in needed), schedule.ii_cycles)
        assert one.peak == one.base + (most.amount if most is not None else 0)
    for one in found:
        assert one.peak <= (one.limit if one.limit is not None else one.peak)
        assert [step.stop for step in one.steps[:-1]] == [step.start for step in one.steps[1:]]
        assert (one.steps[0].start, one.steps[-1].stop) == (0, schedule.ii_cycles)
        assert all(step.amount == one.base + sum(amount for _, amount in step.held) for step in one.steps)


@settings(max_examples=25, deadline=None)
@given(problems(max_ops=4))
def test_peaks_are_those_of_the_verifier(problem: Problem) -> None:
    schedule = search(problem, SearchOptions(work_limit=2.0)).schedule
    if schedule is not None:
        _check(problem, schedule)


def _found(name: str) -> Occupancy:
    return next(one for one in occupancies(PROBLEM, SCHEDULE) if one.name == name)


def test_a_buffer_counts_while_its_instances_live() -> None:
    """Shared memory: 512 fixed bytes, and a tile of 1,024 that is read from its load at 0 until qk starts at 10."""
    smem = _found("smem")
    assert [(step.start, step.stop, step.amount) for step in smem.steps] == [(0, 10, 1536), (10, 100, 512)]
    assert (smem.limit, smem.reserved, smem.base) == (4096, 3584, 512)
    assert smem.steps[0].held == (("load", 1024),)


def test_without_limits_on_registers_there_is_no_line() -> None:
    found = occupancies(replace(PROBLEM, registers=None), SCHEDULE)
    assert [one.limit for one in found if one.kind == "registers"] == [None, None]
