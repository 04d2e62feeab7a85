"""The flag that rewrites golden files, the fixture that compares with them, and the place of ``bench/``."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

# The scripts of bench/ import each other by their names.
sys.path.insert(0, str(Path(__file__).parent.parent / "bench"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files from what is printed now")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Compare a text with ``golden/<test name>.txt`` beside the test; only ``--update-golden`` rewrites that file."""
    file = Path(request.path).parent / "golden" / f"{request.node.name}.txt"

    def compare(text: str) -> None:
        if request.config.getoption("--update-golden"):
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
        assert file.is_file(), f"no golden file {file.name}: run pytest --update-golden and read what it wrote"
        assert text == file.read_text(encoding="utf-8")

    return compare
