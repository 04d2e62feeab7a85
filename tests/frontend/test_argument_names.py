"""Names of the arguments that Triton passes for a descriptor."""

from __future__ import annotations

import pytest

from twillgpu.frontend.naming import argument_names

EXTENTS = ["shape.0", "shape.1", "stride.0", "stride.1"]


def test_parts_of_a_descriptor_that_share_its_name_are_told_apart() -> None:
    found = argument_names(["q", "q", "q", "q", "q", "n"], {0: 2})
    assert found == ("q", *(f"q.{part}" for part in EXTENTS), "n")


@pytest.mark.parametrize("flags", [("padding",), ("padding", "roundF32ToTF32")])
def test_a_descriptor_that_became_a_pointer_has_its_parts_twice(flags: tuple[str, ...]) -> None:
    parts = [*EXTENTS, *flags, *EXTENTS]
    found = argument_names(["q"] * (1 + len(parts)) + ["n"], {}, [0])
    assert found == ("q", *(f"q.{part}" for part in parts), "n")


def test_pointers_of_one_name_without_such_parts_stay() -> None:
    assert argument_names(["q", "q", "q"], {}, [0, 1, 2]) == ("q", "q", "q")
    assert argument_names(["q", "n"], {}, [0]) == ("q", "n")
