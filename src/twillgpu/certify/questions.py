"""What must be refuted so that no interval below the one found is left, and the formulas of each refutation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from twillgpu.certify.smt import SmtQuestion, question_text
from twillgpu.costs.record import Problem, Scale
from twillgpu.costs.scale import scaled
from twillgpu.schedule.cnf import Cnf
from twillgpu.schedule.core import Question
from twillgpu.schedule.model import build
from twillgpu.schedule.record import Schedule, SearchResult
from twillgpu.schedule.resolution import serial_interval

SMALL_REGISTERS = 2
"""Values of at most so many registers are left out of refutations in slots of several cycles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A refutation at ``slots`` slots of ``slot_cycles`` cycles, and the intervals in cycles that it excludes."""

    slots: int
    slot_cycles: int
    first_cycles: int
    last_cycles: int


def steps(result: SearchResult, problem: Problem) -> Iterator[Step]:
    """Yield refutations that together exclude every interval from the analytic bound to what the search claims.

    Each is one that the search made: at n slots, rounded down, it excludes more than (n - 1) slots, up to n slots. In
    slots of one cycle, looking for a schedule in vain is a refutation, too.
    """
    refuted = {
        (attempt.slots, attempt.slot_cycles)
        for attempt in result.attempts
        if attempt.purpose == "refute" and attempt.outcome == "infeasible"
    }
    lower, end = result.bounds.binding.cycles, _end(result, problem)
    while lower < end:
        choices = [(n * slot, n, slot) for n, slot in refuted if (n - 1) * slot < lower <= n * slot]
        last, count, slot = max(choices, default=(lower, lower, 1))
        yield Step(slots=count, slot_cycles=slot, first_cycles=lower, last_cycles=min(last, end - 1))
        lower = last + 1


def _end(result: SearchResult, problem: Problem) -> int:
    """Return the interval below which everything is claimed to be refuted."""
    if result.schedule is None and result.status == "infeasible":
        return serial_interval(problem) + 1
    return result.lower_bound_cycles


def clauses(problem: Problem, step: Step, stages: int) -> tuple[Cnf, tuple[str, ...]] | None:
    """Return the refutation as clauses, with the names of its first variables; ``None`` where windows refute it."""
    exact = step.slot_cycles == 1
    question = Question(
        problem=scaled(problem, Scale(slot_cycles=step.slot_cycles, rounding="down")),
        interval=step.slots,
        stages=stages,
        rounding="exact" if exact else "down",
        small_registers=0 if exact else SMALL_REGISTERS,
    )
    core = build(question, ())
    return (Cnf(core.clauses), tuple(core.clauses.names)) if core is not None else None


def smt(problem: Problem, step: Step, stages: int) -> str:
    """Return the refutation as SMT-LIB text."""
    return question_text(
        SmtQuestion(
            problem=scaled(problem, Scale(slot_cycles=step.slot_cycles, rounding="down")),
            interval=step.slots,
            stages=stages,
            rounding="exact" if step.slot_cycles == 1 else "down",
        )
    )


def smt_schedule(problem: Problem, schedule: Schedule, stages: int) -> str:
    """Return SMT-LIB text that is satisfiable if ``schedule`` keeps every rule but places."""
    question = SmtQuestion(problem=problem, interval=schedule.ii_cycles, stages=stages, rounding="exact")
    return question_text(question, schedule)


def dimacs(cnf: Cnf, names: Iterable[str], title: str) -> str:
    """Return clauses in DIMACS form; comments say what the variables of the model are."""
    lines = [f"c {title}"]
    lines += [f"c {number} {name}" for number, name in enumerate(names, 1)]
    lines.append(f"p cnf {cnf.variables} {len(cnf.clauses)}")
    lines += [" ".join(map(str, (*clause, 0))) for clause in cnf.clauses]
    return "\n".join(lines) + "\n"
