"""Colours and patterns of pictures: distinguishable by colour-blind people, and never the only mark of anything.

The colours are those of Okabe and Ito, "Color Universal Design" (2008), save for the two on which black letters are
hard to read.
"""

from __future__ import annotations

COLOURS = ("#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#f0e442", "#d55e00")
"""Sky blue, orange, bluish green, reddish purple, yellow, vermillion: black letters have a contrast of at least 5."""
HATCHES = ("", "//", "..", "\\\\", "xx", "++")
"""Patterns of matplotlib, one for each colour."""
INK = "#000000"
NEUTRAL = "#cccccc"
"""What belongs to no iteration: waits, stalls, work outside the loop."""
CRITICAL = "#d55e00"
ANSI = (36, 33, 32, 35, 34, 31)
"""The terminal's colours (SGR) in the order of ``COLOURS``: cyan, yellow, green, magenta, blue, red."""


def colour(index: int) -> str:
    """Return the colour of an iteration or a group; they come round again. Below 0: neutral."""
    return COLOURS[index % len(COLOURS)] if index >= 0 else NEUTRAL


def hatch(index: int) -> str:
    """Return the pattern that goes with the colour."""
    return HATCHES[index % len(HATCHES)] if index >= 0 else ""
