"""The reference interpreter on the captured examples, against formulas in float64."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from example_formulas import FILES, attention, attention_inputs, captured, worst

from twillgpu.emulate.reference import run
from twillgpu.frontend.subtile import subtile

FORWARD = [name for name in FILES if name.startswith("attention_fwd")]


@pytest.mark.parametrize("name", FORWARD)
def test_attention_forward_is_the_formula(name: str) -> None:
    kernel = captured(name)
    inputs = replace(attention_inputs(kernel, 512), grid=(2, 1, 1))
    found = run(kernel, inputs)
    q, k, v = (inputs.tensors[f"{n}{'_ptr' if 'q_ptr' in inputs.tensors else '_desc'}"] for n in "qkv")
    o, lse = attention(q, k, v, inputs.scalars["sm_scale"])
    rows = 512 if "sm_100a" in name else 256
    # P is rounded to f16 (2^-11) before the product; o is rounded once more.
    out = found["o_desc" if "o_desc" in found else "o_ptr"]
    assert worst(out[:rows], o[:rows]) < 2 * 2**-10
    assert worst(found["lse_ptr"][:rows], lse[:rows]) < 1e-6
    assert not out[rows:].any(), "blocks outside of the grid write nothing"


@pytest.mark.parametrize("trips", [0, 1, 3])
def test_split_and_whole_kernels_agree_for_any_trip_count(trips: int) -> None:
    kernel = captured("attention_fwd_sm_90a_triton39.mlir")
    inputs = attention_inputs(kernel, trips * 128)
    whole, split = run(kernel, inputs), run(subtile(kernel).kernel, inputs)
    assert subtile(kernel).parts == 2
    for name in whole:
        assert np.array_equal(whole[name], split[name], equal_nan=True)
