"""Rounds of emission with a compiler that says what the test wants."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import compiled_code as code
import pytest

from twillgpu.emit.gluon import Provenance, emit
from twillgpu.emit.quotas import with_registers
from twillgpu.emit.record import Budget, Compiled, Finding, Form
from twillgpu.emit.refine import Again, Setting, refine
from twillgpu.errors import TwillError
from twillgpu.lower.record import WarpProgram

PLAIN = code.program("gemm", "h100")
WIDE = sum(group.warps for group in PLAIN.groups if group.warps >= 4)
PROGRAM = with_registers(
    PLAIN, {group.name: (168 * 12 - 4 * 24) // WIDE // 8 * 8 if group.warps >= 4 else 24 for group in PLAIN.groups}
)
"""With all registers given out, so that none can move."""

JUDGED = code.clean(
    PROGRAM, {group.name: {"HGMMA": 4 if group.warps == 4 else 8} for group in PROGRAM.groups if group.warps >= 4}
)
CLEAN = JUDGED.compiled
SPILLING = replace(
    CLEAN,
    groups=tuple(
        replace(one, loop=replace(one.loop, spills=9, stores=9)) if one.loop is not None else one
        for one in CLEAN.groups
    ),
)
TOO_LARGE = replace(CLEAN, smem_bytes=code.LIMITS.smem_bytes + 1)


def compiler(*answers: Compiled | TwillError) -> Callable[[Path], Compiled]:
    left = list(answers)

    def compile_(path: Path) -> Compiled:
        assert path.read_text("utf-8").startswith('"""gemm, warp-specialised for h100')
        answer = left.pop(0)
        if isinstance(answer, TwillError):
            raise answer
        return answer

    return compile_


def setting(again: Again, *answers: Compiled | TwillError, rounds: int = 6) -> Setting:
    return Setting(
        limits=code.LIMITS, provenance=Provenance(), again=again, compiler=compiler(*answers), most_rounds=rounds
    )


def never(_budget: Budget) -> WarpProgram | str:
    pytest.fail("no further search was needed")


def test_clean_at_once() -> None:
    emission = refine(PROGRAM, setting(never, CLEAN))
    assert (emission.clean, emission.best, emission.conclusion) == (True, 1, "clean")
    assert emission.rounds[0].action == ""


def test_spills_lead_to_a_search_with_registers_to_spare() -> None:
    asked: list[Budget] = []

    def again(budget: Budget) -> WarpProgram:
        asked.append(budget)
        return replace(PROGRAM, ii_cycles=PROGRAM.ii_cycles + 100)

    emission = refine(PROGRAM, setting(again, SPILLING, CLEAN))
    assert asked == [Budget(registers_per_thread=16)]
    assert emission.clean
    assert emission.ii_cycles == PROGRAM.ii_cycles + 100
    assert emission.rounds[0].action == "search with 16 registers per thread and 0 B of SMEM free"


def test_too_much_shared_memory_leads_to_a_search_with_less() -> None:
    asked: list[Budget] = []

    def again(budget: Budget) -> str:
        asked.append(budget)
        return "proved impossible with 0 registers per thread and 1,024 B of SMEM left free"

    emission = refine(PROGRAM, setting(again, TOO_LARGE))
    assert asked == [Budget(smem_bytes=1024)]
    assert not emission.clean
    assert emission.conclusion.startswith("proved impossible")


def test_the_best_round_is_kept() -> None:
    worse = replace(SPILLING, warnings=("(C7514) wgmma serialized",))
    emission = refine(PROGRAM, setting(lambda _budget: PROGRAM, SPILLING, worse, worse, rounds=3))
    assert (emission.best, emission.clean, emission.conclusion) == (1, False, "stopped after 3 rounds")
    assert len(emission.rounds) == 3


def test_the_assembler_refuses_one_round() -> None:
    refused = TwillError("ptxas", "refuses the kernel: (C7602) too few registers", "lower the quotas")
    emission = refine(PROGRAM, setting(lambda _budget: PROGRAM, refused, CLEAN))
    assert emission.clean
    assert emission.rounds[0].compiled is None
    assert emission.rounds[0].findings[0].rule == "assembler"


def test_a_source_that_triton_refuses_is_a_defect() -> None:
    refused = TwillError("emitted.py", "Triton does not compile it: NameError", "report it")
    with pytest.raises(TwillError, match="NameError"):
        refine(PROGRAM, setting(never, refused))


def test_the_header_says_what_the_file_was_checked_with_and_what_came_out() -> None:
    """Headers said what is proved of the first schedule, of whatever schedule the file has, and of no compiler."""
    made = replace(CLEAN, triton="3.6.0", assembler="ptxas 12.8.93")
    clean = refine(PROGRAM, setting(never, made))
    assert said(clean.source).endswith(
        "Checked with Triton 3.6.0 (ptxas 12.8.93) for sm_90a, without a GPU: clean. " + groups()
    )
    again = refine(PROGRAM, setting(lambda _budget: PROGRAM, SPILLING, made))
    assert (
        "Machine code of that schedule was not clean: this one was searched with 16 registers per thread and 0 B of "
        "SMEM free. Checked with Triton 3.6.0"
    ) in said(again.source)
    left = refine(PROGRAM, setting(never, SPILLING, rounds=1))
    assert "without a GPU: not clean (spills " in said(left.source)


def said(source: str) -> str:
    """Return the header of a file in one line."""
    return " ".join(source.split('"""')[1].split())


def groups() -> str:
    """Return what the header says of groups, in one line."""
    header = said(emit(PROGRAM))
    return header[header.index(" cycles.") + len(" cycles. ") :]


SERIALISED = replace(CLEAN, warnings=("(C7512) wgmma.mma_async instructions are serialized",))


def test_serialised_code_is_written_in_the_other_form_before_anything_else_is_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Which form of prologues ptxas serialises differs with the kernel and the version of Triton."""
    deep = code.program("attention_fwd", "h100")
    judged = code.clean(deep, {one.name: {"HGMMA": 16} for one in deep.groups if one.warps >= 4})
    monkeypatch.setattr("twillgpu.emit.refine.findings", lambda given: (given.compiled.warnings and SAID) or ())
    asked: list[Budget] = []

    def again(budget: Budget) -> str:
        asked.append(budget)
        return "nothing else"

    bad = replace(judged.compiled, warnings=("(C7512) serialized",))
    given = Setting(limits=code.LIMITS, provenance=Provenance(), again=again, compiler=answers(bad, judged.compiled))
    emission = refine(deep, given)
    assert [one.form.apart for one in emission.rounds] == [False, True]
    assert emission.rounds[0].action == "write each number of iterations apart"
    assert emission.source.split('"""', 2)[2] == emit(deep, form=Form(apart=True)).split('"""', 2)[2]
    assert (emission.clean, asked) == (True, [])
    both = refine(deep, replace(given, compiler=answers(bad, bad)))
    assert len(asked) == 1
    assert (both.best, both.conclusion) == (1, "nothing else")


def test_addresses_are_computed_anew_before_a_code_that_spills_is_searched_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    deep = code.program("attention_fwd", "h100")
    judged = code.clean(deep, {one.name: {"HGMMA": 16} for one in deep.groups if one.warps >= 4})
    said = (Finding(rule="spills", group="softmax0", message="9 spills", serious=True), *SAID)
    monkeypatch.setattr("twillgpu.emit.refine.findings", lambda given: said if given.compiled.warnings else ())
    bad = replace(judged.compiled, warnings=("both",))
    given = Setting(limits=code.LIMITS, provenance=Provenance(), again=never, compiler=answers(bad, judged.compiled))
    emission = refine(deep, given)
    assert [one.form for one in emission.rounds] == [Form(), Form(anew=True)]
    assert emission.rounds[0].action == "compute addresses in SMEM anew in each iteration"
    assert emission.clean
    worse = refine(deep, replace(given, compiler=answers(bad, bad, bad), again=lambda _budget: "nothing else"))
    assert [one.form for one in worse.rounds] == [Form(), Form(anew=True), Form(apart=True, anew=True)]


def test_what_triton_refuses_of_a_further_round_leaves_the_earlier_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    deep = code.program("attention_fwd", "h100")
    judged = code.clean(deep, {one.name: {"HGMMA": 16} for one in deep.groups if one.warps >= 4})
    monkeypatch.setattr("twillgpu.emit.refine.findings", lambda _given: SAID)
    left = [judged.compiled]

    def compiles_once(_path: Path) -> Compiled:
        if left:
            return left.pop()
        raise TwillError("emitted.py", "Triton does not compile it: x changed type", "report it")

    given = Setting(
        limits=code.LIMITS, provenance=Provenance(), again=lambda _budget: "nothing else", compiler=compiles_once
    )
    emission = refine(deep, given)
    assert (emission.best, emission.clean, emission.conclusion) == (1, False, "nothing else")
    assert [one.rule for one in emission.rounds[1].findings] == ["triton"]
    with pytest.raises(TwillError, match="x changed type"):
        refine(deep, given)


def test_only_the_first_copies_of_rings_in_loops_are_named_anew() -> None:
    deep = code.program("attention_fwd", "h100")
    plain, anew = emit(deep).splitlines(), emit(deep, form=Form(anew=True)).splitlines()
    changed = [line for line in anew if line not in plain and "def own" not in line]
    assert "        first = own(t * 0)" in changed
    assert any(".index(first)" in line for line in changed)
    assert not any(line.startswith("    ") and not line.startswith("     ") and "first)" in line for line in changed)


SAID = (Finding(rule="serialised", group="", message="(C7512) serialized", serious=True),)


def answers(*given: Compiled) -> Callable[[Path], Compiled]:
    left = list(given)
    return lambda _path: left.pop(0)


def test_a_program_without_prologues_has_one_form() -> None:
    rolled = replace(
        PROGRAM, groups=tuple(replace(one, stages=1, prologue=(), epilogue=()) for one in PROGRAM.groups)
    )
    assert emit(rolled) == emit(rolled, form=Form(apart=True))
    emission = refine(rolled, setting(lambda _budget: "nothing else", SERIALISED))
    assert [one.form for one in emission.rounds] == [Form()]
