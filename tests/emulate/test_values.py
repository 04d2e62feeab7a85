"""Ops find the register values and the copies that they mean, or the symbolic check says which they do not."""

from dataclasses import replace

import number_programs as numbers
import pytest
import warp_programs as warp

from twillgpu.emulate.symbolic_check import check_trips
from twillgpu.lower.record import Execute, Get, Instruction, Iteration, Put, WarpProgram


def _hazards(program: WarpProgram, trips: int) -> list[str]:
    return [str(hazard) for hazard in check_trips(program, (trips,)).hazards]


@pytest.mark.parametrize("trips", [0, 1, 2, 5])
def test_a_good_program_has_all_it_uses(trips: int) -> None:
    assert check_trips(numbers.squares(2), (trips,)).sound


def test_a_value_from_before_the_loop_that_is_not_handed_over() -> None:
    """tile-ai/tilelang 2443: a value of before the loop that another group uses."""
    program = warp.edit(
        numbers.squares(2),
        "mma",
        lambda rest: [one for one in rest if "zero" not in getattr(one, "members", ())],
        "before",
    )
    assert "missing value: dot in group mma uses zero, which the group does not have (trips 3)" in _hazards(
        program, 3
    )
    assert (
        "missing value: put total_final in group mma uses zero, which the group does not have (trips 0)"
        in _hazards(program, 0)
    )


def test_a_value_that_is_used_before_it_is_computed() -> None:
    program = warp.edit(numbers.squares(2), "mma", lambda rest: [rest[-1], *rest[:-1]])
    assert not _hazards(program, 3)  # the iteration before was multiplied a round ago, though not yet drained
    assert check_trips(program, (3,)).races
    early = warp.edit(numbers.squares(2), "mma", lambda rest: [rest[0], rest[1]], "prologue")
    late = warp.edit(early, "mma", lambda rest: [_now(rest[-1]), *rest[:-1]])
    assert any(
        "total in group mma uses square" in text or "use in group mma uses square" in text
        for text in _hazards(late, 3)
    )


def _now(one: Instruction) -> Instruction:
    assert isinstance(one, Execute)
    return replace(one, iteration=Iteration(anchor="loop", offset=0))


def test_a_copy_of_another_iteration() -> None:
    def earlier(rest: list[Instruction]) -> list[Instruction]:
        dot = rest[1]
        assert isinstance(dot, Execute)
        read = replace(dot.reads[0], instance=warp.per_iteration(lag=1))
        return [rest[0], replace(dot, reads=(read,)), *rest[2:]]

    found = _hazards(warp.edit(numbers.squares(3), "mma", earlier), 4)
    assert "wrong slot: dot in group mma reads tile of iteration 0, and its operand is that of 1" in found


def test_a_handed_over_value_that_was_never_made() -> None:
    out = warp.access("out", warp.per_tile())
    program = warp.edit(
        numbers.squares(2), "producer", lambda _: [Put(value="total_final", iteration=None, access=out)], "after"
    )
    start = "missing value: put total_final in group producer uses total of iteration 1"
    assert any(text.startswith(start) for text in _hazards(program, 2))


def test_a_staged_value_of_another_iteration() -> None:
    """Before, only tiles that an op names were compared: a value read from the copy before was accepted where nobody
    writes that copy again.
    """

    def reads(lag: int) -> WarpProgram:
        out = warp.group(
            "out",
            [
                warp.wait("full"),
                Get(value="p", iteration=warp.NOW, access=warp.access("p", warp.per_iteration(lag=lag))),
                warp.arrive("empty"),
            ],
        )
        give: list[Instruction] = [
            warp.execute("p"),
            Put(value="p", iteration=warp.NOW, access=warp.access("p")),
            warp.arrive("full"),
        ]
        barriers = [warp.barrier("full", 3), warp.barrier("empty", 3)]
        body = [warp.op("p", (), "registers")]
        return warp.program([warp.group("give", give), out], [warp.ring("p", 3)], barriers, body)

    assert not _hazards(reads(0), 3)
    assert "wrong slot: get p in group out reads p of iteration -1, and its operand is that of 0" in _hazards(
        reads(1), 3
    )
