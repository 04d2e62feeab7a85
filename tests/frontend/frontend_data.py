"""Checked-in TTGIR of the examples, for tests that need no Triton."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twillgpu.frontend.convert import ConvertOptions, convert
from twillgpu.frontend.generic import parse_generic
from twillgpu.frontend.kernel import Kernel, KernelOp

DATA = Path(__file__).parent / "data"
FILES = tuple(sorted(path.name for path in DATA.glob("*.mlir")))


def captured(name: str, **options: Any) -> Kernel:
    module = parse_generic((DATA / name).read_text(encoding="utf-8"), where=name)
    loop = 2 if name.startswith("rms_norm_sm") else None
    return convert(module, ConvertOptions(**{"where": name, "loop": loop, **options}))


def body_op(kernel: Kernel, name: str) -> KernelOp:
    return next(op for op in kernel.loop.body if op.name == name)
