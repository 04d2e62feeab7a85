"""``twillgpu emulate --gluon``: an emitted file against the kernel that it was made from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from twillgpu.cli import run

pytestmark = pytest.mark.triton

Captured = pytest.CaptureFixture[str]
GEMM = str(Path(__file__).resolve().parents[2] / "examples" / "gemm.py")


@pytest.fixture(scope="module")
def emitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("emitted") / "gemm_h100.py"
    assert run(["emit", GEMM, "--machine", "h100", "-o", str(path)]) == 0
    return path


def test_an_emitted_file_is_sound(emitted: Path, capsys: Captured) -> None:
    assert run(["emulate", GEMM, "--machine", "h100", "--gluon", str(emitted), "--trips", "0,3", "--seeds", "1"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "gemm_h100.py on h100: sound: nothing is wrong" in out
    assert "2 runs of the source for trips 0, 3 give exactly what the reference gives" in out


def test_a_broken_file_is_unsafe(emitted: Path, tmp_path: Path, capsys: Captured) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text(emitted.read_text("utf-8").replace("fence_async_shared()\n", "pass\n"), "utf-8")
    options = ["--gluon", str(broken), "--trips", "1", "--seeds", "1", "--json"]
    assert run(["emulate", GEMM, "--machine", "h100", *options]) == 1
    report = json.loads(capsys.readouterr().out)["report"]
    assert report["status"] == "unsafe"
    assert {race["kind"] for race in report["races"]} == {"fence"}


def test_a_file_that_is_not_emitted_source(tmp_path: Path, capsys: Captured) -> None:
    other = tmp_path / "other.py"
    other.write_text("x = 1\n", "utf-8")
    assert run(["emulate", GEMM, "--machine", "h100", "--gluon", str(other)]) == 1
    assert "it has no function 'launch'" in capsys.readouterr().err


def test_a_missing_file(capsys: Captured) -> None:
    assert run(["emulate", GEMM, "--machine", "h100", "--gluon", "missing.py"]) == 1
    assert "missing.py: it cannot be loaded" in capsys.readouterr().err


def test_an_emitted_file_is_recognised_and_names_its_kernel_and_machine(emitted: Path, capsys: Captured) -> None:
    assert run(["emulate", str(emitted), "--trips", "2", "--seeds", "1"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "gemm_h100.py on h100: sound: nothing is wrong" in out
    assert "1 runs of the source for trips 2 give exactly what the reference gives" in out


def test_another_kernel_may_be_named(emitted: Path, tmp_path: Path, capsys: Captured) -> None:
    moved = tmp_path / "moved.py"
    moved.write_text(emitted.read_text("utf-8").replace(GEMM, "gone/gemm.py"), "utf-8")
    assert run(["emulate", str(moved)]) == 1
    said = "the kernel that it says it was made from, gone/gemm.py, is neither here nor beside it"
    assert said in capsys.readouterr().err
    assert run(["emulate", str(moved), "--original", GEMM, "--trips", "1", "--seeds", "1"]) == 0
    (tmp_path / "gone").mkdir()
    (tmp_path / "gone" / "gemm.py").write_text(Path(GEMM).read_text("utf-8"), "utf-8")
    assert run(["emulate", str(moved), "--trips", "1", "--seeds", "1"]) == 0


OTHER_GLUON = "from triton.experimental import gluon\n\n\n@gluon.jit\ndef kernel(x):\n    pass\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            OTHER_GLUON,
            "it is run as Gluon, for functions under @gluon.jit and none under @triton.jit, but has no 'launch'",
        ),
        (
            OTHER_GLUON + "\n\ndef launch(grid):\n    pass\n",
            "it is Gluon, and does not say which kernel it was made from (no ORIGINAL, as twillgpu emit writes it)",
        ),
        ("x = 1\n", "other.py: "),
    ],
)
def test_a_wrong_guess_says_what_was_looked_for(text: str, said: str, tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "other.py"
    file.write_text(text, "utf-8")
    assert run(["emulate", str(file), "--machine", "h100"]) == 1
    assert said in capsys.readouterr().err


def test_options_of_another_kind_of_source_are_refused(emitted: Path, capsys: Captured) -> None:
    assert run(["emulate", GEMM, "--machine", "h100", "--original", GEMM]) == 1
    assert f"--original: {GEMM} is no Gluon file: it has no function under @gluon.jit" in capsys.readouterr().err
    assert run(["emulate", str(emitted), "--schedule", "x.json"]) == 1
    assert f"--schedule: {emitted} is run as it is; leave the option out" in capsys.readouterr().err
