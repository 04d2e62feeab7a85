"""Every command that takes a schedule takes it in the same way, and says the same of what is wrong with it."""

import json
from pathlib import Path

import pytest
from graphs import FIGURE_1, REGISTER_LIMITED

from twillgpu.cli import run

Captured = pytest.CaptureFixture[str]
GEMM = str(Path(__file__).parents[2] / "examples" / "gemm.py")
COMMANDS = ["emulate", "simulate", "view", "emit"]
NO_KERNEL = "graph JSON has no kernel; give the kernel itself (.py, .ttgir or .mlir)"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The schedule of GEMM on one chip, as a file."""
    file = tmp_path_factory.mktemp("schedules") / "gemm.json"
    assert run(["schedule", GEMM, "--machine", "h100", "--json", "-o", str(file)]) == 0
    return file


def changed(file: Path, folder: Path, **entries: object) -> str:
    """Write the document with other entries, ops at one start; return the file."""
    document = json.loads(file.read_text(encoding="utf-8"))
    for op in document["ops"]:
        op.update(start_cycle=0, stage=0, slot=0)
    for key in ("stages", "length_cycles"):
        document.pop(key, None)
    document.update(entries)
    other = folder / "changed.json"
    other.write_text(json.dumps(document), encoding="utf-8")
    return str(other)


@pytest.mark.triton
@pytest.mark.parametrize("command", COMMANDS)
def test_a_schedule_that_breaks_rules_is_refused_with_the_first_of_them(
    command: str, found: Path, tmp_path: Path, capsys: Captured
) -> None:
    file = changed(found, tmp_path)
    assert run([command, GEMM, "--machine", "h100", "--schedule", file]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"twillgpu: {file}: the schedule has ")
    assert " violations, first " in err
    assert err.endswith("; twillgpu verify lists them; leave the schedule out to search anew\n")


@pytest.mark.triton
@pytest.mark.parametrize("command", ["simulate", "view"])
def test_a_schedule_of_another_graph_is_doubted_on_standard_error(
    command: str, found: Path, tmp_path: Path, capsys: Captured
) -> None:
    document = json.loads(found.read_text(encoding="utf-8"))
    other = {"problem_sha256": "0" * 64, "graph_sha256": "1" * 64}
    file = tmp_path / "other.json"
    file.write_text(json.dumps(document | other), encoding="utf-8")
    assert run([command, GEMM, "--machine", "h100", "--schedule", str(file)]) == 0
    said = f"twillgpu: {file}: the schedule was made for another graph: sha256 111111111111..."
    assert capsys.readouterr().err.startswith(said)


@pytest.mark.parametrize("command", ["emulate", "simulate", "emit"])
def test_commands_that_need_a_kernel_refuse_graphs_before_they_search(command: str, capsys: Captured) -> None:
    assert run([command, str(FIGURE_1)]) == 1
    assert capsys.readouterr().err == f"twillgpu: {FIGURE_1}: {NO_KERNEL}\n"


@pytest.mark.parametrize("command", ["emulate", "simulate", "view", "emit", "verify"])
def test_a_file_that_is_no_schedule_is_refused_by_its_schema(command: str, capsys: Captured) -> None:
    options = [str(FIGURE_1)] if command == "verify" else ["--schedule", str(FIGURE_1)]
    assert run([command, str(FIGURE_1), *options]) == 1
    assert "schema: this reader knows 'twillgpu-schedule/1', not 'twillgpu-graph/1'" in capsys.readouterr().err


@pytest.mark.triton
@pytest.mark.parametrize("command", COMMANDS)
def test_a_proof_that_nothing_exists_is_status_2_in_every_command(command: str, capsys: Captured) -> None:
    """simulate and emulate gave 2 for a limit that was reached as well."""
    assert run([command, GEMM, "--machine", "h100", "--max-groups", "1", "--variable-latency", "iff"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"twillgpu: {GEMM}: no schedule of at most ")
    assert err.endswith(" exists at any interval; twillgpu explain says why\n")


def test_a_limit_names_what_to_raise(capsys: Captured) -> None:
    arguments = ["view", str(REGISTER_LIMITED), "--time-limit", "0.000001"]
    assert run(arguments) == 3
    said = capsys.readouterr().err
    assert "no schedule was found, stopped at the time limit of " in said
    assert said.endswith("; twillgpu explain says what is proved\n")
