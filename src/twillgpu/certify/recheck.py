"""A certificate checked from scratch: hashes, coverage, evidence, and every claim once more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from twillgpu.certify import checks, questions
from twillgpu.certify.certify import sha256, step_of
from twillgpu.certify.record import Certificate, Check, Claim, Evidence
from twillgpu.costs.limits import options_of
from twillgpu.costs.price import price
from twillgpu.costs.record import Problem
from twillgpu.errors import InputError
from twillgpu.graph.document import parse
from twillgpu.graph.jsonform import read_graph
from twillgpu.machine.load import load
from twillgpu.machine.record import Machine
from twillgpu.schedule.jsonform import read_schedule_file
from twillgpu.schedule.jsonlimits import recorded_limits
from twillgpu.schedule.record import Schedule
from twillgpu.schedule.resolution import serial_interval

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What a certificate is about, read anew.

    Attributes:
        where: the file, for messages.
        folder: where evidence lies.
        problem: the embedded graph, priced.
        schedule: ``None`` where infeasibility is claimed.
        status, stages, lower_bound_cycles: what the search claims.
    """

    where: str
    folder: Path
    problem: Problem
    schedule: Schedule | None
    status: str
    stages: int
    lower_bound_cycles: int


def recheck(
    certificate: Certificate, where: str, folder: Path, *, seconds: float, progress: Progress | None = None
) -> Certificate:
    """Return the certificate with every claim checked anew.

    Args:
        certificate: as read.
        where: its file, for messages.
        folder: where its evidence lies.
        seconds: wall limit of each check.
        progress: called with a line of text before each claim.

    Raises:
        InputError: where it contradicts itself, its evidence or the machine: with the place and the reason.
    """
    tell = progress or (lambda _: None)
    contents = open_contents(certificate, where, folder)
    _check_coverage(certificate, contents)
    claims = []
    for index, claim in enumerate(certificate.claims):
        tell(f"claim {index + 1} of {len(certificate.claims)}: {claim.text}")
        evidence = {
            item.file: _read(item, f"claims[{index}].evidence[{number}]", contents)
            for number, item in enumerate(claim.evidence)
        }
        found = tuple(_again(claim, contents, evidence, index, seconds=seconds))
        claims.append(replace(claim, checks=(*_missing(evidence), *found)))
    return replace(certificate, claims=tuple(claims))


def open_contents(certificate: Certificate, where: str, folder: Path) -> Contents:
    """Price the graph of a certificate, and compare hashes.

    Raises:
        InputError: the graph, its machine or the schedule is malformed, or is not what was certified.
    """
    root = parse(certificate.document, f"{where}: schedule")
    graph = read_graph(certificate.graph, f"{where}: graph")
    machine = graph.machine if isinstance(graph.machine, Machine) else load(graph.machine or "")
    limits = recorded_limits(root.child("search").child("options")) or options_of(graph.limits)
    problem = price(graph, machine, replace(limits, lift=()))
    for name, here in (("machine", machine.sha256), ("problem", problem.sha256)):
        if certificate.hashes[name] != here:
            raise InputError(
                f"{where}: hashes.{name}",
                f"the certificate is for {certificate.hashes[name][:12]}..., its graph gives {here[:12]}...",
                "the machine's figures or the costs have changed since: certify again",
            )
    found = root.child("ii_cycles").value is not None
    return Contents(
        where=where,
        folder=folder,
        problem=problem,
        schedule=read_schedule_file(certificate.document, f"{where}: schedule").schedule if found else None,
        status=root.child("status").text(),
        stages=root.child("max_stages").integer(low=1),
        lower_bound_cycles=root.child("lower_bound_cycles").integer(low=1),
    )


def _check_coverage(certificate: Certificate, contents: Contents) -> None:
    """Insist that the claims exclude everything below the bound claimed, each in its form, without a gap."""
    reached = 0
    for index, claim in enumerate(certificate.claims):
        first, last, end = claim.first_cycles, claim.last_cycles, claim.slots * claim.slot_cycles
        if claim.kind == "refutation" and not end - claim.slot_cycles < first <= last <= end:
            what = f"{claim.slots} slots of {claim.slot_cycles} do not exclude {first} to {last} cycles"
            raise _refused(contents, f"claims[{index}]", what)
        if claim.kind != "schedule" and first > reached + 1:
            raise _refused(contents, f"claims[{index}]", f"nothing excludes {reached + 1} to {first - 1} cycles")
        if claim.kind != "schedule":
            reached = max(reached, last)
    _check_status(certificate, contents, reached)


def _check_status(certificate: Certificate, contents: Contents, last: int) -> None:
    end = contents.lower_bound_cycles - 1
    if contents.schedule is None and contents.status == "infeasible":
        end = serial_interval(contents.problem)
    if last < end:
        raise _refused(contents, "claims", f"nothing excludes {last + 1} to {end} cycles")
    scheduled = [claim for claim in certificate.claims if claim.kind == "schedule"]
    if contents.schedule is None:
        return
    interval = contents.schedule.ii_cycles
    if [claim.first_cycles for claim in scheduled] != [interval]:
        raise _refused(contents, "claims", f"none is about the schedule of {interval} cycles")
    if (contents.status == "optimal") != (contents.lower_bound_cycles == interval):
        raise _refused(contents, "schedule.status", f"{contents.status} does not fit {interval} cycles")


def _refused(contents: Contents, path: str, what: str) -> InputError:
    return InputError(f"{contents.where}: {path}", what, "certify again")


def _missing(evidence: dict[str, bytes | None]) -> list[Check]:
    """Return a check that stays open for files that are not there; what they show is worked out anew."""
    gone = [name for name, data in evidence.items() if data is None]
    if not gone:
        return []
    detail = f"not there: {', '.join(gone)}"
    return [Check(by=checks.OWN, how="evidence", outcome="open", detail=detail, seconds=0.0, independent=False)]


def _read(evidence: Evidence, path: str, contents: Contents) -> bytes | None:
    """Return a file of evidence as it was when it was written, ``None`` where it is not there."""
    file = contents.folder / evidence.file
    if not file.is_file():
        return None
    if sha256(file) != evidence.sha256:
        raise _refused(contents, path, f"{evidence.file} is not the file that was written (its SHA-256 differs)")
    return file.read_bytes()


def _again(
    claim: Claim, contents: Contents, evidence: dict[str, bytes | None], index: int, *, seconds: float
) -> list[Check]:
    if claim.kind == "bound":
        return [checks.by_arithmetic(contents.problem, claim.bound, claim.last_cycles + 1)]
    if claim.kind == "schedule":
        return _schedule_again(contents, evidence, index, seconds=seconds)
    return _refutation_again(claim, contents, evidence, index, seconds=seconds)


def _schedule_again(
    contents: Contents, evidence: dict[str, bytes | None], index: int, *, seconds: float
) -> list[Check]:
    if contents.schedule is None:
        raise _refused(contents, f"claims[{index}]", "there is no schedule")
    text = questions.smt_schedule(contents.problem, contents.schedule, contents.stages)
    _same(contents, index, evidence, ".smt2", text)
    return [
        checks.by_verifier(contents.problem, contents.schedule, contents.stages),
        checks.by_yices(text, wanted="sat", seconds=seconds),
    ]


def _refutation_again(
    claim: Claim, contents: Contents, evidence: dict[str, bytes | None], index: int, *, seconds: float
) -> list[Check]:
    """The proof that lies there is checked; where there is none, the solver writes another."""
    step = step_of(claim)
    text = questions.smt(contents.problem, step, contents.stages)
    _same(contents, index, evidence, ".smt2", text)
    by_yices = checks.by_yices(text, wanted="unsat", seconds=seconds)
    formula = questions.clauses(contents.problem, step, contents.stages)
    if formula is None:
        return [checks.by_windows(), by_yices]
    cnf, names = formula
    _same(contents, index, evidence, ".cnf", questions.dimacs(cnf, names, claim.text))
    proof = next((item for item in claim.evidence if item.file.endswith(".drat") and evidence[item.file]), None)
    if proof is None:
        return [*checks.by_sat(cnf.clauses, seconds=seconds), by_yices]
    return [checks.by_proof(cnf.clauses, contents.folder / proof.file, seconds=seconds), by_yices]


def _same(contents: Contents, index: int, evidence: dict[str, bytes | None], suffix: str, text: str) -> None:
    """Insist that a formula among the evidence is the one that the problem gives."""
    for name, data in evidence.items():
        if name.endswith(suffix) and data is not None and data != text.encode():
            raise _refused(contents, f"claims[{index}].evidence", f"{name} is not the formula of this claim")
