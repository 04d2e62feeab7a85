"""Running the body of a small Gluon kernel that is written in a test."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

import numpy as np

from twillgpu.emulate.gluon.source import SourceRun, run_source
from twillgpu.emulate.inputs import Inputs

HEAD = """
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import blackwell as bw
from triton.experimental.gluon.language.nvidia.blackwell import TensorMemoryLayout, allocate_tensor_memory
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma

TILE = gl.constexpr(gl.BlockedLayout([1, 1], [1, 32], [4, 1], [1, 0]))
ROW = gl.constexpr(gl.SliceLayout(0, TILE))
"""


def ran_body(folder: Path, body: str, functions: str = "", options: str = "num_warps=4") -> SourceRun:
    """Return what a kernel does with pointers to 128 x 64 matrices of f32: ``x`` (random) and ``y`` (zeros)."""
    text = "\n".join(
        [
            HEAD,
            dedent(functions),
            "@gluon.jit\ndef kernel(x_ptr, y_ptr, count, SIZE: gl.constexpr):",
            "    rows = gl.arange(0, 128, gl.SliceLayout(1, TILE))",
            "    places = rows[:, None] * 64 + gl.arange(0, 64, ROW)[None, :]",
            "    x = gl.load(x_ptr + places)",
            indent(dedent(body), "    "),
            f"def launch(grid, x, y, count):\n    kernel[grid](x, y, count, 64, {options})",
        ]
    )
    path = folder / "source.py"
    path.write_text(text, "utf-8")
    x = np.random.default_rng(0).standard_normal((128, 64), np.float32)
    inputs = Inputs(tensors={"x": x, "y": np.zeros((128, 64), np.float32)}, scalars={"count": 3})
    return run_source(str(path), inputs, {"x": "f32", "y": "f32"})
