"""``twillgpu tune``: from options to a ranking, interrupts, and what users get wrong."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from graphs import write

from twillgpu.cli import run

Captured = pytest.CaptureFixture[str]
GEMM = str(Path(__file__).resolve().parents[2] / "examples" / "gemm.py")


def _tile(folder: Path, rows: int, **changes: Any) -> None:
    cycles = rows * 8
    ops = [
        {"name": "load", "uses": [{"unit": "tma", "cycles": 64}], "latency_cycles": 600},
        {"name": "product", "uses": [{"unit": "tensor", "cycles": cycles}], "latency_cycles": cycles + 30},
    ]
    base: dict[str, Any] = {
        "schema": "twillgpu-graph/1",
        "name": f"tile_{rows}",
        "machine": "h100",
        "ops": ops,
        "edges": [{"from": "load", "to": "product"}],
    }
    write(folder, base | changes, f"tile_{rows}.json")


@pytest.fixture
def tiles(tmp_path: Path) -> list[str]:
    """A space of three tiles, of which two have a file; 192 rows leave SMs idle in the last wave."""
    for rows in (64, 192):
        _tile(tmp_path, rows)
    source = str(tmp_path / "tile_{BLOCK_M}.json")
    given = ["--space", "BLOCK_M=64,128,192", "--shape", "M=33792", "--trips", "32", "--jobs", "1"]
    return ["tune", source, *given, "--grid", "cdiv(M, BLOCK_M)"]


def test_table_csv_and_json_of_one_journal(capsys: Captured, tiles: list[str], tmp_path: Path) -> None:
    given = [*tiles, "--journal", str(tmp_path / "journal"), "--exhaustive"]
    assert run(given) == 0
    out = capsys.readouterr()
    assert out.err == ""
    words = " ".join(out.out.split())
    assert "3 candidates 2 solved, 1 declined" in words
    assert "best: BLOCK_M=64" in words
    assert "no such file" in words
    assert run([*given, "--csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(row["rank"], row["BLOCK_M"], row["status"]) for row in rows] == [
        ("1", "64", "solved"),
        ("2", "192", "solved"),
        ("", "128", "declined"),
    ]
    file = tmp_path / "out.json"
    assert run([*given, "--json", "-o", str(file)]) == 0
    document = json.loads(file.read_text(encoding="utf-8"))
    assert document["from_journal"] == 3
    assert [outcome["waves"] for outcome in document["outcomes"]] == [4, 2, None]


@pytest.mark.triton
def test_a_kernel_with_axes_one_after_the_other(capsys: Captured) -> None:
    sizes = ["--shape", "K=1024", "--shape", "M=2048", "--shape", "N=2048"]
    axes = ["--space", "BLOCK_M=96,128", "BLOCK_N=128"]
    assert run(["tune", GEMM, "--machine", "h100", *axes, *sizes, "--grid", "cdiv(M,BLOCK_M), N/BLOCK_N"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "best: BLOCK_M=128 BLOCK_N=128" in out
    assert "declined gemm.py:19: Triton rejects the launch" in out
    assert "must be a power of 2" in out


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--grid", "M // BLOCK_K"], "BLOCK_K in 'M // BLOCK_K' is neither an axis, a size nor a constant"),
        (["--grid", "M; import os"], "--grid: 'M; import os' is no arithmetic"),
        (["--where", "open('x')"], "is more than arithmetic"),
        (["--space", "BLOCK_M=1"], "the axis is given twice"),
        (["BLOCK_N"], "this is no axis"),
        (["--shape", "M=1"], "M is given twice"),
        (["--shape", "N=-1"], "'N=-1' is not NAME=VALUE with a whole number"),
        (["--json", "--csv"], "--json is given as well"),
        (["--restart"], "there is no journal"),
        (["--trips", "0"], "every candidate fails: 0 is 0, not a positive whole number"),
        (["--cluster", "tcp://127.0.0.1:1"], "leave it out"),
    ],
)
def test_mistakes_have_one_message(capsys: Captured, tiles: list[str], more: list[str], message: str) -> None:
    assert run([*tiles, *more]) == 1
    err = capsys.readouterr().err
    assert message in err
    assert len(err.splitlines()) == 1


def test_another_file_as_journal_is_refused_and_left_alone(
    capsys: Captured, tiles: list[str], tmp_path: Path
) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("mine\n", encoding="utf-8")
    assert run([*tiles, "--journal", str(notes)]) == 1
    assert "the file is no journal" in capsys.readouterr().err
    assert notes.read_text(encoding="utf-8") == "mine\n"


def test_a_space_without_a_schedule_is_status_2(capsys: Captured, tmp_path: Path) -> None:
    half = {
        "uses": [{"unit": "tma", "cycles": 64}],
        "latency_cycles": 600,
        "result": {"space": "smem", "bytes": 120000},
    }
    product = {"name": "product", "uses": [{"unit": "tensor", "cycles": 64}], "latency_cycles": 64}
    edges = [{"from": name, "to": "product"} for name in ("a", "b")]
    _tile(tmp_path, 64, ops=[half | {"name": "a"}, half | {"name": "b"}, product], edges=edges)
    source = str(tmp_path / "tile_64.json")
    assert run(["tune", source, "--space", "groups=1,2", "--grid", "132", "--trips", "4", "--jobs", "1"]) == 2
    out = capsys.readouterr().out
    assert "no candidate has a schedule" in out
    assert "2 infeasible" in out


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupt_or_a_crash_ends_the_workers_and_keeps_the_journal(
    tiles: list[str], tmp_path: Path, how: signal.Signals
) -> None:
    journal = tmp_path / "journal"
    given = [*tiles, "--journal", str(journal)]
    process = subprocess.Popen(  # noqa: S603  # our own interpreter and options
        [sys.executable, "-m", "twillgpu", *given], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    deadline = time.monotonic() + 60
    while not journal.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, how)
    _, err = process.communicate(timeout=60)
    assert process.returncode in (0, 130 if how == signal.SIGINT else -how)
    if how == signal.SIGINT:
        assert "Traceback" not in err, err
    assert run([*given, "-o", str(tmp_path / "out.txt")]) == 0
    assert _gone(process.pid)


def _gone(group: int) -> bool:
    """Whether all processes of a group end within seconds."""
    for _ in range(200):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    os.killpg(group, signal.SIGKILL)
    return False
