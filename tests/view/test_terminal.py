"""The picture for the terminal: 80 columns, the same text with and without colour."""

import re
from dataclasses import replace

import pytest
from handmade import PROBLEM, SCHEDULE

from twillgpu.schedule.record import ScheduledOp
from twillgpu.view.picture import picture
from twillgpu.view.terminal import coloured, terminal_text

SGR = re.compile(r"\x1b\[\d+m")


@pytest.mark.parametrize("width", [80, 120])
def test_colour_changes_nothing_but_the_colour(width: int) -> None:
    plain, vivid = (
        terminal_text("hand on hand", PROBLEM, SCHEDULE, width=width, in_colour=colour) for colour in (False, True)
    )
    assert SGR.sub("", vivid) == plain
    assert "\x1b" not in plain
    assert max(len(line) for line in plain.splitlines()) <= width


def test_a_letter_has_the_colour_of_its_iteration_and_the_colour_ends_with_the_line() -> None:
    """Two iterations behind: green (32); one: yellow (33); the newest: cyan (36)."""
    tensor = next(line for line in coloured(picture(PROBLEM, SCHEDULE)) if line.split()[:1] == ["tensor"])
    assert re.search(r"tensor +\x1b\[32mD{5}\x1b\[36mB{25}\x1b\[33mD{20}\x1b\[0m$", tensor)


def test_small_letters_are_not_taken_for_ages() -> None:
    """From the 27th op on letters are small, as are the ages from 10 on."""
    ops = tuple(ScheduledOp(name=f"v{index:02}", start_cycle=index, group=0) for index in range(40))
    schedule = replace(SCHEDULE, ops=ops, ii_cycles=40)
    template = replace(PROBLEM.ops[0], issue_cycles=1, uses=())
    problem = replace(PROBLEM, ops=tuple(replace(template, name=op.name) for op in ops), edges=())
    lines = picture(problem, schedule)
    assert [SGR.sub("", line) for line in coloured(lines)] == lines
    assert sum("\x1b" in line for line in coloured(lines)) == 1


def test_occupancy_is_in_tenths_of_the_limit() -> None:
    text = terminal_text("hand on hand", PROBLEM, SCHEDULE, in_colour=False)
    smem = next(line for line in text.splitlines() if line.split()[:1] == ["smem"])
    assert set(smem.split()[1]) == {"4", "1"}
    assert smem.endswith("1,536 of 4,096 bytes")
