"""Transposed operands A of wgmma are read from SMEM."""

from __future__ import annotations

from pathlib import Path

import pytest

from twillgpu.frontend.kernel import Kernel, KernelOp
from twillgpu.frontend.load import load_kernel
from twillgpu.frontend.operands import operands_in_memory

EXAMPLES = Path(__file__).parents[2] / "examples"
pytestmark = pytest.mark.triton


def backward() -> Kernel:
    return load_kernel(EXAMPLES / "attention_bwd.py", "sm_90a")


def named(kernel: Kernel, name: str) -> KernelOp:
    return next(op for op in kernel.loop.body if op.name == name)


def test_the_transposed_ds_of_dq_is_stored_once_and_read_from_memory() -> None:
    kernel = backward()
    view = named(kernel, named(kernel, "dq").operands[0])
    stored = named(kernel, view.operands[0])
    assert (view.opcode, view.results[0].type.shape) == ("ttg.memdesc_trans", (64, 128))
    assert (stored.opcode, stored.operands) == ("ttg.local_alloc", ("ds16",))
    assert stored.results[0].type.layout == (
        "#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>"
    )
    assert not any(op.opcode == "tt.trans" for op in kernel.loop.body)


def test_operands_that_are_not_transposed_stay_in_registers() -> None:
    kernel = backward()
    assert named(kernel, named(kernel, "dv").operands[0]).opcode == "ttg.convert_layout"


def test_what_is_in_memory_already_stays_as_it_is() -> None:
    kernel = backward()
    assert operands_in_memory(kernel) == kernel


def test_a_kernel_without_such_operands_stays_as_it_is() -> None:
    kernel = load_kernel(EXAMPLES / "attention_fwd.py", "sm_90a")
    assert operands_in_memory(kernel) == kernel
