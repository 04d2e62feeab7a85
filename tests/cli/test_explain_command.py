"""``twillgpu explain`` on graph files: the text, the document, limits, exit statuses."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from graphs import DATA, FIGURE_1, REGISTER_LIMITED, document, write

from twillgpu.cli import run

Captured = pytest.CaptureFixture[str]


def _words(text: str) -> str:
    return " ".join(text.split())


def test_explanation_of_a_graph(
    capsys: Captured, golden: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(REGISTER_LIMITED.parent)
    assert run(["explain", REGISTER_LIMITED.name, "--budget", "300"]) == 0
    out, err = capsys.readouterr()
    tried = out.index("\nIntervals tried")
    golden(out[:tried])
    assert "Effort" in out[tried:]
    assert err == ""


@pytest.mark.parametrize(
    ("graph", "sentences"),
    [
        (
            "blocking_one_group",
            (
                "I = 4 is forced by at most 1 group and waits that hold up their group",
                "one more group (--max-groups 2) gives I = 3.",
            ),
        ),
        (
            "recurrence",
            ("I = 4 because of recurrence: A -> B -> A", "B done 3 cycles sooner (1 instead of 4) gives I = 2."),
        ),
        ("not_monotone", ("I = 4 is forced by unit tensor [capacity]", "tensor 2 times as fast", "gives I = 3.")),
        ("paper_figure_1", ("unit tensor which is never idle: S 1, O 1", "gives I = 1.")),
        ("blocking_two_groups", ("unit exp which is never idle: EXP 3; nothing else limits it", "gives I = 2.")),
        ("register_free", ("alu and exp and registers and tensor bind equally",)),
    ],
)
def test_the_summary_says_what_limits_and_what_helps(
    capsys: Captured, graph: str, sentences: tuple[str, ...]
) -> None:
    assert run(["explain", str(DATA / f"{graph}.json"), "--budget", "300"]) == 0
    summary = _words(capsys.readouterr().out.split("\nResult\n")[0])
    for sentence in sentences:
        assert sentence in summary


def test_json_is_one_document(capsys: Captured) -> None:
    assert run(["explain", str(FIGURE_1), "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert (found["schema"], err) == ("twillgpu-explanation/1", "")
    assert found["summary"].startswith("I = 2 because of unit tensor")
    assert found["result"]["schedule"]["ii_cycles"] == 2
    assert found["forced"][0]["sets"] == [[{"kind": "unit", "name": "tensor"}]]
    assert found["rules"]["unit"] == "capacity"
    assert found["ways"][0]["least"]["upper_cycles"] == 1
    assert found["complete"] is True


def test_the_answer_goes_to_a_file_that_is_never_overwritten_unasked(capsys: Captured, tmp_path: Path) -> None:
    file = tmp_path / "why.txt"
    assert run(["explain", str(FIGURE_1), "-o", str(file)]) == 0
    text = file.read_text(encoding="utf-8")
    assert "what limits it" in text
    assert run(["explain", str(FIGURE_1), "-o", str(file)]) == 1
    assert "the file exists; name another file, or add --force to overwrite it" in capsys.readouterr().err
    assert file.read_text(encoding="utf-8") == text
    assert run(["explain", str(FIGURE_1), "-o", str(file), "--force", "--no-table"]) == 0
    assert "more of a capacity" not in file.read_text(encoding="utf-8")


def test_no_schedule_is_status_2_with_what_would_give_one(capsys: Captured) -> None:
    assert run(["explain", str(REGISTER_LIMITED), "--stages", "1", "--registers", "40", "--budget", "300"]) == 2
    out = _words(capsys.readouterr().out)
    assert "No schedule of at most 1 stage exists at any interval because of 40 registers per thread" in out
    assert "+24 registers per thread in group compute (64 instead of 40) gives I = 8." in out


def test_a_search_without_proof_is_status_3(capsys: Captured) -> None:
    assert run(["explain", str(REGISTER_LIMITED), "--work-limit", "1e-9"]) == 3
    assert "No schedule was found before a limit was reached" in _words(capsys.readouterr().out)


def test_a_budget_that_ends_is_status_3_and_says_what_is_open(capsys: Captured) -> None:
    assert run(["explain", str(REGISTER_LIMITED), "--budget", "1e-9"]) == 3
    out = _words(capsys.readouterr().out)
    assert "What would help was not found in the time allowed" in out
    assert "not asked, time ended:" in out
    assert "the time ended first: what is open is marked above; more: --budget SECONDS" in out
    assert re.search(r"registers per thread 64 \? \? \?", out)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--budget", "0"], "Invalid value for '--budget'"),
        (["--question-work", "x"], "'x' is not a valid float range"),
        (["--max-groups", "9"], "9 is out of range"),
    ],
)
def test_mistakes_are_one_message(capsys: Captured, arguments: list[str], message: str) -> None:
    assert run(["explain", str(REGISTER_LIMITED), *arguments]) == 1
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_lines_of_the_source_are_named(capsys: Captured, tmp_path: Path) -> None:
    ops = [
        {"name": name, "source": f"k.py:{line}", "uses": [{"unit": "alu", "cycles": 2}], "latency_cycles": 3}
        for name, line in (("a", 7), ("b", 9))
    ]
    assert run(["explain", write(tmp_path, document(ops=ops))]) == 0
    assert "unit alu: a 2 (line 7), b 2 (line 9) = 4 cycles, 100% of I" in _words(capsys.readouterr().out)
