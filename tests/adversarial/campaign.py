"""Breaks good programs, asks the oracle and the checker about every mutant, and counts."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from mutations import Mutant, mutants
from oracle import Outcome, judge
from subjects import Subject

from twillgpu.emulate.record import Finding
from twillgpu.emulate.symbolic_check import check_trips
from twillgpu.emulate.unroll import Unroller
from twillgpu.lower.check import check_program
from twillgpu.lower.record import WarpProgram


@dataclass(slots=True)
class Tally:
    """Counts over all mutants.

    Attributes:
        verdicts: mutants by class of mistake, the oracle's verdict (``unsafe`` or ``harmless``) and the checker's
            (``refused``, ``accepted``).
        shown: unsafe mutants by what the oracle saw.
        reasons: harmless mutants that were refused, by what the checker said.
        accepted: unsafe mutants that the checker accepted, in words.
        false_alarms: good programs that the checker refused or the oracle thinks unsafe, in words.
        structural: mutants with which ``check_program`` finds fault, which looks at no order at all.
    """

    programs: int = 0
    good: int = 0
    verdicts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    shown: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    accepted: list[str] = field(default_factory=list)
    false_alarms: list[str] = field(default_factory=list)
    structural: int = 0
    oracle_seconds: float = 0.0
    checker_seconds: float = 0.0

    @property
    def mutants(self) -> int:
        """Number of mutants."""
        return sum(self.verdicts.values())

    def add(self, other: Tally) -> None:
        """Add the counts of another tally."""
        self.programs += other.programs
        self.good += other.good
        self.verdicts.update(other.verdicts)
        self.shown.update(other.shown)
        self.reasons.update(other.reasons)
        self.accepted += other.accepted
        self.false_alarms += other.false_alarms
        self.structural += other.structural
        self.oracle_seconds += other.oracle_seconds
        self.checker_seconds += other.checker_seconds


def refusal(program: WarpProgram, blocks: Iterable[tuple[int, ...]]) -> Finding | None:
    """Return what the symbolic check finds wrong, ``None`` where it accepts the program."""
    unroller = Unroller(program)
    for trips in blocks:
        finding = check_trips(unroller, trips)
        if not finding.sound:
            return finding
    return None


def kinds(finding: Finding) -> str:
    """Return what a finding is of, in a few words."""
    found = {race.kind for race in finding.races} | {hazard.kind for hazard in finding.hazards}
    return ", ".join(sorted({*found, *({"deadlock"} if finding.deadlock else ())}))


def chosen(subject: Subject, number: int, draw: random.Random) -> list[Mutant]:
    """Return mutants of a subject, as many of each class as there are, or as fit in ``number``."""
    found: dict[str, list[Mutant]] = {}
    for mutant in mutants(subject.program):
        found.setdefault(mutant.kind, []).append(mutant)
    for same in found.values():
        draw.shuffle(same)
    picked: list[Mutant] = []
    while len(picked) < number and any(found.values()):
        picked += [same.pop() for same in found.values() if same]
    return picked[:number]


def attack(subject: Subject, number: int, runs: int, seed: int = 0) -> Tally:
    """Break a program in ``number`` ways; the oracle tries ``runs`` orders of each block."""
    tally = Tally(programs=1)
    check_good(subject, runs, tally)
    for mutant in chosen(subject, number, random.Random(seed)):  # noqa: S311  # not for cryptography
        _classify(subject, mutant, runs, tally)
    return tally


def check_good(subject: Subject, runs: int, tally: Tally) -> None:
    """Ask about the program as it is."""
    tally.good += 1
    finding = refusal(subject.program, subject.blocks)
    if finding is not None:
        tally.false_alarms.append(f"{subject.name}, trips {finding.trips}: {kinds(finding)}: {_first(finding)}")
    outcome = judge(subject.program, subject.blocks, runs) if runs else None
    if outcome is not None:
        tally.false_alarms.append(f"{subject.name}: the oracle says {outcome.kind}: {outcome.text}")


def _classify(subject: Subject, mutant: Mutant, runs: int, tally: Tally) -> None:
    started = time.perf_counter()
    outcome: Outcome | None = judge(mutant.program, subject.blocks, runs)
    asked = time.perf_counter()
    finding = refusal(mutant.program, subject.blocks)
    tally.oracle_seconds += asked - started
    tally.checker_seconds += time.perf_counter() - asked
    tally.structural += bool(check_program(mutant.program))
    truth, verdict = "harmless" if outcome is None else "unsafe", "accepted" if finding is None else "refused"
    tally.verdicts[mutant.kind, truth, verdict] += 1
    if outcome is not None:
        tally.shown[outcome.kind] += 1
        if finding is None:
            tally.accepted.append(f"{subject.name}, {mutant.kind}: {mutant.where}: {outcome.kind}: {outcome.text}")
    elif finding is not None:
        tally.reasons[kinds(finding)] += 1


def _first(finding: Finding) -> str:
    return str((*finding.races, *finding.hazards, finding.deadlock)[0])
