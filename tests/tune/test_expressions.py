"""Arithmetic in text: what it is worth, and what is refused."""

import pytest

from twillgpu.errors import InputError
from twillgpu.tune.expressions import check, evaluate, split

SIZES = {"seq_len": 8192, "BLOCK_M": 192, "causal": False, "kind": "fp16", "nothing": None}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("cdiv(seq_len, BLOCK_M)", 43),
        ("seq_len // BLOCK_M", 42),
        ("seq_len % BLOCK_M", 128),
        ("-2 * (3 - 5) / 4", 1),
        ("min(seq_len, 100) + max(1, 2)", 102),
        ("64 < BLOCK_M <= 192 and not causal", True),
        ("BLOCK_M == 128 or BLOCK_M >= 256", False),
        ("kind == 'fp16'", True),
    ],
)
def test_arithmetic_and_conditions(text: str, value: object) -> None:
    check(text, "--grid", SIZES)
    assert evaluate(text, SIZES) == value


def test_a_list_is_split_at_its_own_commas_only() -> None:
    assert split("cdiv(seq_len, BLOCK_M), heads", "--grid") == ("cdiv(seq_len, BLOCK_M)", "heads")
    assert split("148", "--grid") == ("148",)


def test_an_exact_division_that_leaves_something_over_is_no_number() -> None:
    with pytest.raises(ArithmeticError, match="8192 is no multiple of 192"):
        evaluate("seq_len / BLOCK_M", SIZES)


@pytest.mark.parametrize("text", ["1 // 0", "1 % 0", "1 / 0", "cdiv(1, 0)"])
def test_division_by_zero_is_arithmetic_too(text: str) -> None:
    with pytest.raises(ArithmeticError):
        evaluate(text, {})


@pytest.mark.parametrize("text", ["nothing + 1", "kind - 1"])
def test_a_value_that_is_no_number_is_said(text: str) -> None:
    with pytest.raises(TypeError):
        evaluate(text, SIZES)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seq_len // BLOCK_N", "BLOCK_N in 'seq_len // BLOCK_N' is neither an axis, a size nor a constant"),
        ("__import__('os')", "is more than arithmetic"),
        ("(1).real", "is more than arithmetic"),
        ("[1 for _ in seq_len]", "is more than arithmetic"),
        ("2 ** 1000000", "is more than arithmetic"),
        ("cdiv(1)", "is more than arithmetic"),
        ("cdiv(1, *seq_len)", "is more than arithmetic"),
        ("seq_len = 3", "is no arithmetic"),
        ("(" * 100, "is no arithmetic"),
        ("1 + " * 200 + "1", "it has 801 characters"),
        ("", "is no arithmetic"),
    ],
)
def test_anything_else_is_refused_before_it_is_evaluated(text: str, message: str) -> None:
    with pytest.raises(InputError, match="--grid") as refused:
        check(text, "--grid", SIZES)
    assert message in str(refused.value)
