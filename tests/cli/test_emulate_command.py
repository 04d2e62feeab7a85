"""``twillgpu emulate``: the whole way from a kernel to the verdict, and what users get wrong."""

import json
from pathlib import Path

import pytest
from graphs import FIGURE_1

from twillgpu.cli import run

Captured = pytest.CaptureFixture[str]
GEMM = str(Path(__file__).resolve().parents[2] / "examples" / "gemm.py")


@pytest.mark.triton
def test_an_example_is_sound_and_its_report_says_what_is_proved(capsys: Captured) -> None:
    assert run(["emulate", GEMM, "--machine", "h100", "--trips", "0,2", "--seeds", "1", "--explore"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out.startswith("gemm on h100: sound: nothing is wrong")
    assert "for trips 0; 2: no interleaving has a race, a deadlock or a hazard" in out
    assert "for every trip count: the same" in out
    assert "finds no deadlock" in out
    assert "runs on random numbers give exactly what the reference gives" in out


@pytest.mark.triton
def test_a_schedule_file_and_json(capsys: Captured, tmp_path: Path) -> None:
    assert run(["schedule", GEMM, "--machine", "b200", "--json"]) == 0
    schedule = tmp_path / "gemm.json"
    schedule.write_text(capsys.readouterr().out, encoding="utf-8")
    options = ["--schedule", str(schedule), "--tiles", "2", "--trips", "1,3", "--no-numbers", "--json"]
    assert run(["emulate", GEMM, "--machine", "b200", *options]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "twillgpu-emulation/1"
    assert (document["kernel"], document["machine"]) == ("gemm", "b200")
    report = document["report"]
    assert report["status"] == "sound"
    assert report["checked"] == [[1], [3], [3, 1]]
    assert report["runs"] == 0


def test_a_graph_has_nothing_to_run(capsys: Captured) -> None:
    assert run(["emulate", str(FIGURE_1)]) == 1
    assert "graph JSON has no kernel; give the kernel itself (.py, .ttgir or .mlir)" in capsys.readouterr().err


def test_trips_are_numbers(capsys: Captured) -> None:
    assert run(["emulate", str(FIGURE_1), "--trips", "1,x"]) == 1
    assert "'1,x' is not a list of trip counts such as 0,1,2" in capsys.readouterr().err
