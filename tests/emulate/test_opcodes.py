"""Every opcode that the front end and the graph builder know has a meaning on numbers, or is declined by name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from example_formulas import FILES, captured
from run_op import run_op

import twillgpu
from twillgpu.emulate.ops import OPCODES
from twillgpu.errors import UnsupportedError
from twillgpu.frontend.check import all_ops
from twillgpu.graph import kinds

PACKAGE = Path(twillgpu.__file__).parent
NO_MEANING = {"tt.call", "tt.elementwise_inline_asm"}
"""Text of another language, and a function that is not in the kernel."""

NO_VALUE_OPS = {
    "tt.func", "ttg.warp_specialize", "ttng.wait_barrier", "ttng.async_tma_copy_global_to_local",
    "ttng.async_tma_copy_local_to_global", "ttng.async_tma_reduce", "ttg.target", "tt.num_stages",
    "tt.warp_specialize", "tt.disallow_acc_multi_buffer", "tt.flatten", "tt.divisibility",
}  # fmt: skip
"""Attributes, the function itself, and ops of kernels that are specialized already, which the front end declines."""


def spelled(folder: str) -> set[str]:
    """Return every opcode that a string in the source files of ``folder`` spells."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in (PACKAGE / folder).glob("*.py"))
    return set(re.findall(r'"((?:tt|ttg|ttng|arith|math|ub)\.[a-z0-9_]+)"', text))


@pytest.mark.parametrize("folder", ["frontend", "graph", "costs"])
def test_every_opcode_that_the_stages_before_name_has_a_meaning(folder: str) -> None:
    assert spelled(folder) - OPCODES <= NO_MEANING | NO_VALUE_OPS


def test_every_opcode_of_the_graph_builder_has_a_meaning() -> None:
    known = {*kinds.VIEWS, *kinds.KINDS, *kinds._SCALAR_OPCODES}
    known |= {f"math.{name}" for name in kinds._SPECIAL} | {f"arith.{name}" for name in kinds._CONVERSIONS}
    assert known <= OPCODES


@pytest.mark.parametrize("name", FILES)
def test_every_opcode_of_the_examples_has_a_meaning(name: str) -> None:
    assert {op.opcode for op in all_ops(captured(name))} <= OPCODES


@pytest.mark.parametrize("opcode", sorted(NO_MEANING))
def test_an_opcode_without_meaning_is_declined_with_its_line(opcode: str) -> None:
    with pytest.raises(UnsupportedError, match=rf"^kernel.py:7: {opcode} at op has no meaning on numbers"):
        run_op(opcode, [], [])
