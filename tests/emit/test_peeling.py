"""What ptxas takes of loops with wgmma: no conditions around accumulators, no wait for one that was added to."""

from __future__ import annotations

import re

import compiled_code as code
import pytest

from twillgpu.emit.gluon import emit
from twillgpu.emit.record import Form


@pytest.mark.parametrize("name", ["attention_fwd", "attention_bwd", "gemm"])
def test_groups_with_wgmma_have_no_conditions_within_prologue_and_epilogue(name: str) -> None:
    """Before: every step of a prologue was guarded, and ptxas serialised what passed through the guards (C7511)."""
    source = emit(code.program(name, "h100"), form=Form(apart=True))
    for function in source.split("@gluon.jit"):
        if "warpgroup_mma(" in function and "for t in" in function:
            guards = re.findall(r"^( *)(?:if|elif) trips", function.split("for t in")[0], re.MULTILINE)
            assert len(guards) <= 1, guards


def test_a_product_that_another_adds_to_is_waited_for_under_the_other_s_name() -> None:
    """Before: the wait named dq_0 as well, whose registers the second product was writing: ptxas copied them."""
    source = emit(code.program("attention_bwd", "h100"))
    assert "dq_0," in source
    assert re.search(r"deps=\[[^\]]*\bdq_0\b", source) is None
