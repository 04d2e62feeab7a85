"""The commands of README.md and docs/ work as written and print what the documents show."""

import importlib
import inspect
import re
import shutil
from pathlib import Path

import pytest
from console import ROOT, Shown, missing, output, python_blocks, shown

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
WITH_COMMANDS = [document for document in DOCUMENTS if shown(document)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder in which the examples are found as in the project's own, and files may be written."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    return tmp_path


@pytest.mark.triton
@pytest.mark.slow
@pytest.mark.parametrize("document", WITH_COMMANDS, ids=lambda document: document.name)
def test_commands_print_what_the_document_shows(document: Path, folder: Path, request: pytest.FixtureRequest) -> None:
    for command in (command for command in shown(document) if command.runs):
        status, text = output(command.command, folder)
        assert status == 0, f"{command.place}: {text}"
        if request.config.getoption("--update-golden") and "..." not in command.expected and command.expected:
            _rewrite(command, text)
        else:
            assert missing(command.expected, text) is None, f"{command.place}: {text}"


@pytest.mark.triton
@pytest.mark.slow
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_python_blocks_run(document: Path, folder: Path) -> None:
    for index, block in enumerate(python_blocks(document)):
        file = folder / f"block_{index}.py"
        file.write_text(block, encoding="utf-8")
        status, text = output(f"python {file.name}", folder)
        assert status == 0, text


def _rewrite(command: Shown, text: str) -> None:
    document = ROOT / command.document
    before = "\n".join((f"$ {command.command}", *command.expected)) + "\n```"
    after = f"$ {command.command}\n{text.rstrip()}\n```"
    document.write_text(document.read_text(encoding="utf-8").replace(before, after), encoding="utf-8")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_files_that_a_document_names_exist(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    linked = re.findall(r"\]\(([^)#:]+)\)", text)
    named = re.findall(r"`((?:docs|examples|tests|bench|src|\.ci)/[\w./-]+)`", text)
    assert [name for name in linked if not (document.parent / name).exists()] == []
    assert [name for name in named if not (ROOT / name).exists() and not name.startswith("bench/out")] == []


def test_every_page_of_the_documentation_is_in_the_site() -> None:
    pages = {page.name for page in (ROOT / "docs").glob("*.md")}
    site = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert {page for page in pages if f"- {page}\n" not in site} == set()


ENTRIES = re.findall(r"`([\w.]+)\(([^)`]*)\)`", (ROOT / "docs/layout.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("name", "parameters"), ENTRIES, ids=[name for name, _ in ENTRIES])
def test_the_entry_functions_of_the_layout_page_exist(name: str, parameters: str) -> None:
    module, _, last = name.rpartition(".")
    function = getattr(importlib.import_module(f"twillgpu.{module}"), last)
    given = [parameter.strip() for parameter in parameters.split(",") if parameter.strip()]
    assert list(inspect.signature(function).parameters)[: len(given)] == given


@pytest.mark.parametrize(
    ("expected", "actual", "first"),
    [
        (("a", "b"), "a\nb\n", None),
        (("a", "..."), "a\nb\nc\n", None),
        (("...", "c"), "a\nb\nc\n", None),
        (("a", "c"), "a\nb\nc\n", "c"),
        (("a",), "a\nb\n", "more: b"),
        (("took 1.25 s",), "took 0.03 s\n", None),
        ((), "anything\n", None),
    ],
)
def test_the_comparison_itself(expected: tuple[str, ...], actual: str, first: str | None) -> None:
    assert missing(expected, actual) == first
