"""Inputs made by a dry run: shapes, trip counts, data-dependent addresses, limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from example_formulas import FILES, captured

from twillgpu.emulate.reference import run
from twillgpu.emulate.sample import DEFAULT_TRIPS, sample_inputs, trips_of
from twillgpu.errors import InputError
from twillgpu.frontend.text import parse_kernel

GATHER = """kernel gather
target sm_80
warps 4
file ""
argument table_ptr: global<ptr<f32>>
argument index_ptr: global<ptr<i32>>
argument out_ptr: global<ptr<f32>>
argument n: scalar<i32>
before
  c0 = arith.constant() {value = 0 : i32} -> scalar<i32>
  c4 = arith.constant() {value = 4 : i32} -> scalar<i32>
  range = tt.make_range() {end = 4 : i32, start = 0 : i32} -> registers<4xi32>
  indices = tt.splat(index_ptr) -> registers<4xptr<i32>>
  table = tt.splat(table_ptr) -> registers<4xptr<f32>>
  out = tt.splat(out_ptr) -> registers<4xptr<f32>>
loop l: at: scalar<i32> in range(c0, n, c4)
  at_splat = tt.splat(at) -> registers<4xi32>
  place = arith.addi(at_splat, range) -> registers<4xi32>
  index_at = tt.addptr(indices, place) -> registers<4xptr<i32>>
  index = tt.load(index_at) -> registers<4xi32>
  row_at = tt.addptr(table, index) -> registers<4xptr<f32>>
  row = tt.load(row_at) -> registers<4xf32>
  out_at = tt.addptr(out, place) -> registers<4xptr<f32>>
  store = tt.store(out_at, row) @ gather.py:9
after
"""


@pytest.mark.parametrize("name", [name for name in FILES if "triton39" in name])
@pytest.mark.parametrize("trips", [0, 1, 2])
def test_every_example_runs_on_sampled_inputs_with_the_trips_asked_for(name: str, trips: int) -> None:
    kernel = captured(name)
    inputs = sample_inputs(kernel, trips=trips)
    assert trips_of(kernel, inputs) == trips
    found = run(kernel, inputs)
    assert found.keys() == inputs.tensors.keys()


def test_tensors_are_as_large_as_the_kernel_touches() -> None:
    inputs = sample_inputs(captured("attention_fwd_sm_90a_triton39.mlir"), grid=(2, 1, 1))
    assert inputs.scalars["seq_len"] == DEFAULT_TRIPS * 128
    shapes = {name: tensor.shape for name, tensor in inputs.tensors.items()}
    assert shapes["q_desc"] == shapes["o_desc"] == (256, 128)
    assert shapes["k_desc"] == (384, 128)
    assert shapes["lse_ptr"] == (256,)
    assert not inputs.tensors["o_desc"].any(), "what is only written is zero"
    assert inputs.tensors["q_desc"].std() == pytest.approx(1, abs=0.05)


def test_scalars_that_are_given_stay() -> None:
    kernel = captured("gemm_pointers_sm_80_triton39.mlir")
    inputs = sample_inputs(kernel, scalars={"K": 64, "N": 512})
    assert dict(inputs.scalars) == {"K": 64, "N": 512}
    assert inputs.tensors["c_ptr"].shape == (127 * 512 + 128,)


def test_the_same_seed_gives_the_same_inputs() -> None:
    kernel = captured("gemm_sm_90a_triton39.mlir")
    first, second, other = (sample_inputs(kernel, seed=seed).tensors["a_desc"] for seed in (1, 1, 2))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)


def test_addresses_that_depend_on_what_is_loaded_are_in_the_tensors() -> None:
    kernel = parse_kernel(GATHER)
    inputs = sample_inputs(kernel, trips=5)
    index = inputs.tensors["index_ptr"]
    assert index.shape == (20,)
    assert inputs.tensors["table_ptr"].shape == (int(index.max()) + 1,)
    assert np.array_equal(run(kernel, inputs)["out_ptr"], inputs.tensors["table_ptr"][index])


def test_an_access_before_a_tensor_is_said_with_its_line() -> None:
    kernel = parse_kernel(GATHER.replace("start = 0 : i32", "start = -4 : i32").replace("end = 4", "end = 0"))
    with pytest.raises(InputError, match=r"tt.load at index reads memory before the start of a tensor"):
        sample_inputs(kernel)


def test_trips_that_cannot_be_had_are_said() -> None:
    kernel = captured("gemm_sm_90a_triton39.mlir")
    with pytest.raises(InputError, match="no value of the arguments was found that gives 3 iterations"):
        sample_inputs(kernel, trips=3, scalars={"K": 64})


def test_tensors_that_would_be_too_large_are_refused() -> None:
    kernel = captured("gemm_pointers_sm_80_triton39.mlir")
    with pytest.raises(InputError, match=r"the kernel touches \d+ bytes of c_ptr; give smaller scalar arguments"):
        sample_inputs(kernel, scalars={"N": 1 << 23})


def test_wrong_inputs_are_refused() -> None:
    kernel = captured("gemm_sm_90a_triton39.mlir")
    inputs = sample_inputs(kernel)
    cases = {
        "no value for scalar argument K": replace(inputs, scalars={}),
        "no value for tensor argument a_desc, b_desc": replace(inputs, tensors={"c_desc": inputs.tensors["c_desc"]}),
        "the kernel has no scalar argument 'k'; use one of K": replace(inputs, scalars={"K": 64, "k": 1}),
        "the kernel has no tensor argument 'x'": replace(inputs, tensors={**inputs.tensors, "x": np.zeros(3)}),
        "a_desc has 1 dimensions and its descriptor has blocks of": replace(
            inputs, tensors={**inputs.tensors, "a_desc": np.zeros(3)}
        ),
        r"the grid \(0, 1, 1\) has no blocks": replace(inputs, grid=(0, 1, 1)),
    }
    for message, wrong in cases.items():
        with pytest.raises(InputError, match=message):
            run(kernel, wrong)


SHAPED = """kernel shaped
target sm_90a
warps 4
file ""
argument x_desc: descriptor<8x16xf32>
argument x_desc.shape.0: scalar<i32>
argument x_desc.shape.1: scalar<i32>
argument x_desc.stride.0: scalar<i64>
argument x_desc.stride.1: scalar<i64>
before
  c0 = arith.constant() {value = 0 : i32} -> scalar<i32>
  c8 = arith.constant() {value = 8 : i32} -> scalar<i32>
loop l: row: scalar<i32> in range(c0, x_desc.shape.0, c8)
  x = tt.descriptor_load(x_desc, row, c0) -> registers<8x16xf32>
  twice = arith.addf(x, x) -> registers<8x16xf32>
  store = tt.descriptor_store(x_desc, twice, row, c0)
after
"""


def test_a_loop_over_the_rows_of_a_descriptor_gets_as_many_rows() -> None:
    kernel = parse_kernel(SHAPED)
    inputs = sample_inputs(kernel, trips=5)
    assert (inputs.tensors["x_desc"].shape, dict(inputs.scalars)) == ((40, 16), {})
    assert trips_of(kernel, inputs) == 5
    assert np.array_equal(run(kernel, inputs)["x_desc"], 2 * inputs.tensors["x_desc"])


def test_blocks_of_a_persistent_loop_have_their_own_number_of_iterations() -> None:
    kernel = captured("rms_norm_rows_sm_90a_triton39.mlir")
    inputs = sample_inputs(kernel, scalars={"rows": 5}, grid=(2, 1, 1))
    assert [trips_of(kernel, inputs, (block, 0, 0)) for block in (0, 1)] == [3, 2]
