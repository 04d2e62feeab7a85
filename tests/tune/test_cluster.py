"""A Dask cluster of this machine: a scheduler and two worker processes, one of which is killed in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from tiles import write_tiles
from toy_works import TOYS, toy

from twillgpu.cli import run
from twillgpu.errors import InputError
from twillgpu.tune.drive import Drive
from twillgpu.tune.executors import Cluster
from twillgpu.tune.record import Progress

pytest.importorskip("distributed")
HERE = Path(__file__).parent


@contextmanager
def _dask(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a ``dask`` command that can import this folder's modules, and end it."""
    environment = os.environ | {"PYTHONPATH": str(HERE)}
    command = [sys.executable, "-m", "distributed.cli.dask_" + arguments[0], *arguments[1:]]
    with (folder / f"{arguments[0]}.log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=folder)  # noqa: S603
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Address of a scheduler, and its two workers."""
    file = tmp_path / "scheduler.json"
    place = ("--scheduler-file", str(file), "--no-dashboard")
    with ExitStack() as stack:
        stack.enter_context(_dask(tmp_path, "scheduler", *place, "--host", "127.0.0.1", "--port", "0"))
        one = ("worker", *place, "--nthreads", "1", "--no-nanny", "--host", "127.0.0.1", "--local-directory")
        workers = [stack.enter_context(_dask(tmp_path, *one, str(tmp_path / name))) for name in ("a", "b")]
        yield _address(file), workers


def _address(file: Path) -> str:
    for _ in range(600):
        if file.exists() and file.stat().st_size:
            return str(json.loads(file.read_text(encoding="utf-8"))["address"])
        time.sleep(0.1)
    raise AssertionError("no scheduler")


@pytest.mark.slow
def test_a_worker_that_is_killed_in_the_middle_loses_nothing(
    tmp_path: Path, cluster: tuple[str, list[subprocess.Popen[bytes]]]
) -> None:
    address, workers = cluster
    marks = tmp_path / "marks"
    marks.mkdir()
    tasks = [toy(name, name, name + 10, str(marks)) for name in range(40)]

    def kill(state: Progress) -> None:
        if state.finished >= 10 and workers[0].poll() is None:
            os.kill(workers[0].pid, signal.SIGKILL)
            workers[0].wait()

    outcomes = Drive(tasks, TOYS, best=0, progress=kill).run(lambda: Cluster(address))
    assert workers[0].poll() == -signal.SIGKILL
    assert [one.candidate for one in outcomes] == [task.candidate for task in tasks]
    assert {one.status for one in outcomes} == {"solved"}
    assert [one.microseconds for one in outcomes] == [name + 10 for name in range(40)]
    done = [int(file.name.split(".")[0]) for file in marks.iterdir()]
    assert set(done) == set(range(40))
    assert len({file.name.rpartition(".")[2] for file in marks.iterdir()}) == 2
    assert len(done) - 40 <= 2


@pytest.mark.slow
def test_the_command_on_a_cluster(
    tmp_path: Path, cluster: tuple[str, list[subprocess.Popen[bytes]]], capsys: pytest.CaptureFixture[str]
) -> None:
    template = write_tiles(tmp_path, (64, 128), (128, 128))
    given = ["--space", "BLOCK_M=64,128,192", "BLOCK_N=128", "--grid", "8192 / BLOCK_M", "--trips", "64"]
    assert run(["tune", template, *given, "--cluster", cluster[0], "--exhaustive"]) == 0
    out, err = capsys.readouterr()
    assert "1 declined" in out
    assert "2 solved" in out
    assert err == ""


def test_nobody_at_the_address() -> None:
    with pytest.raises(InputError, match="no scheduler answers"):
        Cluster("tcp://127.0.0.1:1", seconds=1)


def test_what_is_no_address() -> None:
    with pytest.raises(InputError, match="no scheduler answers"):
        Cluster("nowhere:x", seconds=1)
