"""Structural checks: a good program passes, and each fault in it is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import schedules

from twillgpu.lower.check import check_program
from twillgpu.lower.lower import lower
from twillgpu.lower.options import LowerOptions
from twillgpu.lower.record import (
    Arrive,
    Commit,
    Execute,
    ExpectBytes,
    GroupProgram,
    Instance,
    Instruction,
    Iteration,
    Wait,
    WarpProgram,
)

pytestmark = pytest.mark.triton


@pytest.fixture(scope="module")
def gemm() -> WarpProgram:
    """Load group, MMA group, and the additional group: on B200."""
    kernel, graph, problem = schedules.loaded("gemm", "b200")
    groups = {op.name: 0 if op.variable_latency else 1 for op in problem.ops}
    verified = schedules.placed(schedules.roomy(problem), groups, 1200)
    assert verified is not None
    return lower(kernel, graph, verified, LowerOptions())


def _edited(program: WarpProgram, group: str, change: Callable[[GroupProgram], GroupProgram]) -> WarpProgram:
    return replace(program, groups=tuple(change(one) if one.name == group else one for one in program.groups))


def _loop(program: WarpProgram, group: str, change: Callable[[Instruction], Instruction | None]) -> WarpProgram:
    def edit(one: GroupProgram) -> GroupProgram:
        kept = (change(instruction) for instruction in one.loop)
        return replace(one, loop=tuple(instruction for instruction in kept if instruction is not None))

    return _edited(program, group, edit)


def test_a_lowered_program_passes(gemm: WarpProgram) -> None:
    assert check_program(gemm) == ()


def test_a_dropped_arrival_is_counted(gemm: WarpProgram) -> None:
    broken = _loop(gemm, "mma", lambda one: None if isinstance(one, Commit) else one)
    assert check_program(broken) == ("with 1 iterations: barrier acc.done has 0 arrivals in instance 0, 1 are right",)


def test_a_doubled_arrival_is_counted(gemm: WarpProgram) -> None:
    commit = next(one for one in gemm.groups[1].loop if isinstance(one, Commit))
    broken = _edited(gemm, "mma", lambda one: replace(one, loop=(*one.loop, Arrive(use=commit.use))))
    assert check_program(broken) == ("with 1 iterations: barrier acc.done has 2 arrivals in instance 0, 1 are right",)


def test_wrong_bytes_are_counted(gemm: WarpProgram) -> None:
    broken = _loop(gemm, "load", lambda one: replace(one, bytes=64) if isinstance(one, ExpectBytes) else one)
    wrong = "with 1 iterations: barrier load_a.full expects 64 bytes in instance 0, 49152 are loaded"
    assert check_program(broken) == (wrong,)


def test_a_wait_for_what_never_comes_is_found(gemm: WarpProgram) -> None:
    def later(one: Instruction) -> Instruction:
        if not isinstance(one, Wait):
            return one
        instance = replace(one.use.instance, iteration=Iteration(anchor="loop", offset=1), lag=0)
        return replace(one, use=replace(one.use, instance=instance))

    broken = _loop(gemm, "mma", later)
    assert check_program(broken) == (
        "with 1 iterations: a wait for instance 1 of barrier load_a.full, which never comes",
    )


def test_a_lag_beyond_the_copies_is_found(gemm: WarpProgram) -> None:
    def behind(one: Instruction) -> Instruction:
        if not isinstance(one, Wait):
            return one
        return replace(one, use=replace(one.use, instance=replace(one.use.instance, lag=9)))

    copies = next(barrier.copies for barrier in gemm.barriers if barrier.name == "acc.done")
    broken = _loop(gemm, "load", behind)
    wanted = f"group load, loop: Wait acc.done lags 9 phases behind, and there are {copies} copies"
    assert check_program(broken) == (wanted,)


def test_an_unknown_ring_is_named(gemm: WarpProgram) -> None:
    broken = replace(gemm, rings=tuple(ring for ring in gemm.rings if ring.name != "load_b"))
    assert "group mma, loop: there is no ring load_b" in check_program(broken)


def test_an_unknown_barrier_is_named(gemm: WarpProgram) -> None:
    broken = replace(gemm, barriers=tuple(one for one in gemm.barriers if one.name != "acc.final"))
    assert "group mma, after: there is no barrier acc.final" in check_program(broken)


def test_an_unknown_op_is_named(gemm: WarpProgram) -> None:
    broken = _loop(gemm, "mma", lambda one: replace(one, members=("nothing",)) if isinstance(one, Execute) else one)
    assert check_program(broken) == ("group mma, loop: nothing is no op of the kernel in the loop",)


def test_anchors_belong_to_their_region(gemm: WarpProgram) -> None:
    def first(one: Instruction) -> Instruction:
        return replace(one, iteration=Iteration(anchor="first", offset=0)) if isinstance(one, Execute) else one

    broken = _loop(gemm, "mma", first)
    assert "group mma, loop: acc is anchored at first, which means nothing there" in check_program(broken)


def test_scopes_are_those_of_the_barrier(gemm: WarpProgram) -> None:
    def tile(one: Instruction) -> Instruction:
        return replace(one, use=replace(one.use, instance=Instance(scope="tile"))) if isinstance(one, Wait) else one

    broken = _loop(gemm, "mma", tile)
    wanted = "group mma, loop: barrier load_a.full has scope iteration, its instance tile"
    assert wanted in check_program(broken)


def test_the_loop_has_no_guards(gemm: WarpProgram) -> None:
    broken = _loop(gemm, "mma", lambda one: replace(one, at_least=2) if isinstance(one, Wait) else one)
    assert "group mma, loop: Wait load_a.full is guarded" in check_program(broken)


def test_a_tma_load_completes_a_barrier(gemm: WarpProgram) -> None:
    def alone(one: Instruction) -> Instruction:
        return replace(one, completes=None) if isinstance(one, Execute) and one.op == "load_a" else one

    found = check_program(_loop(gemm, "load", alone))
    assert "group load, loop: load_a: a TMA load, and nothing else, completes a barrier" in found


def test_names_are_unique(gemm: WarpProgram) -> None:
    assert "2 rings are called load_a" in check_program(replace(gemm, rings=(*gemm.rings, gemm.rings[0])))
