"""Lowered programs on numbers give what the kernel gives, for short and long loops and several tiles."""

from __future__ import annotations

import numpy as np
import pytest
import schedules

from twillgpu.emulate.call import Context
from twillgpu.emulate.inputs import prepare
from twillgpu.emulate.program import Tile, run_tiles
from twillgpu.emulate.reference import run
from twillgpu.emulate.sample import sample_inputs
from twillgpu.emulate.schedulers import schedulers
from twillgpu.emulate.unroll import Unroller
from twillgpu.frontend.subtile_dims import value_types
from twillgpu.lower.lower import lower
from twillgpu.lower.options import LowerOptions
from twillgpu.lower.record import WarpProgram

pytestmark = pytest.mark.triton


def _check(program: WarpProgram, tiles: tuple[int, ...]) -> None:
    kernel, types = program.kernel, value_types(program.kernel)
    inputs = [sample_inputs(kernel, trips=trips, seed=seed) for seed, trips in enumerate(tiles)]
    wanted = [run(kernel, one) for one in inputs]
    for scheduler in schedulers(len(program.groups), range(1))[-2:]:
        prepared = [prepare(kernel, one) for one in inputs]
        outcome = run_tiles(
            Unroller(program),
            [
                Tile(trips=trips, arguments=one.arguments, context=Context(types=types, memory=one.memory))
                for trips, one in zip(tiles, prepared, strict=True)
            ],
            scheduler,
        )
        assert outcome.missing == ()
        for want, one in zip(wanted, prepared, strict=True):
            found = one.outputs()
            for name, values in want.items():
                np.testing.assert_array_equal(found[name], values, err_msg=f"{name} under {scheduler.name}")


@pytest.mark.parametrize("name", ["gemm", "rms_norm", "attention_fwd"])
@pytest.mark.parametrize("machine", ["a100", "h100", "b200"])
def test_results_are_those_of_the_kernel(name: str, machine: str) -> None:
    kernel, graph, priced = schedules.loaded(name, machine)
    problem = schedules.roomy(priced)
    loads = any(op.variable_latency for op in problem.ops) and problem.groups.max > 1
    groups = {op.name: int(loads and not op.variable_latency) for op in problem.ops}
    if name == "attention_fwd" and machine == "b200":
        groups = {
            op: 2 if group and priced_op.warps > 1 else group
            for (op, group), priced_op in zip(groups.items(), problem.ops, strict=True)
        }
    longest = sum(max(op.real_latency_cycles, op.issue_cycles) + op.handoff_cycles for op in problem.ops)
    tries = (schedules.placed(problem, groups, interval) for interval in (longest // 2, longest))
    verified = next((found for found in tries if found is not None), None)
    assert verified is not None
    _check(lower(kernel, graph, verified), (1,))
    _check(lower(kernel, graph, verified, LowerOptions(persistent=True)), (2, 0, 3))
