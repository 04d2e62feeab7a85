"""A clausal model for SAT solvers of python-sat: each call in a process of its own, so that a wall limit holds."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from array import array
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from twillgpu.errors import InputError
from twillgpu.schedule.cnf import Cnf
from twillgpu.schedule.literals import Clauses
from twillgpu.schedule.solved import Effort, Outcome, Solved

WORKER = Path(__file__).with_name("sat_worker.py")

CADICAL = "cadical195"
GLUCOSE = "glucose42"

CONFLICTS_PER_UNIT = 4000
"""Conflicts of Glucose that count as one unit of work: about a second each on these models."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a SAT solver said: outcome, literals of the solution, conflicts, and wall seconds."""

    outcome: Outcome
    literals: tuple[int, ...]
    conflicts: int
    seconds: float


def solve_cadical(clauses: Clauses, effort: Effort) -> Solved:
    """Solve with CaDiCaL, which takes no limit but the wall clock's.

    Raises:
        InputError: python-sat is not installed.
    """
    reply = _asked(clauses, CADICAL, seconds=min(effort.work, effort.seconds), seed=effort.seed)
    return _solved(reply, work=reply.seconds)


def solve_glucose(clauses: Clauses, effort: Effort) -> Solved:
    """Solve with Glucose, whose effort is counted in conflicts: the same answer on every machine.

    Raises:
        InputError: python-sat is not installed.
    """
    conflicts = max(1, round(effort.work * CONFLICTS_PER_UNIT))
    reply = _asked(clauses, GLUCOSE, seconds=effort.seconds, seed=effort.seed, conflicts=conflicts)
    return _solved(reply, work=reply.conflicts / CONFLICTS_PER_UNIT)


def _asked(clauses: Clauses, name: str, *, seconds: float, seed: int, conflicts: int = 0) -> Reply:
    """Ask with the variables renumbered at random for every seed but 0: SAT solvers of python-sat take none."""
    started = time.monotonic()
    cnf = Cnf(clauses)
    numbers = list(range(1, cnf.variables + 1))
    if seed:
        random.Random(seed).shuffle(numbers)  # noqa: S311  # not for secrets
    image = dict(enumerate(numbers, 1))
    renamed = [tuple(image[v] if v > 0 else -image[-v] for v in clause) for clause in cnf.clauses]
    reply = run(renamed if seed else cnf.clauses, name=name, seconds=seconds, conflicts=conflicts)
    back = {number: variable for variable, number in image.items()}
    literals = tuple(back[v] if v > 0 else -back[-v] for v in reply.literals if abs(v) in back)
    return Reply(
        outcome=reply.outcome, literals=literals, conflicts=reply.conflicts, seconds=time.monotonic() - started
    )


def _solved(reply: Reply, work: float) -> Solved:
    true = frozenset(literal for literal in reply.literals if literal > 0)

    def holds(literal: int) -> bool:
        return literal if isinstance(literal, bool) else (abs(literal) in true) == (literal > 0)

    found = holds if reply.outcome == "feasible" else None
    return Solved(outcome=reply.outcome, holds=found, work=work, seconds=reply.seconds)


def run(
    clauses: list[tuple[int, ...]],
    *,
    name: str = CADICAL,
    seconds: float,
    conflicts: int = 0,
    proof: Path | None = None,
) -> Reply:
    """Return what a solver of python-sat says of clauses in DIMACS numbering.

    Args:
        clauses: the formula.
        name: the solver's name in python-sat.
        seconds: wall limit; beyond it the solver is ended and the outcome is ``unknown``.
        conflicts: conflicts allowed, 0: no limit (CaDiCaL takes none).
        proof: where to write the DRAT proof of a refutation.

    Raises:
        InputError: python-sat is not installed.
    """
    if find_spec("pysat") is None:
        raise InputError("python-sat", "is not installed", "pip install 'twillgpu[sat]'")
    started = time.monotonic()
    numbers = array("i")
    for clause in clauses:
        numbers.extend(clause)
        numbers.append(0)
    command = [sys.executable, "-P", str(WORKER), name, str(conflicts), str(proof or "")]
    try:
        done = subprocess.run(  # noqa: S603  # our own script
            command, input=numbers.tobytes(), capture_output=True, timeout=max(seconds, 0.0), check=True
        )
    except subprocess.TimeoutExpired:
        return Reply(outcome="unknown", literals=(), conflicts=0, seconds=time.monotonic() - started)
    head, _, body = done.stdout.partition(b"\n")
    word, spent = head.decode().split()
    literals = array("i")
    literals.frombytes(body)
    outcomes: dict[str, Outcome] = {"sat": "feasible", "unsat": "infeasible", "unknown": "unknown"}
    return Reply(
        outcome=outcomes[word], literals=tuple(literals), conflicts=int(spent), seconds=time.monotonic() - started
    )
