"""The parameters of a kernel as it was specialised: types, constants, defaults, and which divisibility is used."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from twillgpu.frontend.kernel import Kernel, Parameter
from twillgpu.frontend.launch import LoadOptions
from twillgpu.frontend.load import load_kernel
from twillgpu.frontend.text import parse_kernel, print_kernel

pytest.importorskip("triton")

from twillgpu.frontend.specialised import literal

pytestmark = pytest.mark.triton
FILE = Path(__file__).parent / "parameters_of_all_kinds.py"
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return load_kernel(FILE, "sm_90a")


def test_parameters_of_all_kinds(kernel: Kernel) -> None:
    assert kernel.parameters == (
        Parameter(name="x_ptr", type="*fp16", aligned=True),
        Parameter(name="y_ptr", type="*fp16", aligned=True),
        Parameter(name="columns", type="i32", aligned=True),
        Parameter(name="offset", type="i64"),
        Parameter(name="bias_ptr", type="constexpr", value="None"),
        Parameter(name="one", type="constexpr", value="1"),
        Parameter(name="DTYPE", type="constexpr", value="'fp32'"),
        Parameter(name="BLOCK", type="constexpr", value="1024"),
        Parameter(name="eps", type="fp32", default="1e-05"),
        Parameter(name="MODE", type="constexpr", value="'plain'", default="'plain'"),
        Parameter(name="SHIFTED", type="constexpr", value="False", default="False"),
        Parameter(name="num_warps", type="option", value="4"),
    )


def test_they_are_read_back_as_printed(kernel: Kernel) -> None:
    assert 'parameter MODE: "constexpr" value "\'plain\'" default "\'plain\'"\n' in print_kernel(kernel)
    assert parse_kernel(print_kernel(kernel)) == kernel


def test_the_size_of_a_loop_over_tiles_of_tma_need_not_be_a_multiple_of_16() -> None:
    product = load_kernel(EXAMPLES / "gemm.py", "sm_90a")
    assert [one.name for one in product.parameters if one.aligned] == []
    pointers = load_kernel(EXAMPLES / "gemm.py", "sm_90a", LoadOptions(kernel="gemm_pointers"))
    assert [one.name for one in pointers.parameters if one.aligned] == ["a_ptr", "b_ptr", "c_ptr", "N", "K"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (128, "128"),
        (-0.5, "-0.5"),
        (True, "True"),
        (None, "None"),
        ("tanh", "'tanh'"),
        ((1, 2), "(1, 2)"),
        (float("nan"), "'nan'"),
        (len, "'len'"),
        (SimpleNamespace(__name__="activation"), "'activation'"),
    ],
)
def test_constants_as_literals(value: object, text: str) -> None:
    assert literal(value) == text
