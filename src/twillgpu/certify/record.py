"""The record of a certificate: claims, and how each was checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal as Choice

Outcome = Choice["confirmed", "contradicted", "open"]
"""``open``: a limit was reached, or the check does not apply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check of a claim.

    Attributes:
        by: program and version.
        how: what it did, in words.
        outcome: what it says of the claim.
        detail: what it said itself (``unsat``, lemmas checked, the time limit that was reached).
        seconds: wall seconds.
        independent: whether it shares no code with what made the claim beyond reading the problem.
    """

    by: str
    how: str
    outcome: Outcome
    detail: str
    seconds: float
    independent: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A file that anyone can check with a program of their choice: its name, SHA-256, and what it shows."""

    file: str
    sha256: str
    shows: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Something that the search said.

    Attributes:
        kind: ``schedule`` (it keeps every rule), ``bound`` (no smaller interval, by arithmetic) or ``refutation`` (no
            schedule in a range of intervals).
        text: the claim in words.
        first_cycles, last_cycles: intervals spoken of.
        slots, slot_cycles: interval and slot of a refutation; slots of one cycle otherwise.
        bound: name of the resource, for ``bound``.
        checks, evidence: how it was checked, and files about it.
    """

    kind: Choice["schedule", "bound", "refutation"]
    text: str
    first_cycles: int
    last_cycles: int
    slots: int = 0
    slot_cycles: int = 1
    bound: str = ""
    checks: tuple[Check, ...] = ()
    evidence: tuple[Evidence, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """``contradicted`` by any check; ``confirmed`` by an independent one; otherwise ``open``."""
        if any(check.outcome == "contradicted" for check in self.checks):
            return "contradicted"
        confirmed = any(check.outcome == "confirmed" and check.independent for check in self.checks)
        return "confirmed" if confirmed else "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """What was claimed of a problem and how it was checked.

    Attributes:
        source: name of what was scheduled.
        graph: the priced loop body as graph JSON text, machine included where it is not a known one.
        document: what the search says, as schedule JSON text: status, schedule, stages, limits, options.
        claims: everything that the status rests on.
        hashes: SHA-256 of the graph, the machine and the priced problem that were searched.
        versions: of this program and of every solver used.
    """

    source: str
    graph: str
    document: str
    claims: tuple[Claim, ...]
    hashes: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def outcome(self) -> Outcome:
        """The worst outcome of the claims."""
        outcomes = [claim.outcome for claim in self.claims]
        if "contradicted" in outcomes:
            return "contradicted"
        return "open" if "open" in outcomes or not outcomes else "confirmed"
