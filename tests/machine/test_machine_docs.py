"""docs/machines.md: its examples load, and it names every rule and figure."""

import json
import re
from pathlib import Path

import pytest

from twillgpu.machine.load import from_mapping, load, names
from twillgpu.machine.schema import FIGURES, LEGALITY_RULES, PRICING_RULES

TEXT = (Path(__file__).parents[2] / "docs" / "machines.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("text", blocks("toml"))
def test_every_machine_file_in_the_page_loads(text: str, tmp_path: Path) -> None:
    file = tmp_path / "page.toml"
    file.write_text(text, encoding="utf-8")
    assert load(str(file)).name == "h100-lab"


@pytest.mark.parametrize("text", blocks("json"))
def test_every_inline_machine_in_the_page_loads(text: str) -> None:
    assert from_mapping(json.loads(text), "page").units


def test_the_page_has_examples_of_both_forms() -> None:
    assert blocks("toml")
    assert blocks("json")


@pytest.mark.parametrize("name", [*PRICING_RULES, *LEGALITY_RULES, *names()])
def test_the_page_names_every_rule_and_machine(name: str) -> None:
    assert f"`{name}`" in TEXT


@pytest.mark.parametrize("path", [rule.path for rule in FIGURES if "*" not in rule.path])
def test_the_page_names_every_figure(path: str) -> None:
    section, figure = path.split(".")
    row = re.search(rf"^\| `{section}` \|.*$", TEXT, re.MULTILINE)
    assert row is not None
    assert f"`{figure}`" in row.group()
