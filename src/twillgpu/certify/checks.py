"""The checks of claims: verifier, arithmetic, Yices on SMT-LIB text, SAT solver and proof checker on clauses."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from twillgpu import __version__
from twillgpu.certify.analytic import derive
from twillgpu.certify.record import Check, Outcome
from twillgpu.certify.rup import check_refutation
from twillgpu.costs.record import Problem
from twillgpu.errors import InputError
from twillgpu.schedule import sat
from twillgpu.schedule.literals import Clause
from twillgpu.schedule.paper.solve import run_yices, yices_program, yices_version
from twillgpu.schedule.record import Schedule
from twillgpu.verify import RULES, check
from twillgpu.verify.record import Verified

OWN = f"twillgpu {__version__}"


def by_verifier(problem: Problem, schedule: Schedule, stages: int) -> Check:
    """Every rule by expanding iterations."""
    started = time.monotonic()
    verdict = check(problem, schedule, max_stages=stages)
    if isinstance(verdict, Verified):
        outcome: Outcome = "confirmed"
        detail = f"all {len(RULES)} rules hold"
    else:
        outcome = "contradicted"
        detail = f"{verdict[0].rule}: {verdict[0].message}"
    return Check(
        by=OWN,
        how="verifier: iterations expanded, every rule looked at",
        outcome=outcome,
        detail=detail,
        seconds=time.monotonic() - started,
        independent=True,
    )


def by_arithmetic(problem: Problem, bound: str, cycles: int) -> Check:
    """A bound derived anew."""
    started = time.monotonic()
    why = derive(problem, bound, cycles)
    return Check(
        by=OWN,
        how="arithmetic, derived anew from the problem",
        outcome="confirmed" if why else "open",
        detail=why or f"there is no second derivation of the bound of {bound}",
        seconds=time.monotonic() - started,
        independent=True,
    )


def by_yices(text: str, *, wanted: str, seconds: float) -> Check:
    """SMT-LIB text that should be ``wanted`` (``sat`` or ``unsat``)."""
    how = f"integers (SMT-LIB 2, QF_LIA), an encoding of its own: is it {wanted}?"
    try:
        yices_program()
    except InputError as error:
        return Check(
            by="Yices", how=how, outcome="open", detail=f"{error.what}; {error.remedy}", seconds=0.0, independent=True
        )
    reply = run_yices(text, seconds)
    outcome: Outcome = "confirmed" if reply.outcome == wanted else "contradicted"
    if reply.outcome == "unknown":
        outcome = "open"
    detail = reply.outcome if outcome != "open" else f"no answer in {seconds:g} s"
    return Check(
        by=f"Yices {yices_version()}",
        how=how,
        outcome=outcome,
        detail=detail,
        seconds=reply.seconds,
        independent=True,
    )


def by_windows() -> Check:
    """The longest paths leave no room: nothing to solve."""
    return Check(
        by=OWN,
        how="earliest and latest starts",
        outcome="confirmed",
        detail="some op has no place within the stages",
        seconds=0.0,
        independent=False,
    )


def by_sat(clauses: list[Clause], *, seconds: float, keep: Callable[[Path], None] | None = None) -> tuple[Check, ...]:
    """A refutation of clauses by a SAT solver, and its proof by a checker that knows no solver.

    ``keep`` is given the file with the proof. Glucose writes the proof: on these formulas its proofs are several
    times shorter than CaDiCaL's.
    """
    try:
        name = f"Glucose 4.2 (python-sat {version('python-sat')})"
    except ModuleNotFoundError:
        return (
            Check(
                by="python-sat",
                how="clauses (DIMACS)",
                outcome="open",
                detail="is not installed; pip install 'twillgpu[sat]'",
                seconds=0.0,
                independent=False,
            ),
        )
    with tempfile.TemporaryDirectory() as folder:
        proof = Path(folder) / "proof.drat"
        reply = sat.run(clauses, name=sat.GLUCOSE, seconds=seconds, proof=proof)
        outcomes: dict[str, Outcome] = {"infeasible": "confirmed", "feasible": "contradicted"}
        outcome = outcomes.get(reply.outcome, "open")
        detail = {"infeasible": f"unsat, {reply.conflicts} conflicts", "feasible": "sat"}
        solved = Check(
            by=name,
            how="clauses (DIMACS): is it unsat?",
            outcome=outcome,
            detail=detail.get(reply.outcome, f"no answer in {seconds:g} s"),
            seconds=reply.seconds,
            independent=False,
        )
        if outcome != "confirmed":
            return (solved,)
        if keep is not None:
            keep(proof)
        return solved, by_proof(clauses, proof, seconds=seconds)


def by_proof(clauses: list[Clause], proof: Path, *, seconds: float) -> Check:
    """A DRAT proof, lemma by lemma."""
    with proof.open(encoding="ascii", errors="replace") as lines:
        checked = check_refutation(clauses, lines, seconds=seconds)
    outcomes: dict[str, Outcome] = {"accepted": "confirmed", "refused": "contradicted", "time limit": "open"}
    detail = checked.reason or f"accepted, {checked.lemmas} lemmas"
    return Check(
        by=f"{OWN}, proof checker",
        how="DRAT proof, every lemma by unit propagation",
        outcome=outcomes[checked.outcome],
        detail=detail,
        seconds=checked.seconds,
        independent=True,
    )
