"""``--emit program`` and ``--emit pipelined-ir``: what they print, and what reads it."""

import json
from pathlib import Path

import pytest
from graphs import FIGURE_1, REGISTER_LIMITED, document, write

from twillgpu.cli import run
from twillgpu.lower.text import print_program
from twillgpu.lower.text_read import read_program

Captured = pytest.CaptureFixture[str]
GEMM = str(Path(__file__).resolve().parents[2] / "examples" / "gemm.py")


@pytest.mark.triton
def test_a_program_is_printed_read_back_and_emulated(capsys: Captured, tmp_path: Path) -> None:
    assert run(["schedule", GEMM, "--machine", "b200", "--emit", "program"]) == 0
    text = capsys.readouterr().out
    assert print_program(read_program(text)) == text
    file = tmp_path / "gemm.program"
    file.write_text(text, encoding="utf-8")
    assert run(["emulate", str(file), "--trips", "2", "--no-numbers"]) == 0
    assert capsys.readouterr().out.startswith("gemm on b200: sound")
    broken = text.replace("    wait load_a.full[t]\n", "")
    assert broken != text
    file.write_text(broken, encoding="utf-8")
    assert run(["emulate", str(file), "--trips", "2", "--no-numbers"]) == 1
    assert "gemm on b200: unsafe" in capsys.readouterr().out


@pytest.mark.triton
def test_programs_as_json_say_what_every_instruction_does(capsys: Captured) -> None:
    assert run(["schedule", GEMM, "--machine", "h100", "--emit", "program", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["schema"], found["machine"], found["persistent"]) == ("twillgpu-program/1", "h100", False)
    load = next(group for group in found["groups"] if group["name"] == "load")
    assert {one["do"] for one in load["loop"]} >= {"wait", "expect", "execute"}


@pytest.mark.triton
def test_a_kernels_pipelined_loop_has_members_rings_and_barriers(capsys: Captured) -> None:
    assert run(["schedule", GEMM, "--machine", "h100", "--emit", "pipelined-ir", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "twillgpu-pipelined/1"
    load = next(op for op in found["ops"] if op["name"] == "load_a")
    assert (load["kind"], load["members"][-1]) == ("tma_load", "a_local_alloc")
    assert found["groups"][load["group"]]["name"] == "load"
    assert sorted(op["order"] for op in found["ops"]) == list(range(len(found["ops"])))
    assert any("load_a -> acc_1 (data, 0)" in barrier["serves"] for barrier in found["barriers"])
    assert {ring["name"] for ring in found["rings"]} >= {"load_a", "load_b"}


def test_the_pipelined_loop_of_a_graph(capsys: Captured) -> None:
    """Figure 1 of the paper: one op of three waits in stage 1."""
    assert run(["schedule", str(FIGURE_1), "--emit", "pipelined-ir"]) == 0
    lines = capsys.readouterr().out.splitlines()
    start, end = lines.index("for t in range(1, trips)"), lines.index("epilogue")
    ops = [line.split("[")[0].strip() for line in lines[start + 1 : end]]
    early = lines[lines.index("prologue") + 1 : start]
    late = lines[end + 1 :]
    assert len(early) + len(late) == len(ops) == len(set(ops))
    assert all("[0] = " in line and " stage 0 " in line for line in early)
    assert all("[trips-1] = " in line and " stage 1 " in line for line in late)


def test_the_pipelined_loop_of_a_graph_as_json(capsys: Captured) -> None:
    assert run(["schedule", str(FIGURE_1), "--emit", "pipelined-ir", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["rings"], found["barriers"], found["ii_cycles"]) == (None, None, 2)
    assert all(op["stage"] == op["start_cycle"] // 2 and op["slot"] == op["start_cycle"] % 2 for op in found["ops"])


def test_ops_that_start_together_are_in_the_order_of_their_dependences(capsys: Captured, tmp_path: Path) -> None:
    free = [{"name": name, "latency_cycles": 0} for name in ("z", "a", "m")]
    edges = [{"from": "z", "to": "m"}, {"from": "m", "to": "a"}]
    graph = write(tmp_path, document(ops=free, edges=edges))
    assert run(["schedule", graph, "--emit", "pipelined-ir", "--json"]) == 0
    places = {op["name"]: op["order"] for op in json.loads(capsys.readouterr().out)["ops"]}
    assert places == {"z": 0, "m": 1, "a": 2}


def test_a_graph_has_no_program(capsys: Captured) -> None:
    assert run(["schedule", str(FIGURE_1), "--emit", "program"]) == 1
    assert "graph JSON has no kernel; give the kernel itself (.py, .ttgir or .mlir)" in capsys.readouterr().err


@pytest.mark.parametrize("stage", ["program", "pipelined-ir"])
def test_nothing_is_printed_where_there_is_no_schedule(capsys: Captured, stage: str) -> None:
    status = run(["schedule", str(REGISTER_LIMITED), "--stages", "1", "--registers", "40", "--emit", stage])
    out, err = capsys.readouterr()
    assert (status, out) == (2, "")
    assert "no schedule of at most 1 stage exists at any interval; twillgpu explain says why" in err


def test_a_file_that_is_no_program_is_an_error_with_its_line(capsys: Captured, tmp_path: Path) -> None:
    file = tmp_path / "x.program"
    file.write_text("program x\nmachine h100\ninterval soon\n", encoding="utf-8")
    assert run(["emulate", str(file)]) == 1
    assert f"{file}:3: expected a number, found 'soon'" in capsys.readouterr().err


def test_options_that_a_program_has_no_use_for(capsys: Captured, tmp_path: Path) -> None:
    file = tmp_path / "x.program"
    file.write_text("program x\n", encoding="utf-8")
    assert run(["emulate", str(file), "--schedule", "x.json"]) == 1
    assert "is a program already" in capsys.readouterr().err
