"""``twillgpu emit``: where the file goes, what is declined, the report and the document."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from graphs import FIGURE_1

import twillgpu
from twillgpu import emitting
from twillgpu.cli import run
from twillgpu.emit import refine
from twillgpu.emit.record import Compiled, GroupCode, LoopCode, Run
from twillgpu.view.emission import emission_text

pytestmark = pytest.mark.triton

Captured = pytest.CaptureFixture[str]
GEMM = str(Path(__file__).parents[2] / "examples" / "gemm.py")
HOPPER = ["emit", GEMM, "--machine", "h100"]


def test_a_graph_has_no_kernel(capsys: Captured) -> None:
    assert run(["emit", str(FIGURE_1)]) == 1
    assert "graph JSON has no kernel; give the kernel itself (.py, .ttgir or .mlir)" in capsys.readouterr().err


def test_ampere_is_declined_with_the_reason(capsys: Captured) -> None:
    assert run(["emit", GEMM, "--machine", "a100"]) == 1
    said = capsys.readouterr().err
    assert "a100 (sm_80) has no asynchronous tensor core to specialise warps for" in said
    assert "Traceback" not in said


def test_nothing_is_overwritten_unasked(capsys: Captured, tmp_path: Path) -> None:
    file = tmp_path / "out.py"
    file.write_text("mine", "utf-8")
    assert run([*HOPPER, "-o", str(file)]) == 1
    assert "the file exists" in capsys.readouterr().err
    assert file.read_text("utf-8") == "mine"


@pytest.mark.slow
def test_the_file_of_a_schedule_found_before(capsys: Captured, tmp_path: Path) -> None:
    """A schedule that was written as JSON gives the same groups as the search does."""
    assert run(["schedule", GEMM, "--machine", "h100", "--json", "-o", str(tmp_path / "found.json")]) == 0
    assert run([*HOPPER, "-o", str(tmp_path / "searched.py")]) == 0
    assert run([*HOPPER, "--schedule", str(tmp_path / "found.json")]) == 0
    printed, searched = capsys.readouterr().out, (tmp_path / "searched.py").read_text("utf-8")
    assert "The schedule was given; it has passed the verifier." in " ".join(printed.split())
    assert "optimal: minimum over all schedules" in " ".join(searched.split('"""')[1].split())
    assert printed.split('"""', 2)[2] == searched.split('"""', 2)[2]


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let the compiler say what a test wants."""

    def say(stores: int = 0, warnings: tuple[str, ...] = ()) -> None:
        def compiler(path: Path) -> Compiled:
            groups = path.read_text("utf-8").split("GROUPS = (")[1].split(")")[0].replace('"', "").split(", ")
            return Compiled(
                target="sm_90a", triton="3.9.0", assembler="ptxas 13.4.59", seconds=1.25, warps=12,
                registers_per_thread=168, spill_bytes=0, smem_bytes=200_000, tmem_columns=0, warnings=warnings,
                groups=tuple(_code(name, stores) for name in groups),
            )  # fmt: skip

        def setting(**given: object) -> refine.Setting:
            return refine.Setting(**given, compiler=compiler)  # type: ignore[arg-type]

        monkeypatch.setattr(emitting, "Setting", setting)

    return say


def _code(name: str, stores: int) -> GroupCode:
    wide = name.startswith(("mma", "epilogue"))
    loop = LoopCode(
        live_registers=150, spills=stores, stores=stores, instructions=90, waits=1,
        counts=(("HGMMA", 4),) if wide else (("UTMALDG", 2),),
        order=(Run(kind="wait", count=1), Run(kind="tensor", count=4), Run(kind="drain", count=1)) if wide else (),
    )  # fmt: skip
    return GroupCode(
        name=name, maxreg=240 if wide else 24, live_registers=150, spills=stores, instructions=100, counts=(),
        order=(), loop=loop,
    )  # fmt: skip


def test_the_report_of_a_clean_emission(checked: Callable[..., None], capsys: Captured, tmp_path: Path) -> None:
    checked()
    assert run([*HOPPER, "--check", "-o", str(tmp_path / "out.py")]) == 0
    said = capsys.readouterr().out
    assert said.startswith(
        "clean: 1,024 cycles per iteration, round 1\n"
        "sm_90a, Triton 3.9.0 (ptxas 13.4.59), 1.2 s: 12 warps, 200,000 B of SMEM\n"
    )
    assert "mma0 240 150 0 1 4 0" in " ".join(said.split())
    assert "mma0: wait, 4 tensor, drain" in said
    assert (tmp_path / "out.py").read_text("utf-8").startswith('"""gemm, warp-specialised for h100')


def test_code_that_is_not_clean_is_written_with_status_3(
    checked: Callable[..., None], capsys: Captured, tmp_path: Path
) -> None:
    checked(warnings=("(C7514) wgmma instructions are serialized",))
    assert run([*HOPPER, "--check", "--rounds", "1", "--json", "-o", str(tmp_path / "out.py")]) == 3
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "twillgpu-emission/1"
    assert document["conclusion"] == "stopped after 1 rounds"
    assert [one["rule"] for one in document["rounds"][0]["findings"] if one["serious"]] == ["serialised"]
    assert (tmp_path / "out.py").is_file()


def test_rounds_are_told(checked: Callable[..., None]) -> None:
    checked(stores=5)
    priced = twillgpu.load_problem(GEMM, "h100")
    found = twillgpu.find_schedule(priced)
    emission = twillgpu.emit_source(priced, found.result, twillgpu.EmitOptions(check=True, most_rounds=2))
    said = " ".join(emission_text(emission).split())
    assert "not clean" in said
    assert "1: 1,024 cycles, spills mma0; spills mma1; spills load; then search with 16 registers" in said
    assert "no further round: stopped after 2 rounds" in said
    assert emission_text(replace(emission, rounds=(), best=0)) == "not checked\n"
