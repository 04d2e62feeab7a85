"""``twillgpu schedule --method paper``: its options, its report, and what it refuses."""

from __future__ import annotations

import json

import pytest
from graphs import FIGURE_1, REGISTER_LIMITED

from twillgpu.cli import run

Captured = pytest.CaptureFixture[str]


def test_the_report_says_which_method_and_how_costs_were_normalised(capsys: Captured) -> None:
    assert run(["schedule", str(REGISTER_LIMITED), "--method", "paper"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "I = 6 cycles per iteration, optimal: minimum over all schedules of at most 2 stages" in out
    assert "cost normalisation: sum of costs 6, 1.0 cycles per unit on average" in out
    assert "joint solution: I = 6, L = 12 in cycles, 2 stages" in out
    assert "paper with Yices and HiGHS" in out
    assert "the schedule passed the independent verifier" in out


def test_the_document_records_the_paper_s_rules(capsys: Captured) -> None:
    assert run(["schedule", str(FIGURE_1), "--method", "paper", "--json", "--integer-solver", "scip"]) == 0
    found = json.loads(capsys.readouterr().out)["search"]
    assert (found["method"], found["solver"]) == ("paper", "Yices and SCIP")
    assert (found["options"]["concurrency"], found["options"]["variable_latency"]) == ("paper", "iff")


def test_rules_that_are_given_stay_so(capsys: Captured) -> None:
    options = ["--method", "paper", "--concurrency", "issue", "--variable-latency", "free"]
    assert run(["schedule", str(FIGURE_1), "--json", *options]) == 0
    found = json.loads(capsys.readouterr().out)["search"]["options"]
    assert (found["concurrency"], found["variable_latency"]) == ("issue", "free")


def test_a_literal_search_claims_no_proof_in_cycles(capsys: Captured) -> None:
    # Our bound of the registers is 5; the paper's method refutes 5 by its own rules, which prove nothing for ours.
    assert run(["schedule", str(REGISTER_LIMITED), "--method", "paper", "--literal"]) == 3
    out = " ".join(capsys.readouterr().out.split())
    assert "I = 6 cycles per iteration, not proved optimal" in out
    assert "the paper's method proves its interval in its own units" in out


@pytest.mark.parametrize(
    "given", [["--units", "3"], ["--warps-as", "groups"], ["--integer-solver", "scip"], ["--literal"]]
)
def test_its_options_need_the_method(given: list[str], capsys: Captured) -> None:
    assert run(["schedule", str(FIGURE_1), *given]) == 1
    assert capsys.readouterr().err == (
        f"twillgpu: {given[0]}: it is an option of the paper's method; add --method paper, or leave it out\n"
    )
