"""``twillgpu simulate``: from a kernel to its time, and what users get wrong."""

import json
from pathlib import Path

import pytest
from graphs import FIGURE_1

from twillgpu.cli import run

Captured = pytest.CaptureFixture[str]
GEMM = str(Path(__file__).resolve().parents[2] / "examples" / "gemm.py")


@pytest.mark.triton
def test_the_report_compares_with_the_interval_and_times_the_launch(capsys: Captured) -> None:
    assert run(["simulate", GEMM, "--machine", "h100", "--set", "K=8192", "--grid", "64,32"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out.startswith("gemm on h100: ")
    for part in (
        "the schedule's interval I is 1,024",
        "+ barrier instructions",
        "Critical chain of an iteration, cycles",
        "tensor held: acc_",
        "Warp groups, cycles per iteration",
        "Utilisation tensor",
        "2,048 blocks of 128 iterations on 132 SMs: 16 waves",
        "TFLOP/s by the simulation",
    ):
        assert part in out


@pytest.mark.triton
def test_a_schedule_file_latencies_and_json(capsys: Captured, tmp_path: Path) -> None:
    assert run(["schedule", GEMM, "--machine", "b200", "--json"]) == 0
    schedule = tmp_path / "gemm.json"
    schedule.write_text(capsys.readouterr().out, encoding="utf-8")
    given = ["simulate", GEMM, "--machine", "b200", "--schedule", str(schedule), "--json"]
    documents = []
    for more in ([], ["--tma-latency", "3000"], ["--tma-latency", "heavy", "--seed", "2", "--trips", "20"]):
        assert run([*given, *more]) == 0
        documents.append(json.loads(capsys.readouterr().out))
    usual, slow, random = documents
    assert usual["schema"] == "twillgpu-simulation/1"
    assert (usual["kernel"], usual["machine"], usual["time"]) == ("gemm", "b200", None)
    assert usual["steady"]["period"] > 0
    assert slow["steady"]["cycles"] > usual["steady"]["cycles"]
    assert random["options"]["latency"]["kind"] == "heavy"
    assert (random["time"]["trips"], random["time"]["blocks"]) == (20, 148)
    first = random["events"][0]
    assert {"group", "op", "kind", "iteration", "start_cycle", "end_cycle", "unit", "stall"} <= set(first)


@pytest.mark.triton
def test_without_a_trip_count_the_report_says_how_to_give_one(capsys: Captured, tmp_path: Path) -> None:
    file = tmp_path / "report.txt"
    assert run(["simulate", GEMM, "--machine", "h100", "-o", str(file)]) == 0
    assert "give --trips N, or --set NAME=VALUE" in file.read_text(encoding="utf-8")
    assert run(["simulate", GEMM, "--machine", "h100", "-o", str(file)]) == 1
    assert "the file exists" in capsys.readouterr().err


def test_a_graph_has_nothing_to_simulate(capsys: Captured) -> None:
    assert run(["simulate", str(FIGURE_1)]) == 1
    assert "graph JSON has no kernel; give the kernel itself (.py, .ttgir or .mlir)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--tma-latency", "slow"], "'slow' is none of fixed, uniform, heavy, and no number of cycles"),
        (["--grid", "4,x"], "'4,x' is no grid such as 64,128"),
        (["--set", "K"], "'K' is not NAME=VALUE with a whole number"),
        (["--grid", "4", "--blocks", "4"], "--grid: it says what --blocks says; leave one of them out"),
        (["--set", "K=1", "--trips", "4"], "the trip count is already given by --trips"),
        (["--reuse", "0.5"], "0.5 is not in the range"),
    ],
)
def test_mistakes_in_options(capsys: Captured, options: list[str], message: str) -> None:
    assert run(["simulate", GEMM, "--machine", "h100", *options]) == 1
    assert message in capsys.readouterr().err


@pytest.mark.triton
def test_an_argument_that_the_kernel_does_not_have(capsys: Captured) -> None:
    assert run(["simulate", GEMM, "--machine", "h100", "--set", "N=64"]) == 1
    assert "--set N: kernel gemm has no such argument" in capsys.readouterr().err
