"""The command as a process: pipes, interrupts, encodings, help."""

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from graphs import FIGURE_1, document, write

import twillgpu
from twillgpu.cli import run

COMMAND = [sys.executable, "-m", "twillgpu"]


def _run(*arguments: str, line: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command, or a shell line in which ``"$@"`` stands for it."""
    shell = ["bash", "-c", line, "bash"] if line else []
    return subprocess.run([*shell, *COMMAND, *arguments], capture_output=True, text=True, check=False)  # noqa: S603


def test_version() -> None:
    first, *solvers = _run("--version").stdout.splitlines()
    assert first == f"twillgpu {twillgpu.__version__}"
    assert any(line.startswith("  ortools ") for line in solvers)


def test_no_arguments_and_help_list_the_commands() -> None:
    for arguments in ([], ["--help"], ["-h"]):
        done = _run(*arguments)
        assert done.returncode == 0
        assert all(name in done.stdout for name in ("schedule", "verify", "machines", "Exit status"))


@pytest.mark.parametrize("command", ["schedule", "verify", "machines"])
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command, "--help"]) == 0
    assert f"Usage: twillgpu {command}" in capsys.readouterr().out


def test_help_does_not_load_the_solver() -> None:
    code = "import sys; from twillgpu.cli import run; run(['schedule', '--help']); print('ortools' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.splitlines()[-1] == "False"


def test_a_reader_that_closes_early_is_no_mistake() -> None:
    done = _run("machines", "b200", line='set -o pipefail; "$@" | head -n 1')
    assert (done.returncode, done.stderr) == (0, "")


def test_a_terminal_with_few_characters_gets_escapes(tmp_path: Path) -> None:
    machine = write(tmp_path, 'name = "m"\ntitle = "\u2264 1"\nextends = "toy"\n', "m.toml")
    done = _run("machines", machine, line='PYTHONIOENCODING=latin-1 "$@"')
    assert done.returncode == 0
    assert done.stdout.startswith("m: \\u2264 1\n")


def test_progress_and_answer_do_not_mix() -> None:
    done = _run("schedule", str(FIGURE_1), "--json")
    assert json.loads(done.stdout)["ii_cycles"] == 2
    assert done.stderr == ""


def test_an_interrupt_during_the_search_ends_at_once(tmp_path: Path) -> None:
    terminal, stderr = pty.openpty()
    process = subprocess.Popen(  # noqa: S603
        [*COMMAND, "schedule", write(tmp_path, _hard())], stdout=subprocess.DEVNULL, stderr=stderr
    )
    os.close(stderr)
    shown = os.read(terminal, 200)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == -signal.SIGINT
    assert b" s  " in shown
    os.close(terminal)


def _hard() -> dict[str, Any]:
    """Ops enough, on three units and in three groups, for a search of many seconds."""
    ops = [
        {
            "name": f"v{index}",
            "uses": [{"unit": f"u{index % 3}", "cycles": 2 + 5 * index % 8}],
            "latency_cycles": 5 + 11 * index % 36,
            "result": {"space": "registers", "bytes": 8192, "registers_per_thread": 6 + 7 * index % 19},
        }
        for index in range(48)
    ]
    edges = [
        {"from": f"v{tail}", "to": f"v{index}", "blocking": True}
        for index in range(3, 48)
        for tail in {index * 5 % (index - 1), index - 1}
    ]
    edges += [{"from": f"v{47 - index}", "to": f"v{index}", "distance": 2} for index in range(6)]
    machine = {
        "name": "inline",
        "units": {"u0": 1, "u1": 1, "u2": 1},
        "registers": {"per_thread": 200, "per_sm": 65536},
        "groups": {"max": 3, "warps": [1, 4]},
    }
    return document(name="hard", machine=machine, ops=ops, edges=edges)
