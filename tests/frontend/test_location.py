from __future__ import annotations

import pytest

from twillgpu.errors import InputError
from twillgpu.frontend.generic import MlirModule, MlirOp, parse_generic
from twillgpu.frontend.location import Frame, user_frame
from twillgpu.frontend.scanner import Scanner

LIBRARY = '"/site-packages/triton/language/standard.py":216:16'


def module(*definitions: str) -> MlirModule:
    return parse_generic("\n".join(['"builtin.module"() : () -> ()', *definitions, ""]), where="m.mlir")


@pytest.mark.parametrize(
    ("location", "frame"),
    [
        ("", Frame()),
        ("unknown", Frame()),
        ('"a/k.py":31:14', Frame(file="a/k.py", line=31)),
        ('"k.py":31:14 to 32:3', Frame(file="k.py", line=31)),
        ('"k.py":31:14 to :20', Frame(file="k.py", line=31)),
        ('"qk"("k.py":31:14)', Frame(file="k.py", line=31, name="qk")),
        ('"acc"("l_i"("k.py":31:14))', Frame(file="k.py", line=31, name="acc")),
        ('"only_a_name"', Frame(name="only_a_name")),
        ('"x"(unknown)', Frame(name="x")),
        ("#loc7", Frame(file="k.py", line=5, name="m_ij")),
        ("#missing", Frame()),
        (f'callsite({LIBRARY} at "m_ij"("k.py":5:1))', Frame(file="k.py", line=5, name="m_ij")),
        ('callsite("y"("helper.py":3:1) at "w"("k.py":5:1))', Frame(file="helper.py", line=3, name="y")),
        ('callsite(unknown at "w"("k.py":5:1))', Frame(file="k.py", line=5, name="w")),
        ('fused[unknown, "k.py":2:1, "k.py":3:1]', Frame(file="k.py", line=2)),
        ('fused<"why">["k.py":2:1]', Frame(file="k.py", line=2)),
        (LIBRARY, Frame(file="/site-packages/triton/language/standard.py", line=216)),
    ],
)
def test_the_frame_of_a_location_is_the_innermost_one_outside_tritons_library(location: str, frame: Frame) -> None:
    assert user_frame(module('#loc7 = loc("m_ij"(#loc8))', '#loc8 = loc("k.py":5:16)'), location) == frame


def test_the_source_of_a_frame_has_no_folders() -> None:
    assert Frame(file="/somewhere/k.py", line=3).source == "k.py:3"
    assert Frame(name="x").source == ""


def test_an_unknown_kind_of_location_is_an_error() -> None:
    with pytest.raises(InputError, match="expected 'unknown', found 'weird"):
        user_frame(module(), "weird(1)")


def test_an_operation_carries_its_location() -> None:
    op: MlirOp = parse_generic('"m"() : () -> () loc(fused["a (.py":1:1, unknown])', where="m").op
    assert user_frame(module(), op.location) == Frame(file="a (.py", line=1)


def test_file_names_with_other_letters_and_quotes_are_read() -> None:
    """Before: a kernel in a folder with a non-ASCII letter was refused; MLIR escapes bytes, JSON does not."""
    scan = Scanner(r'"p\C3\A4/g\22q\\x.py"', where="location", remedy="")
    assert scan.mlir_string("a file") == 'pä/g"q\\x.py'
