"""The table of bounds marks every bound that binds."""

from dataclasses import replace

from handmade import BOUNDS, RESULT

from twillgpu.costs.record import Bounds
from twillgpu.view.claim import bounds_section


def test_all_bounds_that_tie_are_marked() -> None:
    tie = replace(BOUNDS[1], name="smem_port", cycles=100)
    lines = bounds_section(replace(RESULT, bounds=Bounds(bounds=(BOUNDS[0], tie, BOUNDS[1]))))[2:]
    assert [line.split()[0] for line in lines] == [">", ">", "80"]
