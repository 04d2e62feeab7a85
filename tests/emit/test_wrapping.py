"""Long lines are broken at their last brackets."""

import pytest

from twillgpu.emit.wrapping import split_commas, wrapped_lines

LONG = "argument_with_a_long_name"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("short = f(a, b)", ["short = f(a, b)"]),
        (
            f"    value = function_of_some_length({LONG}, {LONG}, {LONG}, other, another)",
            [
                "    value = function_of_some_length(",
                f"        {LONG}, {LONG}, {LONG}, other, another",
                "    )",
            ],
        ),
        (
            f"def function({LONG}_1, {LONG}_2, {LONG}_3, {LONG}_4, {LONG}_5):",
            ["def function(", *(f"    {LONG}_{at}," for at in range(1, 6)), "):"],
        ),
        (f"# {LONG} {LONG} {LONG} {LONG} {LONG}", [f"# {LONG} {LONG} {LONG} {LONG} {LONG}"]),
    ],
)
def test_lines(line: str, expected: list[str]) -> None:
    assert list(wrapped_lines([line])) == expected


def test_nested_brackets_are_opened_in_turn() -> None:
    inner = ", ".join(f"{LONG}_{at}" for at in range(6))
    lines = list(wrapped_lines([f"x = f(a, g({inner}), b)"]))
    assert lines[:4] == ["x = f(", "    a,", "    g(", f"        {LONG}_0,"]
    assert lines[-3:] == ["    ),", "    b,", ")"]
    assert max(map(len, lines)) <= 118


def test_commas_in_brackets_and_strings_do_not_split() -> None:
    assert split_commas('a, f(b, c), [d, e], "g, h"') == ["a", "f(b, c)", "[d, e]", '"g, h"']
