"""Certificates: what they claim is checked, what they say is read back, and whatever is changed is noticed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from twillgpu.certify.certify import Inputs, Place, certify, sha256
from twillgpu.certify.jsonform import _digest, read_certificate, write_certificate
from twillgpu.certify.recheck import recheck
from twillgpu.certify.record import Certificate, Check, Claim
from twillgpu.errors import InputError
from twillgpu.graph.jsonform import write_graph
from twillgpu.inputs import load_problem, priced_graph
from twillgpu.schedule import sat
from twillgpu.schedule.jsonform import write_schedule
from twillgpu.schedule.record import SearchOptions, SearchResult
from twillgpu.schedule.search import search

GRAPHS = Path(__file__).resolve().parents[1] / "graph" / "data"
NAME = "A"
NAMES = ("not_monotone", "blocking_one_group", "register_limited", "recurrence", "paper_figure_1")


def made(
    name: str, folder: Path | None = None, change: Callable[[SearchResult], SearchResult] | None = None
) -> Certificate:
    priced = load_problem(GRAPHS / f"{name}.json")
    result = search(priced.problem, SearchOptions())
    inputs = Inputs(
        source=name,
        graph=write_graph(priced_graph(priced)),
        document=write_schedule(priced.problem, result, priced.limits),
    )
    place = Place(folder=folder) if folder else None
    return certify(priced.problem, change(result) if change else result, inputs, seconds=60, place=place)


def checked(certificate: Certificate, folder: Path) -> Certificate:
    return recheck(certificate, "c.json", folder, seconds=60)


@pytest.mark.parametrize("name", NAMES)
def test_every_claim_is_confirmed_written_and_checked_again(name: str, tmp_path: Path) -> None:
    first = made(name, tmp_path)
    assert first.outcome == "confirmed", first.claims
    assert first.claims[-1].kind == "schedule"
    again = read_certificate(write_certificate(first), "c.json")
    assert again.claims == first.claims
    second = checked(again, tmp_path)
    assert [claim.outcome for claim in second.claims] == ["confirmed"] * len(first.claims)


def test_every_refutation_below_the_interval_is_a_claim(tmp_path: Path) -> None:
    # 3 cycles: the bound is the recurrence, and the op meets itself there.
    claims = made("not_monotone", tmp_path).claims
    assert [(claim.kind, claim.first_cycles, claim.last_cycles) for claim in claims] == [
        ("bound", 1, 2),
        ("refutation", 3, 3),
        ("schedule", 4, 4),
    ]
    files = {item.file for claim in claims for item in claim.evidence}
    assert files == {"schedule.smt2", "refutation-3x1.smt2", "refutation-3x1.cnf", "refutation-3x1.drat"}
    independent = [check.by.split()[0] for check in claims[1].checks if check.independent]
    assert independent == ["twillgpu", "Yices"]


def test_dimacs_says_what_its_variables_are(tmp_path: Path) -> None:
    made("not_monotone", tmp_path)
    lines = (tmp_path / "refutation-3x1.cnf").read_text(encoding="ascii").splitlines()
    assert lines[0] == "c no schedule of 3 cycles within 3 stages (3 slots of 1, rounded down)"
    header = next(line for line in lines if line.startswith("p "))
    _, _, variables, clauses = header.split()
    body = lines[lines.index(header) + 1 :]
    assert len(body) == int(clauses)
    numbers = [int(word) for line in body for word in line.split()]
    assert max(map(abs, numbers)) <= int(variables)
    assert sat.run([tuple(map(int, line.split()[:-1])) for line in body], seconds=60).outcome == "infeasible"
    assert any(line.startswith("c 1 ") for line in lines)


def rewritten(certificate: Certificate, change: Callable[[dict[str, Any]], object]) -> Certificate:
    """Return the certificate after a change by someone who also renews the hash of the document."""
    document: dict[str, Any] = json.loads(write_certificate(certificate))
    change(document)
    document["sha256"] = _digest(document)
    return read_certificate(json.dumps(document), "c.json")


def test_a_changed_text_is_noticed() -> None:
    text = write_certificate(made("recurrence"))
    changed = text.replace('"confirmed"', '"open"', 1)
    with pytest.raises(InputError, match=r"c\.json: sha256: the contents are not those that were certified"):
        read_certificate(changed, "c.json")


def _at_once(document: dict[str, Any]) -> None:
    for op in document["schedule"]["ops"]:
        op["start_cycle"] = 0
        del op["stage"], op["slot"]
    for key in ("stages", "length_cycles"):
        del document["schedule"][key]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d["graph"]["ops"][0].update(latency_cycles=1), "c.json: hashes.problem: the certificate is for"),
        (lambda d: d["claims"].pop(0), "c.json: claims[0]: nothing excludes 1 to 2 cycles"),
        (lambda d: d["claims"].pop(1), "c.json: claims: nothing excludes 3 to 3 cycles"),
        (lambda d: d["claims"].pop(2), "c.json: claims: none is about the schedule of 4 cycles"),
        (lambda d: d["claims"][1].update(slots=9), "c.json: claims[1]: 9 slots of 1 do not exclude 3 to 3 cycles"),
        (
            lambda d: d["schedule"].update(status="feasible"),
            "c.json: schedule.status: feasible does not fit 4 cycles",
        ),
        (
            lambda d: d["claims"][1]["evidence"][0].update(file="../x"),
            "claims[1].evidence[0].file: '../x' does not lie",
        ),
        (lambda d: d.update(more=1), "c.json: more: unknown key"),
        (lambda d: d["claims"][0].update(kind="guess"), "c.json: claims[0].kind: unknown name 'guess'"),
    ],
)
def test_a_certificate_that_contradicts_itself_is_refused(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    first = made("not_monotone", tmp_path)
    with pytest.raises(InputError) as raised:
        checked(rewritten(first, change), tmp_path)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    "file", ["refutation-3x1.smt2", "refutation-3x1.cnf", "refutation-3x1.drat", "schedule.smt2"]
)
def test_changed_evidence_is_refused(tmp_path: Path, file: str) -> None:
    first = made("not_monotone", tmp_path)
    with (tmp_path / file).open("a", encoding="ascii") as stream:
        stream.write("\n")
    with pytest.raises(InputError, match=rf"c\.json: claims\[.\]\.evidence\[.\]: {file} is not the file that was"):
        checked(first, tmp_path)


def test_evidence_for_another_formula_is_refused(tmp_path: Path) -> None:
    """The hash fits, but the formula is not the one of the claim."""
    first = made("not_monotone", tmp_path)
    (tmp_path / "refutation-3x1.cnf").write_text("p cnf 1 2\n1 0\n-1 0\n", encoding="ascii")
    changed = rewritten(first, lambda d: d["claims"][1]["evidence"][1].update(sha256=_hash(tmp_path)))
    with pytest.raises(
        InputError, match=r"claims\[1\]\.evidence: refutation-3x1\.cnf is not the formula of this claim"
    ):
        checked(changed, tmp_path)


def _hash(folder: Path) -> str:
    return sha256(folder / "refutation-3x1.cnf")


def test_a_wrong_schedule_is_contradicted(tmp_path: Path) -> None:
    found = checked(rewritten(made("paper_figure_1"), _at_once), tmp_path)
    assert found.outcome == "contradicted"
    assert [check.outcome for check in found.claims[-1].checks] == ["contradicted", "contradicted"]


def test_evidence_that_is_gone_is_worked_out_anew(tmp_path: Path) -> None:
    first = made("not_monotone", tmp_path)
    (tmp_path / "refutation-3x1.drat").unlink()
    found = checked(first, tmp_path)
    assert found.outcome == "confirmed"
    assert [check.detail for check in found.claims[1].checks if check.how == "evidence"] == [
        "not there: refutation-3x1.drat"
    ]


def test_a_false_claim_of_a_search_is_contradicted() -> None:
    """A refutation that is none: the solvers find the schedule."""

    def lie(result: SearchResult) -> SearchResult:
        assert result.schedule is not None
        return replace(result, lower_bound_cycles=result.schedule.ii_cycles + 1)

    certificate = made("not_monotone", change=lie)
    claim = next(claim for claim in certificate.claims if claim.first_cycles == 4 and claim.kind == "refutation")
    assert claim.outcome == "contradicted"
    assert [check.detail for check in claim.checks] == ["sat", "sat"]
    assert certificate.outcome == "contradicted"


def test_outcomes() -> None:
    def claim(*checks: tuple[str, bool]) -> Claim:
        made_checks = tuple(
            Check(by="x", how="", outcome=outcome, detail="", seconds=0, independent=independent)  # type: ignore[arg-type]
            for outcome, independent in checks
        )
        return Claim(kind="bound", text="", first_cycles=1, last_cycles=1, checks=made_checks)

    assert claim().outcome == "open"
    assert claim(("confirmed", False)).outcome == "open"
    assert claim(("confirmed", True), ("open", True)).outcome == "confirmed"
    assert claim(("confirmed", True), ("contradicted", False)).outcome == "contradicted"


def infeasible(tmp_path: Path, **change: object) -> Certificate:
    document = json.loads((GRAPHS / "register_limited.json").read_text(encoding="utf-8")) | change
    file = tmp_path / "graph.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    priced = load_problem(file)
    result = search(priced.problem, SearchOptions())
    assert result.status == "infeasible"
    inputs = Inputs(
        source=file.name,
        graph=write_graph(priced_graph(priced)),
        document=write_schedule(priced.problem, result, priced.limits),
    )
    return certify(priced.problem, result, inputs, seconds=60)


def test_infeasibility_is_certified_interval_by_interval(tmp_path: Path) -> None:
    """Two ops that must and must not share a group."""
    names = [op["name"] for op in json.loads((GRAPHS / "register_limited.json").read_text(encoding="utf-8"))["ops"]]
    pair = {"first": names[0], "second": names[1]}
    legality = [{"rule": "a", "relation": relation} | pair for relation in ("apart", "together")]
    found = infeasible(tmp_path, legality=legality)
    assert found.outcome == "confirmed"
    assert {claim.kind for claim in found.claims} == {"bound", "refutation"}
    again = checked(read_certificate(write_certificate(found), "c.json"), tmp_path)
    assert again.outcome == "confirmed"
    with pytest.raises(InputError, match=r"c\.json: claims: nothing excludes"):
        checked(rewritten(found, lambda d: d["claims"].pop()), tmp_path)


def test_a_storage_that_is_too_small_at_any_interval(tmp_path: Path) -> None:
    residents = [{"name": f"kept{n}", "registers_per_thread": 40, "users": [NAME]} for n in range(2)]
    found = infeasible(tmp_path, residents=residents)
    assert found.outcome == "confirmed"
    assert found.claims[-1].text.startswith("no interval at all: registers: alive all the time")
    assert checked(found, tmp_path).outcome == "confirmed"
