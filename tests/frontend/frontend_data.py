"""Checked-in TTGIR of the examples, for tests that need no Triton."""

from __future__ import annotations

from pathlib import Path

from twillgpu.frontend.convert import ConvertOptions, convert
from twillgpu.frontend.generic import parse_generic
from twillgpu.frontend.kernel import Kernel, KernelOp

DATA = Path(__file__).parent / "data"
FILES = tuple(sorted(path.name for path in DATA.glob("*.mlir")))


def captured(name: str, **options: object) -> Kernel:
    module = parse_generic((DATA / name).read_text(), where=name)
    return convert(module, ConvertOptions(where=name, **options))  # type: ignore[arg-type]


def body_op(kernel: Kernel, name: str) -> KernelOp:
    return next(op for op in kernel.loop.body if op.name == name)
