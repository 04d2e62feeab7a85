"""Divisions of Triton and what Gluon calls them."""

from collections.abc import Mapping

import pytest

from twillgpu.emit.expressions import Writing, pure
from twillgpu.emit.terms import LayoutNames, Term
from twillgpu.frontend.kernel import KernelOp, KernelValue, TileType

SCALAR = TileType(space="scalar", dtype="f32")
TYPES: Mapping[str, TileType] = dict.fromkeys(("a", "b", "r"), SCALAR)


@pytest.mark.parametrize(
    ("opcode", "text"),
    [("arith.divf", "(a / b)"), ("tt.precise_divf", "gl.div_rn(a, b)"), ("tt.approx_divf", "gl.fdiv(a, b)")],
)
def test_every_kind_of_division_has_a_gluon_form(opcode: str, text: str) -> None:
    op = KernelOp(name="r", opcode=opcode, operands=("a", "b"), results=(KernelValue(name="r", type=SCALAR),))
    writing = Writing(layouts=LayoutNames(), types=TYPES, term=lambda name: Term(text=name))
    found = pure(op, writing)
    assert found is not None
    assert found.text == text
