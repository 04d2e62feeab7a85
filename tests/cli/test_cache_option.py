"""``--cache``: commands take the result of the same search from the user's cache, and say so."""

import subprocess
import sys
from pathlib import Path

import pytest
from graphs import FIGURE_1

from twillgpu.cli import run
from twillgpu.store.cache import FILE, Cache
from twillgpu.store.place import VARIABLE

Captured = pytest.CaptureFixture[str]
GEMM = str(Path(__file__).parents[2] / "examples" / "gemm.py")
SAID = "twillgpu: from the cache, found "
NEVER = "twillgpu.api.search"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache folder, empty."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.parametrize("command", ["schedule", "view", "explain"])
def test_a_second_command_does_not_search(
    command: str, folder: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["schedule", str(FIGURE_1), "--cache", "--json"]) == 0
    searched = capsys.readouterr()
    assert searched.err == ""
    monkeypatch.setattr(NEVER, lambda *_: pytest.fail("it was searched again"))
    options = ["--json"] if command == "schedule" else []
    assert run([command, str(FIGURE_1), "--cache", *options]) == 0
    kept = capsys.readouterr()
    assert kept.err.startswith(SAID)
    assert kept.err.endswith("; --no-cache searches anew\n")
    if command == "schedule":
        assert kept.out == searched.out
    assert len(Cache(folder=folder).entries()) == 1


def test_nothing_is_kept_or_taken_unasked(folder: Path, capsys: Captured) -> None:
    assert run(["schedule", str(FIGURE_1)]) == 0
    assert not folder.exists()
    assert run(["schedule", str(FIGURE_1), "--cache"]) == 0
    for options in ([], ["--no-cache"]):
        assert run(["schedule", str(FIGURE_1), *options]) == 0
    assert SAID not in capsys.readouterr().err


def test_another_option_is_another_search(folder: Path, capsys: Captured) -> None:
    assert run(["schedule", str(FIGURE_1), "--cache"]) == 0
    assert run(["schedule", str(FIGURE_1), "--cache", "--stages", "3"]) == 0
    assert run(["schedule", str(FIGURE_1), "--cache", "--concurrency", "paper"]) == 0
    assert capsys.readouterr().err == ""
    assert len(Cache(folder=folder).entries()) == 3


@pytest.mark.triton
def test_simulate_emulate_emit_and_tune_share_results(
    folder: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["simulate", GEMM, "--machine", "h100", "--cache"]) == 0
    capsys.readouterr()
    monkeypatch.setattr(NEVER, lambda *_: pytest.fail("it was searched again"))
    assert run(["emulate", GEMM, "--machine", "h100", "--cache", "--trips", "1", "--no-numbers"]) == 0
    assert run(["emit", GEMM, "--machine", "h100", "--cache"]) == 0
    assert capsys.readouterr().err.count(SAID) == 2
    assert len(Cache(folder=folder).entries()) == 1


@pytest.mark.triton
def test_workers_of_tune_keep_what_they_find(folder: Path, capsys: Captured) -> None:
    arguments = ["tune", GEMM, "--machine", "h100", "--space", "BLOCK_K=64", "--shape", "M=4096", "--shape", "N=4096"]
    arguments += ["--shape", "K=4096", "--grid", "32, 32", "--jobs", "1", "--cache"]
    assert run(arguments) == 0
    assert len(Cache(folder=folder).entries()) == 1
    first = capsys.readouterr().out
    assert run(arguments) == 0
    assert len(Cache(folder=folder).entries()) == 1
    assert first.splitlines()[0] == capsys.readouterr().out.splitlines()[0]


def test_a_broken_file_is_moved_aside_and_said_without_a_traceback(folder: Path) -> None:
    folder.mkdir()
    (folder / FILE).write_text("this is no database, whatever its name says\n" * 100, encoding="utf-8")
    done = subprocess.run(  # noqa: S603  # our own interpreter
        [sys.executable, "-m", "twillgpu", "schedule", str(FIGURE_1), "--cache"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith(f"twillgpu: {folder / FILE}: the cache file is broken (")
    assert len(done.stderr.splitlines()) == 1
    assert list(folder.glob(f"{FILE}.broken-*"))
    assert len(Cache(folder=folder).entries()) == 1
