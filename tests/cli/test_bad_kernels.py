"""Bad Python sources and launches: one message with place and remedy, status 1, no traceback."""

from pathlib import Path

import pytest
from graphs import write

from twillgpu.cli import run

pytestmark = pytest.mark.triton

Captured = pytest.CaptureFixture[str]
HEAD = "import triton\nimport triton.language as tl\n\n"
COPY = (
    HEAD
    + """@triton.jit
def copy(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    for i in range(0, n, BLOCK):
        tl.store(y + i + at, tl.load(x + i + at) * 2.0)
"""
)
LAUNCH = ["--arg", "x=*fp32", "--arg", "y=*fp32", "--arg", "n=i32", "--const", "BLOCK=1024"]


def complaint(capsys: Captured, folder: Path, text: str, *options: str) -> str:
    """Run a command that must fail as a user's mistake, and return its one message."""
    assert run(["schedule", write(folder, text, "kernel.py"), "--machine", "h100", *options]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("twillgpu: ")
    assert err.count("\n") == 1, err
    return err.removeprefix("twillgpu: ").rstrip("\n")


def test_a_launch_on_the_command_line_is_enough(capsys: Captured, tmp_path: Path) -> None:
    assert (
        run(["schedule", write(tmp_path, COPY, "kernel.py"), "--machine", "h100", *LAUNCH, "--emit", "kernel"]) == 0
    )
    assert "kernel.py:7" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def f(:\n", "kernel.py:1: this is not Python"),
        ("x = 1\n1 / 0\n", "kernel.py:2: importing the file raised ZeroDivisionError: division by zero"),
        ("x = 1\n", "kernel.py: "),
        (
            COPY + COPY.removeprefix(HEAD).replace("copy", "again"),
            "several kernels: copy (kernel.py:5), again (kernel.py:10)",
        ),
        (COPY.replace("    for i in range(0, n, BLOCK):\n        ", "    i = 0\n    "), "loop"),
        (COPY + COPY.split("\n", 6)[6].replace("BLOCK):", "BLOCK): # second"), "loop"),
        (COPY.replace("* 2.0", "* missing"), "kernel.py:8: Triton rejects the kernel"),
    ],
    ids=["not_python", "error_inside", "no_kernel", "several_kernels", "no_loop", "two_loops", "rejected"],
)
def test_a_file_that_cannot_be_scheduled(capsys: Captured, tmp_path: Path, text: str, message: str) -> None:
    assert message in complaint(capsys, tmp_path, text, *LAUNCH)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([*LAUNCH, "--arg", "z=*fp32"], "'z'"),
        (["--arg", "x=*fp33", *LAUNCH[2:]], "unknown argument type 'fp33'"),
        (LAUNCH[:-2], "BLOCK"),
        (LAUNCH[2:], "x"),
        ([*LAUNCH, "--arg", "x"], "--arg x: this is not an assignment; write --arg NAME=TYPE"),
        ([*LAUNCH, "--kernel", "cpy"], "did you mean 'copy'?"),
        ([*LAUNCH, "--num-warps", "3"], "--num-warps: 3 warps; use a power of two from 1 to 32"),
        ([*LAUNCH, "--config", "2"], "--config"),
        ([*LAUNCH, "--loop", "2"], "loop"),
    ],
    ids=[
        "unknown_argument",
        "unknown_type",
        "missing_constexpr",
        "missing_argument",
        "no_assignment",
        "unknown_kernel",
        "warps",
        "config",
        "loop",
    ],
)
def test_a_launch_that_cannot_be(capsys: Captured, tmp_path: Path, options: list[str], message: str) -> None:
    assert message in complaint(capsys, tmp_path, COPY, *options)


def test_a_machine_without_arch_takes_no_kernel(capsys: Captured, tmp_path: Path) -> None:
    message = complaint(capsys, tmp_path, COPY, *LAUNCH, "--machine", "toy")
    assert message == "machine toy: it has no arch to compile a kernel for; choose another, or give graph JSON"


def test_no_machine(capsys: Captured, tmp_path: Path) -> None:
    assert run(["schedule", write(tmp_path, COPY, "kernel.py")]) == 1
    assert "--machine: no machine is given; use one of" in capsys.readouterr().err


def test_options_of_kernels_mean_nothing_to_a_graph(capsys: Captured, tmp_path: Path) -> None:
    assert run(["schedule", write(tmp_path, "{}", "graph.json"), "--machine", "toy", "--loop", "1"]) == 1
    assert "these are for kernels, and the source is graph JSON" in capsys.readouterr().err
