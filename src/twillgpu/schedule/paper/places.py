"""Places in a memory: each value gets a ring of copies, and rings that are ever live together lie apart."""

from __future__ import annotations

from dataclasses import dataclass

from twillgpu.schedule.paper.program import Program
from twillgpu.schedule.paper.smt import FALSE, disjunction, negation, total


@dataclass(frozen=True, slots=True, kw_only=True)
class Ring:
    """Units of one copy, and per slot of the period the formulas of the instances that may be live in it."""

    units: int
    lives: tuple[tuple[str, ...], ...]

    @property
    def most(self) -> int:
        """The largest number of instances that may be live at once."""
        return max([1, *(len(live) for live in self.lives)])


def place(program: Program, memory: str, rings: list[Ring], room: int) -> None:
    """State that every ring has a place within ``room`` units, as many copies as instances live at once.

    Copies of two rings could share bytes copy by copy where whole rings cannot; this forbids it. So it only serves to
    find schedules, never to refute an interval.
    """
    if sum(ring.units * ring.most for ring in rings) <= room:
        return
    spans = [_span(program, f"{memory} {index}", ring, room) for index, ring in enumerate(rings)]
    busy = [[disjunction(live) for live in ring.lives] for ring in rings]
    for right in range(len(rings)):
        for left in range(right):
            if any(FALSE not in (mine, other) for mine, other in zip(busy[left], busy[right], strict=True)):
                _apart(program, f"{memory} {left} {right}", (spans[left], spans[right]), (busy[left], busy[right]))


def _span(program: Program, label: str, ring: Ring, room: int) -> tuple[str, str]:
    """Return the begin and the end of a ring as integer terms, and state that it is large enough and in the room."""
    script = program.script
    copies = script.integer(f"copies {label}", 1, max(1, min(ring.most, room // ring.units)))
    begin = script.integer(f"place {label}", 0, max(0, room - ring.units))
    end = f"(+ {begin} (* {ring.units} {copies}))"
    script.require(f"(<= {end} {room})")
    for live in ring.lives:
        if len(live) > 1:
            script.require(f"(<= {total([(1, term) for term in live])} {copies})")
    return begin, end


def _apart(
    program: Program,
    label: str,
    spans: tuple[tuple[str, str], tuple[str, str]],
    busy: tuple[list[str], list[str]],
) -> None:
    """State that two rings lie one before the other where some slot has an instance of each."""
    script = program.script
    before, after = script.boolean(f"before {label}"), script.boolean(f"after {label}")
    (begin, end), (other_begin, other_end) = spans
    script.implies((before,), f"(<= {end} {other_begin})")
    script.implies((after,), f"(<= {other_end} {begin})")
    for mine, other in zip(*busy, strict=True):
        script.clause(negation(mine), negation(other), before, after)
