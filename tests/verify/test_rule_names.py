"""One name per rule: the formulation, the verifier and the search's model speak of the same rules."""

from __future__ import annotations

import re
from pathlib import Path

from twillgpu.schedule import model
from twillgpu.verify import RULES

PAGE = Path(__file__).parent.parent.parent / "docs" / "formulation.md"


VERIFIER = Path(__file__).parent.parent.parent / "src" / "twillgpu" / "verify"


def test_the_verifier_knows_nothing_of_the_search_but_its_record() -> None:
    sources = [file.read_text(encoding="utf-8") for file in VERIFIER.glob("*.py")]
    imported = {name for text in sources for name in re.findall(r"twillgpu\.schedule[.\w]*", text)}
    assert imported == {"twillgpu.schedule.record"}


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
