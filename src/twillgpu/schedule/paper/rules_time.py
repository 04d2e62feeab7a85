"""Rules about time, the paper's Figure 4: a valid modulo schedule on the straight-line program."""

from __future__ import annotations

from twillgpu.graph.record import Use
from twillgpu.schedule.paper.program import Program
from twillgpu.schedule.paper.smt import FALSE, TRUE, Terms, disjunction, negation


def uniqueness(program: Program) -> None:
    """sum_t op[v, i, t] = 1: what has begun stays so, hence op[v, i, t] holds at exactly one cycle."""
    for name, (first, last) in program.ranges.items():
        for copy in program.tied():
            shift = copy * program.interval
            for cycle in range(first + 1, last):
                before = program.begun(name, copy, cycle + shift - 1)
                program.script.clause(negation(before), program.begun(name, copy, cycle + shift))


def consistency(program: Program) -> None:
    """op[v, i, t] = op[v, i + 1, t + I]; where copies share variables, the first op of copy 0 starts at cycle 0."""
    if not program.literal:
        # A schedule may be moved to earlier cycles as a whole: nothing is lost.
        program.script.require(disjunction(program.op(name, 0, 0) for name in program.ops))
        return
    for name, (first, last) in program.ranges.items():
        for copy in range(1, program.copies):
            for cycle in range(first + copy * program.interval, last + copy * program.interval):
                earlier = program.begun(name, copy - 1, cycle - program.interval)
                program.script.require(f"(= {program.begun(name, copy, cycle)} {earlier})")


def completion(program: Program) -> None:
    """Every op of copy 0 ends by L, hence every op of Q by T: M(v) + cycles(v) <= L.

    The ranges of the variables already end there, so that what is asserted is constant.
    """
    for op in program.problem.ops:
        latest = program.length - max(1, op.latency_cycles)
        for copy in program.tied():
            program.script.require(program.begun(op.name, copy, latest + copy * program.interval))


def dependence(program: Program) -> None:
    """op[u, i, t] implies that op[v, i + delta, t'] does not hold for t' < t + d."""
    for edge in program.problem.edges:
        after(program, edge.tail, edge.head, edge.latency_cycles, edge.distance, unless=FALSE)


def after(program: Program, tail: str, head: str, latency: int, distance: int, *, unless: str) -> None:
    """State that ``head`` starts ``latency`` after ``tail``, ``distance`` copies on, unless a formula holds."""
    first, last = program.ranges[head]
    for copy in program.tied():
        other = copy + distance
        if not program.has(other):
            continue
        shift = other * program.interval
        for cycle in range(first + shift, last + shift + 1):
            before = program.begun(tail, copy, cycle - latency)
            if before == TRUE:
                break
            program.script.clause(unless, negation(program.begun(head, other, cycle)), before)


def capacity(program: Program) -> None:
    """For all f and t: the amounts of f held at t, summed over ops, copies and runs, are at most cap(f)."""
    for unit in program.problem.units:
        runs = [(op.name, use) for op in program.problem.ops for use in op.uses if use.unit == unit.name]
        held = [(name, use) for name, use in runs if use.amount and use.cycles]
        last = max([0, *(program.ranges[name][1] + use.offset + use.cycles for name, use in held)])
        for moment in program.moments(last) if held else ():
            program.script.at_most(_holders(program, held, moment), unit.capacity)


def _holders(program: Program, runs: list[tuple[str, Use]], moment: list[tuple[int, int]]) -> Terms:
    return [
        (use.amount, program.during(name, copy, cycle - use.offset, use.cycles))
        for name, use in runs
        for copy, cycle in moment
    ]
