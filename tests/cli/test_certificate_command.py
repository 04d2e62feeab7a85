"""``schedule --certify`` and ``certificate check`` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from graphs import FIGURE_1, REGISTER_LIMITED

from twillgpu.cli import run

Captured = pytest.CaptureFixture[str]
NOT_MONOTONE = FIGURE_1.with_name("not_monotone.json")
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_a_report_closes_with_the_checks(capsys: Captured) -> None:
    assert run(["schedule", str(NOT_MONOTONE), "--certify"]) == 0
    out = capsys.readouterr().out
    report, _, summary = out.partition("\ncertificate: ")
    assert "the schedule passed the independent verifier" in " ".join(report.split())
    text = " ".join(summary.split())
    assert text.startswith("confirmed confirmed: no interval of less than 3 cycles: recurrence: R -> R: 3 cycles")
    assert "DRAT proof, every lemma by unit propagation: accepted" in text
    assert "is it unsat?: unsat" in text
    assert "all 12 rules hold" in text


def test_evidence_and_certificate_lie_in_one_folder(capsys: Captured, tmp_path: Path) -> None:
    folder = tmp_path / "evidence"
    assert run(["schedule", str(NOT_MONOTONE), "--evidence", str(folder), "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["ii_cycles"] == 4
    assert captured.err.startswith("certificate: confirmed\n")
    certificate = folder / "certificate.json"
    assert {file.name for file in folder.iterdir()} >= {certificate.name, "schedule.smt2", "refutation-3x1.drat"}
    assert run(["certificate", "check", str(certificate)]) == 0
    assert capsys.readouterr().out.startswith("certificate: confirmed\n")
    assert run(["certificate", "check", str(certificate), str(NOT_MONOTONE)]) == 0
    capsys.readouterr()
    assert run(["certificate", "check", str(certificate), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["outcome"]) == ("twillgpu-certificate/1", "confirmed")


def test_evidence_below_the_certificate(capsys: Captured, tmp_path: Path) -> None:
    certificate, folder = tmp_path / "c.json", tmp_path / "files"
    options = ["--certificate", str(certificate), "--evidence", str(folder)]
    assert run(["schedule", str(FIGURE_1), *options]) == 0
    claims = json.loads(certificate.read_text(encoding="utf-8"))["claims"]
    assert [item["file"] for item in claims[-1]["evidence"]] == ["files/schedule.smt2"]
    assert run(["certificate", "check", str(certificate)]) == 0
    (folder / "schedule.smt2").write_text("(check-sat)", encoding="utf-8")
    capsys.readouterr()
    assert run(["certificate", "check", str(certificate)]) == 1
    assert "evidence[0]: files/schedule.smt2 is not the file that was written" in capsys.readouterr().err


def test_nothing_is_overwritten_unasked(capsys: Captured, tmp_path: Path) -> None:
    certificate = tmp_path / "c.json"
    certificate.write_text("mine", encoding="utf-8")
    assert run(["schedule", str(FIGURE_1), "--certificate", str(certificate)]) == 1
    assert f"--certificate {certificate}: the file exists" in capsys.readouterr().err
    assert run(["schedule", str(FIGURE_1), "--evidence", str(tmp_path)]) == 1
    assert f"--evidence {tmp_path}: the folder is not empty; name another, or add --force" in capsys.readouterr().err
    assert run(["schedule", str(FIGURE_1), "--evidence", str(certificate)]) == 1
    assert f"--evidence {certificate}: is a file" in capsys.readouterr().err
    assert certificate.read_text(encoding="utf-8") == "mine"
    assert run(["schedule", str(FIGURE_1), "--certificate", str(certificate), "--force"]) == 0
    assert json.loads(certificate.read_text(encoding="utf-8"))["source"] == FIGURE_1.name


def test_evidence_elsewhere_is_a_mistake(capsys: Captured, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    options = ["--certificate", str(tmp_path / "a" / "c.json"), "--evidence", str(tmp_path / "b")]
    assert run(["schedule", str(FIGURE_1), *options]) == 1
    assert "does not lie below" in capsys.readouterr().err


def test_the_papers_method_has_no_certificate(capsys: Captured) -> None:
    assert run(["schedule", str(FIGURE_1), "--method", "paper", "--certify"]) == 1
    assert "--certify: checks what the default method claims; leave --method paper out" in capsys.readouterr().err


def test_a_certificate_for_another_source_is_refused(capsys: Captured, tmp_path: Path) -> None:
    certificate = tmp_path / "c.json"
    assert run(["schedule", str(FIGURE_1), "--certificate", str(certificate)]) == 0
    capsys.readouterr()
    assert run(["certificate", "check", str(certificate), str(REGISTER_LIMITED)]) == 1
    assert "gives another problem" in capsys.readouterr().err


def test_limits_of_the_machine_and_rules_are_in_the_certificate(capsys: Captured, tmp_path: Path) -> None:
    certificate = tmp_path / "c.json"
    options = ["--max-groups", "1", "--concurrency", "paper", "--no-cross-group"]
    assert run(["schedule", str(FIGURE_1), *options, "--certificate", str(certificate)]) == 0
    assert run(["certificate", "check", str(certificate), str(FIGURE_1)]) == 0
    capsys.readouterr()


@pytest.mark.triton
@pytest.mark.slow
@pytest.mark.parametrize(("machine", "columns"), [("h100", "free"), ("b200", "fixed")])
def test_attention_is_certified(capsys: Captured, tmp_path: Path, machine: str, columns: str) -> None:
    source = [str(EXAMPLES / "attention_fwd.py"), "--machine", machine]
    certificate = str(tmp_path / "c.json")
    assert run(["schedule", *source, "--columns", columns, "--certificate", certificate]) in (0, 3)
    assert "certificate: confirmed" in capsys.readouterr().out
    assert run(["certificate", "check", certificate, *source]) == 0


@pytest.mark.triton
@pytest.mark.slow
def test_attention_in_one_group_is_refuted_by_both_encodings(capsys: Captured, tmp_path: Path) -> None:
    """One group: every interval below the one found is refuted by solvers, not by a bound."""
    source = [str(EXAMPLES / "attention_fwd.py"), "--machine", "h100", "--max-groups", "1"]
    folder = tmp_path / "evidence"
    assert run(["schedule", *source, "--evidence", str(folder)]) in (0, 3)
    claims = json.loads((folder / "certificate.json").read_text(encoding="utf-8"))["claims"]
    refuted = [claim for claim in claims if claim["kind"] == "refutation"]
    assert refuted
    assert {claim["outcome"] for claim in refuted} == {"confirmed"}
    assert run(["certificate", "check", str(folder / "certificate.json")]) == 0
    capsys.readouterr()
