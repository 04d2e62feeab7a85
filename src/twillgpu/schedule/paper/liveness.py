"""The paper's live[v, i, t] on the straight-line program: a value lives until its last user starts."""

from __future__ import annotations

from twillgpu.schedule.paper.program import Program
from twillgpu.schedule.paper.smt import disjunction, negation

LIVE = "live"


def live(program: Program, name: str, copy: int, cycle: int) -> str:
    """Return live[v, i, t]; the constraints that define it are stated where it is first asked for."""
    return program.once(f"{LIVE} {name} {copy}", lambda: _define(program, name, copy))[cycle]


def _define(program: Program, name: str, copy: int) -> tuple[str, ...]:
    """State the three groups of constraints, backwards from the last cycle of Q, for one value of one copy."""
    script = program.script
    lives = tuple(script.boolean(f"{LIVE} {name} {copy} {cycle}") for cycle in range(program.end))
    carried = any(edge.distance for edge in program.consumers(name)) and copy == program.copies - 1
    script.require(lives[-1] if carried else negation(lives[-1]))
    for cycle in range(1, program.end):
        used = disjunction(
            program.op(edge.head, copy + edge.distance, cycle)
            for edge in program.consumers(name)
            if program.has(copy + edge.distance)
        )
        defined = program.op(name, copy, cycle)
        now, before = lives[cycle], lives[cycle - 1]
        script.clause(negation(now), defined, before)
        script.implies((used,), before)
        script.clause(now, used, negation(before))
    return lives
