"""Schedules of the examples on Hopper, in their default shapes and in others, compile as they are scheduled."""

from __future__ import annotations

from pathlib import Path

import pytest

import twillgpu
from twillgpu.frontend.launch import LoadOptions
from twillgpu.inputs import SourceOptions

pytestmark = [pytest.mark.slow, pytest.mark.triton]

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    ("name", "constexprs", "interval"),
    [
        ("gemm", {}, 1024),
        ("gemm", {"BLOCK_N": 128}, 512),
        ("attention_fwd", {}, 2048),
        ("attention_fwd", {"HEAD_DIM": 64}, 1088),
        ("attention_bwd", {}, 4700),
    ],
)
def test_no_spills_in_the_loop_no_serialised_wgmma(name: str, constexprs: dict[str, int], interval: int) -> None:
    options = SourceOptions(load=LoadOptions(constexprs=tuple(constexprs.items())))
    priced = twillgpu.load_problem(EXAMPLES / f"{name}.py", "h100", options=options)
    run = twillgpu.find_schedule(priced)
    emission = twillgpu.emit_source(priced, run.result, twillgpu.EmitOptions(check=True))
    assert emission.clean, emission.conclusion
    assert emission.ii_cycles <= interval
