"""Emit, compile, compare, and where machine code does not keep what the schedule promises: again.

Registers move between groups first; then the search is asked for a schedule that leaves more free. The best emission
is kept, and every round is in the result.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from twillgpu.emit.feedback import Judged, Limits, findings
from twillgpu.emit.gluon import Provenance, emit, ordered
from twillgpu.emit.offline import compile_source
from twillgpu.emit.quotas import moved, roomier, with_registers
from twillgpu.emit.record import Budget, Compiled, Emission, Finding, Form, Round
from twillgpu.errors import TwillError
from twillgpu.lower.record import WarpProgram

MOST_ROUNDS = 6
REGISTER_STEP = 16
"""Registers per thread that a further search leaves free in addition."""

Again = Callable[[Budget], WarpProgram | str]
"""Searches under a smaller budget: a program, or why there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What stays the same in all rounds: limits of the block, the header, further searches, progress."""

    limits: Limits
    provenance: Provenance
    again: Again
    progress: Callable[[str], None] | None = None
    compiler: Callable[[Path], Compiled] = compile_source
    most_rounds: int = MOST_ROUNDS


@dataclass(frozen=True, slots=True, kw_only=True)
class _Try:
    program: WarpProgram
    budget: Budget
    form: Form
    round: Round


def refine(program: WarpProgram, setting: Setting) -> Emission:
    """Return the cleanest emission that was found, with every round.

    Raises:
        UnsupportedError: what has no Gluon form.
        TwillError: Triton refuses the first source, or the assembler every round; with what they say.
    """
    tries: list[_Try] = []
    budget, form, conclusion = Budget(), Form(), ""
    while not conclusion:
        one = _attempt(len(tries) + 1, (program, budget, form), setting)
        serious = [found for found in one.round.findings if found.serious]
        if not serious:
            tries += _polished(one, tries, setting)
            conclusion = "clean"
        elif len(tries) + 1 >= setting.most_rounds:
            tries.append(one)
            conclusion = f"stopped after {setting.most_rounds} rounds"
        else:
            action, following, budget, form = _next(one, tries, setting)
            tries.append(replace(one, round=replace(one.round, action=action)))
            if isinstance(following, str):
                conclusion = following
            else:
                program = following
    return _best(tries, conclusion, setting.provenance)


def _polished(one: _Try, before: list[_Try], setting: Setting) -> list[_Try]:
    """Return a clean round and, where it reloads values in a main loop, one more in which narrow groups have room."""
    compiled = one.round.compiled
    quotas = None if compiled is None else roomier(ordered(one.program), compiled)
    if quotas is None or len(before) + 1 >= setting.most_rounds:
        return [one]
    following = with_registers(one.program, quotas)
    said = _moves(following)
    return [
        replace(one, round=replace(one.round, action=said)),
        _attempt(one.round.number + 1, (following, one.budget, one.form), setting),
    ]


def _moves(program: WarpProgram) -> str:
    return "move registers: " + ", ".join(f"{group.name} {group.registers_per_thread}" for group in program.groups)


def _attempt(number: int, made_of: tuple[WarpProgram, Budget, Form], setting: Setting) -> _Try:
    begun = time.perf_counter()
    program, budget, form = made_of
    if setting.progress is not None:
        setting.progress(f"round {number}: compiling at {program.ii_cycles:,} cycles")
    source = emit(program, setting.provenance, form)
    compiled, found = _compiled(source, program, setting, first=number == 1)
    registers = tuple((group.name, group.registers_per_thread) for group in program.groups)
    made = Round(
        number=number,
        ii_cycles=program.ii_cycles,
        budget=budget,
        registers=registers,
        compiled=compiled,
        findings=found,
        action="",
        seconds=time.perf_counter() - begun,
        form=form,
    )
    return _Try(program=program, budget=budget, form=form, round=made)


def _compiled(
    source: str, program: WarpProgram, setting: Setting, *, first: bool
) -> tuple[Compiled | None, tuple[Finding, ...]]:
    """Return what was made of a source and what is wrong with it. What the assembler refuses is short of registers,
    and of a further round what Triton refuses is a failed attempt, beside others; of the first it is an error.
    """
    with tempfile.TemporaryDirectory(prefix="twillgpu-") as folder:
        file = Path(folder) / "emitted.py"
        file.write_text(source, encoding="utf-8")
        try:
            compiled = setting.compiler(file)
        except TwillError as error:
            if error.where != "ptxas" and first:
                raise
            rule = "assembler" if error.where == "ptxas" else "triton"
            return None, (Finding(rule=rule, group="", message=error.what, serious=True),)
    judged = Judged(program=program, groups=ordered(program), compiled=compiled, limits=setting.limits)
    return compiled, findings(judged)


def _other_form(one: _Try, before: list[_Try]) -> tuple[str, Form] | None:
    """Return in words, and itself, a form that may answer to what was found and was not tried with this program."""
    tried = {each.form for each in (*before, one) if each.program == one.program}
    rules = {found.rule for found in one.round.findings if found.serious}
    prologues = "write prologues under conditions" if one.form.apart else "write each number of iterations apart"
    answers = (
        ("spills", "compute addresses in SMEM anew in each iteration", replace(one.form, anew=True)),
        ("serialised", prologues, replace(one.form, apart=not one.form.apart)),
    )
    for rule, said, form in answers:
        new = rule in rules and form not in tried
        if new and emit(one.program, form=form) != emit(one.program, form=one.form):
            return said, form
    return None


def _next(one: _Try, before: list[_Try], setting: Setting) -> tuple[str, WarpProgram | str, Budget, Form]:
    """Return what is done next in words, the next program or the reason why there is none, its budget and form."""
    other = _other_form(one, before)
    if other is not None:
        said, form = other
        return said, one.program, one.budget, form
    best = min((each for each in (*before, one) if each.program == one.program), key=_weight)
    compiled, program = best.round.compiled, one.program
    following = None if compiled is None else _moved(program, compiled, [*before, one])
    if following is not None:
        return _moves(following), following, one.budget, best.form
    budget = _smaller(one, setting.limits)
    said = f"search with {budget.registers_per_thread} registers per thread and {budget.smem_bytes:,} B of SMEM free"
    if setting.progress is not None:
        setting.progress(said)
    return said, setting.again(budget), budget, best.form


def _moved(program: WarpProgram, compiled: Compiled, tries: list[_Try]) -> WarpProgram | None:
    """Return the program with registers moved to the groups that spill in a way that was not tried."""
    quotas = moved(ordered(program), compiled)
    if quotas is None:
        return None
    following = with_registers(program, quotas)
    registers = tuple((group.name, group.registers_per_thread) for group in following.groups)
    tried = {(one.round.ii_cycles, one.round.registers) for one in tries}
    return None if (program.ii_cycles, registers) in tried else following


def _smaller(one: _Try, limits: Limits) -> Budget:
    """Return the budget that answers to what was found."""
    over = one.round.compiled.smem_bytes - limits.smem_bytes if one.round.compiled is not None else 0
    rules = {found.rule for found in one.round.findings if found.serious}
    registers = REGISTER_STEP if rules - {"smem_limit"} else 0
    room = -(-max(over, 0) // 1024) * 1024
    return Budget(
        registers_per_thread=one.budget.registers_per_thread + registers,
        smem_bytes=one.budget.smem_bytes + room,
    )


def _best(tries: list[_Try], conclusion: str, provenance: Provenance) -> Emission:
    best = min(tries, key=_weight)
    if best.round.compiled is None:
        raise TwillError("emit", best.round.findings[0].message, "report it with the kernel, or try another --const")
    return Emission(
        source=emit(best.program, _checked(best.round, best.round.compiled, provenance), best.form),
        ii_cycles=best.round.ii_cycles,
        rounds=tuple(one.round for one in tries),
        best=best.round.number,
        clean=not any(found.serious for found in best.round.findings),
        conclusion=conclusion,
    )


def _checked(best: Round, compiled: Compiled, provenance: Provenance) -> Provenance:
    return replace(provenance, lines=(*provenance.lines, *_told(best, compiled)))


def _told(best: Round, compiled: Compiled) -> Iterator[str]:
    """Yield what the header says of the round whose source is written: the compiler, and what it was found to be."""
    if best.budget != Budget():
        free = (
            f"{best.budget.registers_per_thread} registers per thread and {best.budget.smem_bytes:,} B of SMEM free"
        )
        yield f"Machine code of that schedule was not clean: this one was searched with {free}."
    serious = [f"{found.rule} {found.group}".strip() for found in best.findings if found.serious]
    verdict = f"not clean ({'; '.join(serious)})" if serious else "clean"
    yield f"Checked with {compiled.made_with} for {compiled.target}, without a GPU: {verdict}."


def _weight(one: _Try) -> tuple[int, ...]:
    """Order emissions: what compiles, what fits, what is not serialised, fewest spills in loops, least interval, what
    else is wrong, fewest reloads in loops.
    """
    found = [finding.rule for finding in one.round.findings if finding.serious]
    groups = one.round.compiled.groups if one.round.compiled is not None else ()
    loops = [code.loop for code in groups if code.loop is not None]
    limits = sum(rule.endswith("_limit") for rule in found)
    stores, reloads = sum(loop.stores for loop in loops), sum(loop.spills for loop in loops)
    missing = int(one.round.compiled is None)
    return (missing, limits, found.count("serialised"), stores, one.round.ii_cycles, len(found), reloads)
