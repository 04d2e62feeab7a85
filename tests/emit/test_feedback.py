"""Every rule of feedback is broken once, and found under its name."""

from dataclasses import replace

import compiled_code as code
import pytest

from twillgpu.emit.feedback import RULES, Judged, findings
from twillgpu.emit.record import Finding, GroupCode, Run

TENSOR = {"compute0": {"HGMMA": 16}, "compute1": {"HGMMA": 16}, "softmax0": {"HGMMA": 16}, "softmax1": {"HGMMA": 16}}


@pytest.fixture(scope="module")
def judged() -> Judged:
    found = code.program("attention_fwd", "h100")
    return code.clean(found, {group.name: {"HGMMA": 16} for group in found.groups if group.warps == 4})


def with_code(judged: Judged, at: int, **changes: object) -> Judged:
    groups = list(judged.compiled.groups)
    groups[at] = replace(groups[at], **changes)  # type: ignore[arg-type]
    return replace(judged, compiled=replace(judged.compiled, groups=tuple(groups)))


def with_loop(judged: Judged, at: int, **changes: object) -> Judged:
    loop = judged.compiled.groups[at].loop
    assert loop is not None
    return with_code(judged, at, loop=replace(loop, **changes))  # type: ignore[arg-type]


def found(judged: Judged, rule: str) -> tuple[Finding, ...]:
    return tuple(one for one in findings(judged) if one.rule == rule)


def test_clean_code_has_no_finding(judged: Judged) -> None:
    assert findings(judged) == ()


def test_too_much_shared_memory(judged: Judged) -> None:
    broken = replace(judged, compiled=replace(judged.compiled, smem_bytes=232_449))
    (one,) = found(broken, "smem_limit")
    assert one.message == "the block takes 232,449 B of SMEM, the limit is 232,448 B"
    assert one.serious
    (note,) = found(broken, "smem_plan")
    assert "the schedule planned" in note.message
    assert not note.serious


def test_too_many_columns(judged: Judged) -> None:
    broken = replace(judged, compiled=replace(judged.compiled, tmem_columns=576))
    (one,) = found(broken, "tmem_limit")
    assert one.message == "the block takes 576 columns of TMEM, the limit is 512"


def test_spills_in_the_main_loop(judged: Judged) -> None:
    (one,) = found(with_loop(judged, 0, spills=3, stores=1), "spills")
    assert one.group == judged.groups[0].name
    assert "3 spill instructions in the main loop" in one.message
    assert one.serious


def test_many_reloads_are_spills(judged: Judged) -> None:
    assert found(with_loop(judged, 0, spills=5), "spills")


def test_few_reloads_and_spills_outside_are_notes(judged: Judged) -> None:
    (one,) = found(with_loop(judged, 0, spills=2), "reloads")
    assert not one.serious
    (other,) = found(with_code(judged, 0, spills=7), "spills_outside")
    assert other.message == "7 spill instructions before and after the main loop"
    assert not other.serious


def test_serialised_products(judged: Judged) -> None:
    said = "(C7514) Potential Performance Loss: wgmma.mma_async instructions are serialized due to ..."
    (one,) = found(replace(judged, compiled=replace(judged.compiled, warnings=(said,))), "serialised")
    assert one.message == said
    assert one.serious


def test_registers_that_were_not_given(judged: Judged) -> None:
    (one,) = found(with_code(judged, 1, maxreg=64), "setmaxnreg")
    assert one.message.startswith("setmaxnreg is 64, ")


def test_products_that_are_missing(judged: Judged) -> None:
    (one,) = found(with_loop(judged, 0, counts=(("HGMMA", 8),)), "tensor_count")
    assert one.message == "8 tensor core instructions in the main loop, 16 in the program"


def test_more_waits_than_written(judged: Judged) -> None:
    (one,) = found(with_loop(judged, 0, waits=50), "waits")
    assert one.message.startswith("50 barrier waits in an iteration, ")
    assert not one.serious


ISSUE, EXP = Run(kind="tensor", count=8), Run(kind="exp", count=64)
DRAIN, LEAVES_ONE = Run(kind="drain", count=1), Run(kind="drain", count=1, pending=1)


@pytest.mark.parametrize(
    ("order", "kept"),
    [
        ((ISSUE, EXP, DRAIN), 1),
        ((ISSUE, DRAIN, EXP), 0),
        ((EXP, ISSUE, DRAIN), 0),
        ((ISSUE, LEAVES_ONE, EXP, DRAIN), 1),
        ((ISSUE, ISSUE, LEAVES_ONE, EXP, DRAIN), 1),
        ((DRAIN, ISSUE, EXP), 1),
    ],
)
def test_exponentials_in_the_shadow_of_products(order: tuple[Run, ...], kept: int) -> None:
    """The order of a loop counts around its end: what is issued last may be waited for first."""
    from twillgpu.emit.feedback import _overlaps_left  # noqa: PLC0415

    one = GroupCode(
        name="g",
        maxreg=0,
        live_registers=0,
        spills=0,
        instructions=0,
        counts=(),
        order=(),
        loop=code.loop_code(order=order),
    )
    assert _overlaps_left(one) == kept


def test_an_overlap_that_did_not_survive() -> None:
    """In backward attention the exponentials run while the second product is in flight."""
    program = code.program("attention_bwd", "h100")
    judged = code.clean(program, {})
    broken = with_loop(judged, 0, order=(ISSUE, DRAIN, EXP))
    kept, lost = found(judged, "order"), found(broken, "order")
    assert not kept
    if judged.compiled.groups[0].loop.order:  # type: ignore[union-attr]
        assert "0 times in an iteration" in lost[0].message


def test_every_rule_is_broken_above() -> None:
    assert set(RULES) == {
        "smem_limit", "smem_plan", "tmem_limit", "spills", "reloads", "serialised", "setmaxnreg", "tensor_count",
        "order", "waits",
    }  # fmt: skip
