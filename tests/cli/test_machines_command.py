"""``twillgpu machines``."""

import json
from pathlib import Path

import pytest
from graphs import write

from twillgpu.cli import run
from twillgpu.machine.load import from_mapping, load, names

Captured = pytest.CaptureFixture[str]


def test_the_list_names_every_machine(capsys: Captured) -> None:
    assert run(["machines"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[0] for line in lines if line[2] != " "} == {"machine", *names()}


@pytest.mark.parametrize("name", ["h100", "b200"])
def test_one_machine_shows_its_figures_and_flags_guesses(capsys: Captured, name: str) -> None:
    assert run(["machines", name]) == 0
    out = capsys.readouterr().out
    assert "clock_mhz" in out
    assert "G guess" in out
    assert "figures are guesses" in out


def test_json_reads_back_to_the_same_machine(capsys: Captured) -> None:
    assert run(["machines", "b200", "--json"]) == 0
    assert from_mapping(json.loads(capsys.readouterr().out), "out") == load("b200")


def test_the_list_as_json(capsys: Captured) -> None:
    assert run(["machines", "--json"]) == 0
    assert [entry["name"] for entry in json.loads(capsys.readouterr().out)["machines"]] == list(names())


def test_a_machine_file_can_be_shown(capsys: Captured, tmp_path: Path) -> None:
    file = write(tmp_path, 'name = "mine"\nextends = "h100"\n', "mine.toml")
    assert run(["machines", file]) == 0
    assert capsys.readouterr().out.startswith("mine: ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name = \n", "mine.toml:1: not valid TOML"),
        ('name = "m"\n[units]\nalu = {value=1, unit="instances", confidence="V"}\n', "units.alu"),
        ('name = "m"\nextends = "h1000"\n', "did you mean 'h100'?"),
    ],
)
def test_a_bad_machine_file_is_a_message(capsys: Captured, tmp_path: Path, text: str, message: str) -> None:
    assert run(["machines", write(tmp_path, text, "mine.toml")]) == 1
    assert message in capsys.readouterr().err


def test_an_unknown_machine_has_a_nearest_name(capsys: Captured) -> None:
    assert run(["machines", "h10"]) == 1
    assert "no such machine; did you mean 'h100'?" in capsys.readouterr().err
