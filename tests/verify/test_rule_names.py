"""One name per rule: the formulation, the verifier and the search's model speak of the same rules."""

from __future__ import annotations

import re
from pathlib import Path

from twillgpu.schedule import model
from twillgpu.verify import RULES

PAGE = Path(__file__).parent.parent.parent / "docs" / "formulation.md"


def documented() -> list[str]:
    """Return the first column of the table below the heading ``Rules``."""
    section = PAGE.read_text(encoding="utf-8").split("\n## Rules\n")[1].split("\n#")[0]
    return re.findall(r"^\| `(\w+)` \|", section, flags=re.MULTILINE)


def test_the_page_and_the_verifier_name_the_same_rules() -> None:
    names = [rule.__name__ for rule in RULES]
    assert len(names) == 12
    assert names == documented()


def test_the_page_and_the_model_name_the_same_rules() -> None:
    names = [name for name, _ in model.RULES]
    assert sorted(names) == sorted(documented())
