"""``twillgpu view``: every form of picture, files and their suffixes, colour, exit statuses."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from graphs import FIGURE_1, REGISTER_LIMITED

from twillgpu.cli import run

Captured = pytest.CaptureFixture[str]
EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def test_the_picture_for_the_terminal_is_the_default(capsys: Captured) -> None:
    assert run(["view", str(FIGURE_1)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "I = 2 cycles" in out.splitlines()[0]
    assert "One period of the steady state, 2 cycles" in out
    assert "\x1b" not in out
    assert max(len(line) for line in out.splitlines()) <= 80


@pytest.mark.parametrize(
    ("changes", "colour"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_a_terminal_gets_colour_unless_it_has_none(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch, changes: dict[str, str], colour: bool
) -> None:
    for name, value in {"TERM": "xterm", **changes}.items():
        monkeypatch.setenv(name, value)
    if "NO_COLOR" not in changes:
        monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert run(["view", str(FIGURE_1)]) == 0
    assert ("\x1b[" in capsys.readouterr().out) == colour


def test_forms_of_text(capsys: Captured) -> None:
    assert run(["view", str(FIGURE_1), "--as", "modulo"]) == 0
    assert "Modulo reservation table, 2 cycles" in capsys.readouterr().out
    assert run(["view", str(FIGURE_1), "--as", "graph"]) == 0
    assert capsys.readouterr().out.startswith("digraph ")


def test_json_is_the_data_of_the_report_with_the_baselines(capsys: Captured) -> None:
    assert run(["view", str(FIGURE_1), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "twillgpu-view/1"
    names = [one["name"] for one in found["variants"]]
    assert names[0] == "optimum"
    assert "sequential" in names
    assert run(["view", str(FIGURE_1), "--json", "--no-baselines"]) == 0
    assert [one["name"] for one in json.loads(capsys.readouterr().out)["variants"]] == ["optimum"]


def test_the_suffix_of_the_file_says_what_is_wanted(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    begins = {
        "a.html": b"<!DOCTYPE html>",
        "a.dot": b"digraph",
        "a.svg": b"<?xml",
        "a.png": b"\x89PNG",
        "a.txt": b"figure_1",
    }
    for name, begin in begins.items():
        file = tmp_path / name
        assert run(["view", str(FIGURE_1), "-o", str(file)]) == 0
        assert begin in file.read_bytes()[:200]
        again = tmp_path / f"again_{name}"
        assert run(["view", str(FIGURE_1), "-o", str(again)]) == 0
        assert again.read_bytes() == file.read_bytes()


def test_a_whole_loop_is_drawn_on_demand(capsys: Captured) -> None:
    pytest.importorskip("matplotlib")
    assert run(["view", str(FIGURE_1), "--as", "gantt", "--iterations", "3"]) == 0
    assert "iteration 2<" in capsys.readouterr().out


def test_files_are_not_overwritten_unasked(capsys: Captured, tmp_path: Path) -> None:
    file = tmp_path / "a.dot"
    file.write_text("mine", encoding="utf-8")
    assert run(["view", str(FIGURE_1), "-o", str(file)]) == 1
    assert "the file exists" in capsys.readouterr().err
    assert file.read_text(encoding="utf-8") == "mine"
    assert run(["view", str(FIGURE_1), "-o", str(file), "--force"]) == 0
    assert file.read_text(encoding="utf-8").startswith("digraph")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--as", "gantt", "-o", "a.pdf"], "gantt is drawn as SVG or PNG; name a file that ends in .svg or .png"),
        (["--as", "modulo", "-o", "a.png"], "modulo is no drawing"),
        (["--json", "--as", "graph"], "it gives the data of the interactive report; leave out --as graph"),
        (["--as", "trace"], "graph JSON has no kernel; give the kernel itself (.py, .ttgir or .mlir)"),
        (["--schedule", "nowhere.json"], "nowhere.json: no such file"),
        (["--as", "pie"], "'pie' is not one of"),
    ],
)
def test_mistakes_give_one_message(capsys: Captured, arguments: list[str], message: str) -> None:
    assert run(["view", str(FIGURE_1), *arguments]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert len(err.splitlines()) == 1


def test_a_schedule_from_a_file_is_drawn_if_it_keeps_every_rule(capsys: Captured, tmp_path: Path) -> None:
    file = tmp_path / "schedule.json"
    assert run(["schedule", str(FIGURE_1), "--json", "-o", str(file)]) == 0
    assert run(["view", str(FIGURE_1)]) == 0
    searched = capsys.readouterr().out
    assert run(["view", str(FIGURE_1), "--schedule", str(file)]) == 0
    assert capsys.readouterr().out == searched
    document = json.loads(file.read_text(encoding="utf-8"))
    for op in document["ops"]:
        op.update(start_cycle=0, stage=0, slot=0)
    for key in ("stages", "length_cycles"):
        document.pop(key, None)
    file.write_text(json.dumps(document), encoding="utf-8")
    assert run(["view", str(FIGURE_1), "--schedule", str(file)]) == 1
    assert "the schedule has 3 violations, first dependence" in capsys.readouterr().err


def test_infeasible_is_status_2_and_nothing_is_drawn(capsys: Captured, tmp_path: Path) -> None:
    file = tmp_path / "a.html"
    arguments = [str(REGISTER_LIMITED), "--stages", "1", "--registers", "40"]
    assert run(["view", *arguments, "-o", str(file)]) == 2
    assert (
        "no schedule of at most 1 stage exists at any interval; twillgpu explain says why" in capsys.readouterr().err
    )
    assert not file.exists()


@pytest.mark.slow
@pytest.mark.triton
def test_a_kernel_has_a_simulated_run_and_source_lines(capsys: Captured) -> None:
    gemm = str(EXAMPLES / "gemm.py")
    assert run(["view", gemm, "--machine", "b200", "--json", "--no-baselines", "--trips", "3"]) == 0
    found = json.loads(capsys.readouterr().out)
    (variant,) = found["variants"]
    iterations = {bar[3] for lane in variant["simulated"]["lanes"] for bar in lane["bars"]}
    assert iterations == {-1, 0, 1, 2}
    assert any("tl.dot" in text or "dot" in text for _, text in found["lines"])
    assert all(re.fullmatch(r"gemm\.py:\d+", source) for source, _ in found["lines"])
    assert run(["view", gemm, "--machine", "b200", "--as", "trace", "--trips", "3"]) == 0
    phases = {event["ph"] for event in json.loads(capsys.readouterr().out)["traceEvents"]}
    assert phases == {"M", "X", "C", "s", "f"}
