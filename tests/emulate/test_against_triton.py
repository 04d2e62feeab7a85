"""The reference against Triton's own interpreter, on the examples lowered for every target."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from example_formulas import Array, attention, halves

from twillgpu.emulate.inputs import Inputs
from twillgpu.emulate.reference import run
from twillgpu.frontend.kernel import Kernel
from twillgpu.frontend.launch import parse_options
from twillgpu.frontend.load import load_kernel

pytestmark = [
    pytest.mark.slow,
    pytest.mark.versions,
    pytest.mark.triton,
    pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed"),
]
ROOT = Path(__file__).parents[2]
TARGETS = ("sm_80", "sm_90a", "sm_100a")
RANDOM = np.random.default_rng(31)


@dataclass(frozen=True)
class Case:
    file: str
    kernel: str
    constexprs: dict[str, int]
    inputs: Inputs
    blocks: dict[str, tuple[str, str]]
    outputs: tuple[str, ...]


def forward(kernel: str) -> Case:
    suffix = "_ptr" if kernel.endswith("pointers") else "_desc"
    rows, depth = 512, 64
    tensors: dict[str, Array] = {f"{name}{suffix}": halves(RANDOM, rows, depth) for name in "qkv"}
    tensors[f"o{suffix}"] = np.zeros((rows, depth), np.float16)
    tensors["lse_ptr"] = np.zeros(rows, np.float32)
    blocks = {f"{name}_desc": ("BLOCK_M" if name in "qo" else "BLOCK_N", "HEAD_DIM") for name in "qkvo"}
    return Case(
        file="attention_fwd",
        kernel=kernel,
        constexprs={"HEAD_DIM": depth, "BLOCK_M": 128, "BLOCK_N": 64},
        inputs=Inputs(tensors=tensors, scalars={"sm_scale": 0.125, "seq_len": 256}, grid=(2, 2, 1)),
        blocks=blocks if suffix == "_desc" else {},
        outputs=(f"o{suffix}", "lse_ptr"),
    )


def backward() -> Case:
    rows, depth = 256, 64
    q, k, v, do = (halves(RANDOM, rows, depth) for _ in range(4))
    o, lse = attention(q, k, v, 0.125)
    tensors: dict[str, Array] = {"q_desc": q, "k_desc": k, "v_desc": v, "do_desc": do}
    tensors["dq_desc"] = np.zeros((rows, depth), np.float32)
    tensors |= {f"{name}_desc": np.zeros((rows, depth), np.float16) for name in ("dk", "dv")}
    tensors |= {"lse_ptr": lse.astype(np.float32), "delta_ptr": (o * do).sum(1).astype(np.float32)}
    return Case(
        file="attention_bwd",
        kernel="attention_bwd",
        constexprs={"HEAD_DIM": depth, "BLOCK_M": 64, "BLOCK_N": 128},
        inputs=Inputs(tensors=tensors, scalars={"sm_scale": 0.125, "seq_len": rows}, grid=(2, 1, 1)),
        blocks={
            f"{name}_desc": ("BLOCK_M" if name in ("q", "do", "dq") else "BLOCK_N", "HEAD_DIM")
            for name in ("q", "k", "v", "do", "dq", "dk", "dv")
        },
        outputs=("dq_desc", "dk_desc", "dv_desc"),
    )


def gemm(kernel: str) -> Case:
    suffix = "_ptr" if kernel.endswith("pointers") else "_desc"
    m, n, k = 256, 256, 192
    tensors = {f"a{suffix}": halves(RANDOM, m, k), f"b{suffix}": halves(RANDOM, k, n)}
    tensors[f"c{suffix}"] = np.zeros((m, n), np.float16)
    sides = {"a_desc": ("BLOCK_M", "BLOCK_K"), "b_desc": ("BLOCK_K", "BLOCK_N"), "c_desc": ("BLOCK_M", "BLOCK_N")}
    return Case(
        file="gemm",
        kernel=kernel,
        constexprs={"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64},
        inputs=Inputs(tensors=tensors, scalars={"K": k, **({} if suffix == "_desc" else {"N": n})}, grid=(2, 2, 1)),
        blocks=sides if suffix == "_desc" else {},
        outputs=(f"c{suffix}",),
    )


def rms_norm(kernel: str) -> Case:
    columns = 1000 if kernel == "rms_norm" else 1024
    tensors = {"x_ptr": halves(RANDOM, 8, columns), "w_ptr": halves(RANDOM, columns)}
    tensors["y_ptr"] = np.zeros((8, columns), np.float16)
    size = {"columns": columns} if kernel == "rms_norm" else {"rows": 8}
    sizes = {"BLOCK_M": 4, "BLOCK_N": 256} if kernel == "rms_norm" else {"BLOCK_M": 1, "COLUMNS": columns}
    return Case(
        file="rms_norm",
        kernel=kernel,
        constexprs=sizes,
        inputs=Inputs(tensors=tensors, scalars={**size, "eps": 1e-6}, grid=(2, 1, 1)),
        blocks={},
        outputs=("y_ptr",),
    )


def scans() -> Case:
    rows, columns = 24, 32
    x = np.round(4 * RANDOM.standard_normal((rows, columns))).astype(np.float32)
    tensors: dict[str, Array] = {"x_ptr": x, "y_ptr": np.zeros_like(x), "best_ptr": np.zeros(rows, np.int32)}
    return Case(
        file="assorted",
        kernel="scans",
        constexprs={"COLUMNS": columns, "ROWS": 8},
        inputs=Inputs(tensors=tensors, scalars={"n": rows}),
        blocks={},
        outputs=("y_ptr", "best_ptr"),
    )


def integers() -> Case:
    x = RANDOM.integers(-(2**31), 2**31, 700).astype(np.int32)
    x[:300] //= 2**20
    tensors: dict[str, Array] = {"x_ptr": x, "y_ptr": np.zeros_like(x), "count_ptr": np.zeros(6, np.int32)}
    return Case(
        file="assorted",
        kernel="integers",
        constexprs={"BLOCK": 256},
        inputs=Inputs(tensors=tensors, scalars={"n": 700}),
        blocks={},
        outputs=("y_ptr", "count_ptr"),
    )


def products() -> Case:
    a, b = (RANDOM.standard_normal(shape).astype(np.float32) for shape in ((64, 128), (128, 64)))
    tensors: dict[str, Array] = {"a_ptr": a, "b_ptr": b, "c_ptr": np.zeros((64, 64), np.float32)}
    return Case(
        file="assorted",
        kernel="products",
        constexprs={"SIZE": 64},
        inputs=Inputs(tensors=tensors, scalars={"k": 128, "wide": 3}),
        blocks={},
        outputs=("c_ptr",),
    )


@cache
def cases() -> dict[str, Case]:
    made = [forward("attention_fwd"), forward("attention_fwd_pointers"), backward(), gemm("gemm")]
    made += [gemm("gemm_pointers"), rms_norm("rms_norm"), rms_norm("rms_norm_rows")]
    made += [scans(), integers(), products()]
    return {case.kernel: case for case in made}


NAMES = (
    "attention_fwd",
    "attention_fwd_pointers",
    "attention_bwd",
    "gemm",
    "gemm_pointers",
    "rms_norm",
    "rms_norm_rows",
    "scans",
    "integers",
    "products",
)


def loaded(case: Case, target: str, folder: Path) -> Kernel:
    options = parse_options(
        kernel=case.kernel,
        constexprs=[f"{name}={value}" for name, value in case.constexprs.items()],
        loop=2 if case.kernel == "rms_norm" else None,
    )
    place = folder if case.file == "assorted" else ROOT / "examples"
    return load_kernel(place / f"{case.file}.py", target, options)


def launch(case: Case, kernel: Kernel) -> dict[str, Any]:
    args: list[dict[str, Any]] = []
    for argument in kernel.arguments:
        name = argument.name
        if name in case.inputs.tensors:
            block = [case.constexprs[size] for size in case.blocks.get(name, ())]
            args.append({"tensor": name, **({"block": block} if block else {})})
        elif "." not in name:
            args.append({"scalar": case.inputs.scalars[name]})
    grid, sizes = case.inputs.grid, case.constexprs
    return {
        "name": case.kernel,
        "file": case.file,
        "kernel": case.kernel,
        "grid": grid,
        "constexprs": sizes,
        "args": args,
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the kernels that are no examples."""
    made = tmp_path_factory.mktemp("launches")
    text = Path(__file__).with_name("assorted_kernels.txt").read_text(encoding="utf-8")
    (made / "assorted.py").write_text(text, encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def expected(folder: Path) -> dict[str, dict[str, Array]]:
    """What Triton's interpreter makes of every case, by kernel and tensor."""
    launches = [launch(case, loaded(case, "sm_90a", folder)) for case in cases().values()]
    (folder / "launches.json").write_text(json.dumps(launches), encoding="utf-8")
    for case in cases().values():
        for name, tensor in case.inputs.tensors.items():
            np.save(folder / f"{case.kernel}.{name}.npy", tensor)
    command = [sys.executable, str(Path(__file__).with_name("triton_launches.py")), str(folder)]
    done = subprocess.run(  # noqa: S603 (this interpreter, a file of the tests)
        command, env={**os.environ, "TRITON_INTERPRET": "1"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return {
        case.kernel: {name: np.load(folder / f"{case.kernel}.{name}.out.npy") for name in case.outputs}
        for case in cases().values()
    }


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", NAMES)
def test_the_reference_agrees_with_tritons_interpreter(
    name: str, target: str, folder: Path, expected: dict[str, dict[str, Array]]
) -> None:
    case = cases()[name]
    found = run(loaded(case, target, folder), case.inputs)
    for output in case.outputs:
        ours, theirs = found[output], expected[name][output]
        # Both compute in f32 from the same f16 inputs, in another order of additions: sums differ by a few units of
        # 2^-24, so that a rounding to f16 may fall to the other side: one unit in the last place, 2^-10 of the value.
        unit = {"float16": 2**-10, "float32": 2**-18}.get(ours.dtype.name, 0)
        scale = float(np.abs(theirs).max())
        assert np.allclose(ours, theirs, rtol=unit, atol=unit * scale * 2**-3)
        assert ours.dtype == theirs.dtype
        if ours.dtype == np.float16:
            assert (ours == theirs).mean() > 0.95, "nearly all elements are the same"
