"""``-o FILE``: what a user made is never overwritten unasked."""

import json
from pathlib import Path

import pytest
from graphs import FIGURE_1

from twillgpu.cli import run

Captured = pytest.CaptureFixture[str]


def test_the_answer_goes_to_the_file_only(capsys: Captured, tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    assert run(["schedule", str(FIGURE_1), "--json", "-o", str(file)]) == 0
    assert json.loads(file.read_text(encoding="utf-8"))["ii_cycles"] == 2
    assert capsys.readouterr() == ("", "")


def test_an_existing_file_is_left_alone_without_force(capsys: Captured, tmp_path: Path) -> None:
    file = tmp_path / "mine.txt"
    file.write_text("mine", encoding="utf-8")
    assert run(["machines", "-o", str(file)]) == 1
    assert file.read_text(encoding="utf-8") == "mine"
    assert capsys.readouterr().err == (
        f"twillgpu: -o {file}: the file exists; name another file, or add --force to overwrite it\n"
    )
    assert run(["machines", "-o", str(file), "--force"]) == 0
    assert "h100" in file.read_text(encoding="utf-8")


def test_a_folder_is_no_file(capsys: Captured, tmp_path: Path) -> None:
    assert run(["machines", "-o", str(tmp_path)]) == 1
    assert f"-o {tmp_path}: is a directory; name a file in it" in capsys.readouterr().err


def test_a_missing_folder_is_named(capsys: Captured, tmp_path: Path) -> None:
    assert run(["machines", "-o", str(tmp_path / "no" / "x")]) == 1
    assert f"there is no folder {tmp_path / 'no'}; create it first" in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_a_message(capsys: Captured) -> None:
    assert run(["machines", "-o", "/proc/self/nothing"]) == 1
    assert "cannot be written" in capsys.readouterr().err
