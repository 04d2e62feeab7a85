"""Copies and phases: the expressions give what the definition gives, with the chip's division."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twillgpu.emit.counting import iteration_text, place
from twillgpu.lower.record import Anchor, Instance, Iteration


class Truncating:
    """An integer whose division rounds towards zero, as on the chip."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __add__(self, other: int) -> "Truncating":
        return Truncating(self.value + number(other))

    def __sub__(self, other: int) -> "Truncating":
        return Truncating(self.value - number(other))

    def __floordiv__(self, other: int) -> "Truncating":
        return Truncating(math.trunc(self.value / other))

    def __mod__(self, other: int) -> "Truncating":
        return Truncating(int(math.fmod(self.value, other)))

    def __and__(self, other: int) -> int:
        return self.value & other


def number(value: "int | Truncating") -> int:
    return value.value if isinstance(value, Truncating) else value


@pytest.mark.parametrize("anchor", ["first", "loop", "last"])
@given(copies=st.integers(1, 5), offset=st.integers(-3, 3), lag=st.integers(0, 5), at=st.integers(0, 20))
def test_copy_and_phase_are_those_of_the_definition(
    anchor: Anchor, copies: int, offset: int, lag: int, at: int
) -> None:
    least = 2
    count = offset - lag + (0 if anchor == "first" else at + least)
    instance = Instance(scope="iteration", iteration=Iteration(anchor=anchor, offset=offset), lag=lag)
    if count < -copies or offset - lag + least < -copies:
        return
    found = place(instance, copies, least, persistent=False)
    known = {"t": Truncating(at + least), "trips": Truncating(at + least)}
    assert number(eval(found.copy, known)) == count % copies  # noqa: S307  # our own expression
    assert eval(found.phase, known) == count // copies & 1  # noqa: S307  # our own expression


def test_iterations_read_as_an_engineer_writes_them() -> None:
    assert iteration_text(Iteration(anchor="first", offset=1)) == "1"
    assert iteration_text(Iteration(anchor="loop", offset=0)) == "t"
    assert iteration_text(Iteration(anchor="loop", offset=-2)) == "t - 2"
    assert iteration_text(Iteration(anchor="last", offset=-1)) == "trips - 1"


def test_an_instance_of_a_tile_that_is_alone() -> None:
    first = place(Instance(scope="tile"), 1, 0, persistent=False)
    assert (first.copy, first.phase) == ("0", "0")
    before = place(Instance(scope="tile", lag=1), 1, 0, persistent=False)
    assert (before.copy, before.phase) == ("0", "1")


def test_counts_of_a_persistent_block_run_on() -> None:
    ring = Instance(scope="iteration", iteration=Iteration(anchor="loop", offset=0))
    found = place(ring, 2, 0, persistent=True)
    assert (found.copy, found.phase) == ("(base + t) % 2", "((base + t) // 2) & 1")
    tile = place(Instance(scope="tile", lag=1), 1, 0, persistent=True)
    assert (tile.copy, tile.phase) == ("0", "(tile & 1) ^ 1")
