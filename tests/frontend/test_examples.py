"""The examples: captured for every target with the installed Triton, and right on numpy."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from frontend_data import captured
from regenerate_data import CASES, ROOT, TRITON, captured_text

from twillgpu.frontend.check import check_kernel
from twillgpu.frontend.convert import ConvertOptions, convert
from twillgpu.frontend.generic import parse_generic
from twillgpu.frontend.kernel import Kernel
from twillgpu.frontend.launch import parse_options
from twillgpu.frontend.load import load_kernel
from twillgpu.frontend.text import parse_kernel, print_kernel

pytestmark = [
    pytest.mark.triton,
    pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed"),
]
EXAMPLES = ROOT / "examples"
HOPPER, BLACKWELL, AMPERE = "sm_90a", "sm_100a", "sm_80"
PRODUCTS = {HOPPER: "ttng.warp_group_dot", BLACKWELL: "ttng.tc_gen5_mma", AMPERE: "tt.dot"}
BF16 = ["q_desc=tensordesc<bf16[BLOCK_M,HEAD_DIM]>"]
BF16 += [f"{name}_desc=tensordesc<bf16[BLOCK_N,HEAD_DIM]>" for name in "kv"]


def load(file: str, target: str, **options: object) -> Kernel:
    kernel = load_kernel(EXAMPLES / f"{file}.py", target, parse_options(**options))  # type: ignore[arg-type]
    check_kernel(kernel, where=file)
    assert parse_kernel(print_kernel(kernel)) == kernel
    assert all(op.source.startswith(f"{file}.py:") for op in kernel.loop.body)
    return kernel


def opcodes(kernel: Kernel) -> Counter[str]:
    return Counter(op.opcode for op in kernel.loop.body)


@pytest.mark.parametrize("target", [HOPPER, BLACKWELL])
@pytest.mark.parametrize(
    ("file", "options", "products", "loads"),
    [
        ("gemm", {}, 1, 2),
        ("attention_fwd", {}, 2, 2),
        ("attention_fwd", {"constexprs": ["HEAD_DIM=64"]}, 2, 2),
        ("attention_bwd", {}, 5, 2),
        ("attention_bwd", {"constexprs": ["HEAD_DIM=64", "BLOCK_M=128"]}, 5, 2),
    ],
)
def test_descriptor_examples_load_tiles_by_tma(
    file: str, options: dict[str, list[str]], products: int, loads: int, target: str
) -> None:
    found = opcodes(load(file, target, **options))
    assert (found[PRODUCTS[target]], found["tt.descriptor_load"]) == (products, loads)


@pytest.mark.parametrize("target", [AMPERE, HOPPER, BLACKWELL])
@pytest.mark.parametrize(("file", "products"), [("gemm", 1), ("attention_fwd", 2)])
def test_pointer_examples_load_tiles_by_pointer(file: str, products: int, target: str) -> None:
    found = opcodes(load(file, target, kernel=f"{file}_pointers"))
    assert (found[PRODUCTS[target]], found["tt.load"], found["tt.descriptor_load"]) == (products, 2, 0)


def test_the_attention_launch_is_chosen_by_target() -> None:
    shapes = {}
    for target in (HOPPER, BLACKWELL):
        kernel = load("attention_fwd", target)
        shapes[target] = next(op for op in kernel.loop.body if op.name == "p").results[0].type.shape
        assert kernel.num_warps == 8
        assert kernel.remarks == ()
    assert shapes == {HOPPER: (128, 128), BLACKWELL: (256, 128)}
    assert load("attention_fwd", AMPERE).name == "attention_fwd_pointers"
    assert load("attention_fwd", AMPERE, kernel="attention_fwd").remarks == (
        "no launch of attention_fwd is declared for sm_80: that for sm_90a is used",
    )


@pytest.mark.parametrize("target", [HOPPER, BLACKWELL])
def test_argument_types_of_the_command_line_go_before_the_declared_ones(target: str) -> None:
    options: dict[str, object] = {
        "args": [*BF16, "seq_len=4096"],
        "num_warps": 4,
        "constexprs": ["BLOCK_M=128", "BLOCK_N=64"],
    }
    kernel = load("attention_fwd", target, **options)
    assert (kernel.num_warps, kernel.loop.trip_count) == (4, 64)
    dtypes = {op.name: op.results[0].type for op in kernel.loop.body if op.opcode == "tt.descriptor_load"}
    assert {(kind.dtype, kind.shape) for kind in dtypes.values()} == {("bf16", (64, 128))}


def test_the_backward_pass_adds_to_global_memory() -> None:
    found = opcodes(load("attention_bwd", HOPPER))
    assert (found["tt.descriptor_reduce"], found["tt.load"], found["math.exp2"]) == (1, 2, 1)


def test_rms_norm_schedules_its_second_loop_unless_told_otherwise() -> None:
    second = load("rms_norm", HOPPER)
    assert opcodes(second)["tt.store"] == 1
    assert "scf.for outside of the loop is kept whole and not scheduled" in second.remarks[0]
    first = load("rms_norm", HOPPER, loop=1)
    assert opcodes(first)["tt.store"] == 0
    rows = load("rms_norm", HOPPER, kernel="rms_norm_rows", args=["rows=4096"])
    assert (opcodes(rows)["tt.reduce"], opcodes(rows)["tt.store"]) == (1, 1)


@pytest.mark.parametrize(("file", "kernel", "target"), CASES)
def test_the_checked_in_modules_are_what_the_examples_give(file: str, kernel: str, target: str) -> None:
    name = f"{kernel}_{target}_{TRITON}.mlir"
    loop = 2 if kernel == "rms_norm" else None
    module = parse_generic(captured_text(file, kernel, target), where=name)
    assert convert(module, ConvertOptions(where=name, loop=loop)) == captured(name)


def test_the_examples_compute_the_right_numbers_in_tritons_interpreter() -> None:
    script = Path(__file__).parent / "interpreted.py"
    done = subprocess.run(  # noqa: S603  # our own interpreter and script
        [sys.executable, str(script)],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    errors = json.loads(done.stdout)
    assert {name: sorted(found) for name, found in errors.items()} == {
        "attention": ["dk", "dq", "dv", "lse", "o"],
        "attention_pointers": ["lse", "o"],
        "matmul": ["c"],
        "matmul_pointers": ["c"],
        "normalise": ["y"],
        "normalise_rows": ["y"],
    }
    # Half precision rounds results and probabilities to 2^-11; the largest error seen is 4.8e-4.
    assert all(error < 2e-3 for found in errors.values() for error in found.values())
