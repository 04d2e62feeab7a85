"""The reference interpreter on the captured examples, against formulas in float64."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from example_formulas import (
    FILES,
    Array,
    attention,
    attention_gradients,
    attention_inputs,
    captured,
    halves,
    rms_norm,
    worst,
)

from twillgpu.emulate.inputs import Inputs
from twillgpu.emulate.reference import run
from twillgpu.emulate.sample import sample_inputs
from twillgpu.errors import InputError
from twillgpu.frontend.kernel import Kernel
from twillgpu.frontend.subtile import subtile
from twillgpu.frontend.text import parse_kernel, print_kernel

HALF = 2**-10
"""Unit in the last place of f16, relative: twice the largest rounding error."""


def files(prefix: str) -> list[str]:
    return [name for name in FILES if name.startswith(prefix)]


def inner(inputs: Inputs, name: str) -> Array:
    """Return a tensor whether it is behind a pointer or a descriptor."""
    return inputs.tensors[f"{name}_desc" if f"{name}_desc" in inputs.tensors else f"{name}_ptr"]


@pytest.mark.parametrize("name", files("attention_fwd"))
def test_attention_forward_is_the_formula(name: str) -> None:
    kernel = captured(name)
    inputs = replace(attention_inputs(kernel, 512), grid=(2, 1, 1))
    found = run(kernel, inputs)
    q, k, v = (inner(inputs, tensor) for tensor in "qkv")
    o, lse = attention(q, k, v, inputs.scalars["sm_scale"])
    rows = 512 if "sm_100a" in name else 256
    # P is rounded to f16 before the product, o once more after it.
    out = found["o_desc" if "o_desc" in found else "o_ptr"]
    assert worst(out[:rows], o[:rows]) < HALF
    assert worst(found["lse_ptr"][:rows], lse[:rows]) < 1e-6
    assert not out[rows:].any(), "blocks outside of the grid write nothing"


@pytest.mark.parametrize("parts", [False, True])
@pytest.mark.parametrize("name", files("attention_bwd"))
def test_attention_backward_is_the_formula(name: str, *, parts: bool) -> None:
    kernel, random = captured(name), np.random.default_rng(5)
    rows, depth, scale = 256, 128, 128**-0.5
    tensors = {tensor: halves(random, rows, depth) for tensor in ("q", "k", "v", "do")}
    o, lse = attention(tensors["q"], tensors["k"], tensors["v"], scale)
    given = {f"{tensor}_desc": values for tensor, values in tensors.items()}
    given["dq_desc"] = np.zeros((rows, depth), np.float32)
    given |= {tensor: np.zeros((rows, depth), np.float16) for tensor in ("dk_desc", "dv_desc")}
    given |= {"lse_ptr": lse, "delta_ptr": (o * tensors["do"]).sum(1)}
    inputs = Inputs(tensors=given, scalars={"sm_scale": scale, "seq_len": rows}, grid=(2, 1, 1))
    found = run(subtile(kernel, 64).kernel if parts else kernel, inputs)
    exact = attention_gradients(tensors, scale)
    # P and dS are rounded to f16 before the products, dK and dV once more after them.
    assert worst(found["dq_desc"] * scale, exact["dq"]) < HALF
    assert worst(found["dk_desc"], exact["dk"]) < HALF
    assert worst(found["dv_desc"], exact["dv"]) < HALF


def gemm_inputs(kernel: Kernel, depth: int) -> Inputs:
    random, suffix = np.random.default_rng(7), "_desc" if kernel.name == "gemm" else "_ptr"
    a, b = halves(random, 256, max(depth, 1)), halves(random, max(depth, 1), 512)
    tensors = {f"a{suffix}": a, f"b{suffix}": b, f"c{suffix}": np.full((256, 512), 7, np.float16)}
    sizes = {"K": depth} if kernel.name == "gemm" else {"K": depth, "N": 512}
    return Inputs(tensors=tensors, scalars=sizes, grid=(2, 2, 1))


@pytest.mark.parametrize("depth", [0, 64, 192])
@pytest.mark.parametrize("name", files("gemm"))
def test_gemm_is_the_formula_for_any_trip_count(name: str, depth: int) -> None:
    kernel = captured(name)
    inputs = gemm_inputs(kernel, depth)
    found = run(kernel, inputs)
    a, b = inner(inputs, "a")[:, :depth], inner(inputs, "b")[:depth]
    exact = a.astype(np.float64) @ b.astype(np.float64)
    columns = 512 if "sm_80" not in name else 256
    c = found["c_desc" if "c_desc" in found else "c_ptr"][:, :columns].astype(np.float64)
    # One rounding to f16, and f32 additions (2^-24 of the sum of magnitudes each).
    assert np.allclose(c, exact[:, :columns], rtol=HALF / 2, atol=1e-4)


@pytest.mark.parametrize("columns", [0, 1024, 3000])
@pytest.mark.parametrize("name", files("rms_norm_sm"))
def test_rms_norm_is_the_formula_with_a_masked_tail(name: str, columns: int) -> None:
    random = np.random.default_rng(9)
    x, w = halves(random, 8, columns), halves(random, columns)
    inputs = Inputs(
        tensors={"x_ptr": x, "w_ptr": w, "y_ptr": np.zeros_like(x)},
        scalars={"columns": columns, "eps": 1e-6},
        grid=(2, 1, 1),
    )
    found = run(captured(name), inputs)["y_ptr"]
    if columns:
        assert worst(found, rms_norm(x, w, 1e-6)) < HALF
    assert found.shape == (8, columns)


@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize("name", files("rms_norm_rows"))
def test_a_persistent_loop_is_shared_by_the_grid(name: str, blocks: int) -> None:
    random = np.random.default_rng(9)
    x, w = halves(random, 8, 4096), halves(random, 4096)
    tensors = {"x_ptr": x, "w_ptr": w, "y_ptr": np.zeros_like(x)}
    inputs = Inputs(tensors=tensors, scalars={"rows": 8, "eps": 1e-6}, grid=(blocks, 1, 1))
    assert worst(run(captured(name), inputs)["y_ptr"], rms_norm(x, w, 1e-6)) < HALF


@pytest.mark.parametrize("trips", [0, 1, 3])
@pytest.mark.parametrize(
    "name", [name for name in FILES if "triton39" in name and name.startswith(("attention_fwd", "gemm"))]
)
def test_split_and_whole_kernels_agree_for_any_trip_count(name: str, trips: int) -> None:
    kernel = captured(name)
    split = subtile(kernel, 64 if "sm_80" not in name else None).kernel
    inputs = sample_inputs(kernel, trips=trips)
    whole, parts = run(kernel, inputs), run(split, inputs)
    assert (split != kernel) == ("sm_80" not in name)
    for tensor in whole:
        assert np.array_equal(whole[tensor], parts[tensor], equal_nan=True)


@pytest.mark.parametrize(("element", "unit"), [("bf16", 2**-7), ("f8E4M3FN", 2**-3)])
def test_other_element_types(element: str, unit: float) -> None:
    text = print_kernel(captured("gemm_sm_90a_triton39.mlir"))
    kernel = parse_kernel(text.replace("xf16", f"x{element}"))
    random = np.random.default_rng(13)
    a, b = (random.standard_normal(shape).astype(np.float32) for shape in ((128, 64), (64, 256)))
    tensors = {"a_desc": a, "b_desc": b, "c_desc": np.zeros((128, 256), np.float32)}
    found = run(kernel, Inputs(tensors=tensors, scalars={"K": 64}))["c_desc"]
    exact = a.astype(np.float64) @ b.astype(np.float64)
    assert found.dtype == np.float32
    # Both inputs and the result are rounded: three times half a unit of the largest value.
    assert worst(found, exact) < 1.5 * unit


def test_inputs_stay_and_outputs_are_copies() -> None:
    kernel = captured("gemm_sm_90a_triton39.mlir")
    inputs = gemm_inputs(kernel, 64)
    before = inputs.tensors["c_desc"].copy()
    found = run(kernel, inputs)
    assert np.array_equal(inputs.tensors["c_desc"], before)
    assert not np.array_equal(found["c_desc"], before)


def test_a_tensor_that_is_too_small_is_said_with_the_line_and_the_block() -> None:
    kernel = captured("attention_fwd_sm_90a_triton39.mlir")
    inputs = attention_inputs(kernel, 128)
    short = replace(inputs, tensors={**inputs.tensors, "lse_ptr": np.zeros(100, np.float32)})
    with pytest.raises(InputError) as caught:
        run(kernel, short)
    assert str(caught.value) == (
        "attention_fwd.py:46: in block (0, 0, 0), tt.store at store writes element 127 of lse_ptr, which has 100 "
        "elements; mask the access, or give larger tensors"
    )


def test_a_step_that_is_not_positive_gives_no_iterations() -> None:
    text = print_kernel(captured("gemm_sm_90a_triton39.mlir")).replace("value = 64 : i32", "value = 0 : i32")
    kernel = parse_kernel(text)
    assert not run(kernel, gemm_inputs(kernel, 64))["c_desc"].any()
