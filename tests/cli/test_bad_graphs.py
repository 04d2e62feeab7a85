"""Bad graph files and limits: one message with place and remedy, status 1, no traceback."""

from pathlib import Path
from typing import Any

import pytest
from graphs import REGISTER_LIMITED, document, write

from twillgpu.cli import run

Captured = pytest.CaptureFixture[str]
LOAD = {"name": "load", "uses": [{"unit": "alu", "cycles": 1}], "latency_cycles": 1}


def complaint(capsys: Captured, arguments: list[str]) -> str:
    """Run a command that must fail as a user's mistake, and return its one message."""
    assert run(arguments) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("twillgpu: ")
    assert err.count("\n") == 1
    return err.removeprefix("twillgpu: ").rstrip("\n")


def test_missing_file(capsys: Captured) -> None:
    assert complaint(capsys, ["schedule", "no.json"]) == "no.json: no such file; check the path"


def test_directory(capsys: Captured, tmp_path: Path) -> None:
    assert complaint(capsys, ["schedule", str(tmp_path)]) == f"{tmp_path}: is a directory; name a file in it"


def test_empty_file(capsys: Captured, tmp_path: Path) -> None:
    file = write(tmp_path, " \n")
    assert complaint(capsys, ["schedule", file]).startswith(f"{file}: the file is empty; give a JSON document")


def test_file_that_is_not_text(capsys: Captured, tmp_path: Path) -> None:
    file = tmp_path / "binary.json"
    file.write_bytes(b"\x7fELF\xff\xfe")
    assert complaint(capsys, ["schedule", str(file)]).startswith(f"{file}: is not UTF-8 text (byte 4)")


def test_name_that_no_file_can_have(capsys: Captured) -> None:
    assert "no file can have this name" in complaint(capsys, ["schedule", "x" * 5000 + ".json"])


def test_no_machine(capsys: Captured, tmp_path: Path) -> None:
    file = write(tmp_path, document(machine=None))
    assert complaint(capsys, ["schedule", file]).startswith("--machine: no machine is given; use one of a100, b200")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema": "twillgpu-graph/2"}, "schema: this reader knows 'twillgpu-graph/1'"),
        ({"opps": []}, "opps: unknown key \"opps\"; did you mean 'ops'?"),
        ({"ops": []}, "ops: "),
        ({"ops": [LOAD, LOAD]}, "ops[1].name: "),
        ({"ops": [LOAD | {"latency_cycles": -1}], "edges": []}, "ops[0].latency_cycles: "),
        ({"ops": [LOAD | {"latency_cycles": 1.5}], "edges": []}, "ops[0].latency_cycles: expected an integer"),
        ({"ops": [LOAD | {"uses": [{"unit": "alo", "cycles": 1}]}], "edges": []}, "'alo'; did you mean 'alu'?"),
        ({"edges": [{"from": "a", "to": "c"}]}, "edges[0].to: "),
        ({"edges": [{"from": "a", "to": "b", "kind": "dta"}]}, "edges[0].kind: "),
        ({"edges": [{"from": "a", "to": "b"}, {"from": "b", "to": "a"}]}, "a -> b make a cycle"),
        ({"machine": "h10"}, "no such machine; did you mean 'h100'?"),
        ({"machine": {"name": "x", "units": {"alu": 0}}}, "machine.units.alu: "),
        ({"machine": {"name": "x", "unit": {"alu": 1}}}, "machine.unit"),
    ],
)
def test_malformed_graph(capsys: Captured, tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    assert message in complaint(capsys, ["schedule", write(tmp_path, document(**changes))])


@pytest.mark.parametrize("text", ["{", "[1, 2]", "nonsense", '{"schema": NaN}', "[" * 100_000, '{"a": 1, "a": 2}'])
def test_text_that_is_no_graph(capsys: Captured, tmp_path: Path, text: str) -> None:
    complaint(capsys, ["schedule", write(tmp_path, text)])


def test_value_bigger_than_any_memory(capsys: Captured, tmp_path: Path) -> None:
    big = LOAD | {"result": {"space": "smem", "bytes": 300_000}}
    machine = {"name": "x", "units": {"alu": 1}, "memories": {"smem": 232_448}}
    message = complaint(capsys, ["schedule", write(tmp_path, document(ops=[big], edges=[], machine=machine))])
    assert "op load" in message
    assert "300,000" in message.replace("300000", "300,000")


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--warps", "33", "--warps: 33 is out of range: there are at most 32 warps in a block"),
        ("--registers", "300", "--registers: 300 is out of range: a thread has 24 to 64 registers"),
        ("--registers", "39", "op A: its value needs 40 registers in each thread of 4 warps"),
        ("--max-groups", "2", "--max-groups: 2 is out of range"),
        ("--machine", "h10", "machine 'h10': no such machine; did you mean 'h100'?"),
        ("--machine", "none.toml", "none.toml: no such machine file"),
        ("--warps", "0", "Invalid value for '--warps': 0 is not in the range x>=1; see twillgpu schedule --help"),
        ("--stages", "many", "Invalid value for '--stages': 'many' is not a valid integer"),
        ("--lift", "nothing", "no legality rule 'nothing'"),
        ("--concurrency", "none", "'none' is not one of 'issue', 'paper'"),
        ("--emit", "everything", "'everything' is not one of"),
        ("--time-limit", "0", "0.0 is not in the range x>0"),
    ],
)
def test_impossible_option(capsys: Captured, option: str, value: str, message: str) -> None:
    assert message in complaint(capsys, ["schedule", str(REGISTER_LIMITED), option, value])


def test_no_source(capsys: Captured) -> None:
    assert complaint(capsys, ["schedule"]) == "Missing argument 'SOURCE'; see twillgpu schedule --help"


def test_unknown_command_and_option(capsys: Captured) -> None:
    assert complaint(capsys, ["shedule"]) == "No such command 'shedule'; see twillgpu --help"
    assert "No such option" in complaint(capsys, ["schedule", "--sed"])
