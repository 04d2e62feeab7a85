"""Registers: the paper's sum over live values of each warp, or lifetimes and quotas as in docs/formulation.md."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from twillgpu.costs.record import PricedEdge, PricedOp
from twillgpu.machine.record import Registers
from twillgpu.schedule.paper.liveness import live
from twillgpu.schedule.paper.program import Program
from twillgpu.schedule.paper.rules_groups import wide, width_terms
from twillgpu.schedule.paper.smt import FALSE, TRUE, Terms, conjunction, disjunction, negation, total
from twillgpu.schedule.storage import Storage, storages


def register_limit(program: Program) -> None:
    """For all t and w: sum over v and i of live[v, i, t] opw[v, w] regs(v) <= reg_limit."""
    limits = program.problem.registers
    if limits is None:
        return
    if limits.smallest > limits.largest:
        program.script.require(FALSE)
        return
    if program.literal:
        _as_published(program, limits.largest - limits.overhead_per_thread)
        return
    quotas = [_quota(program, limits, group) for group in range(program.groups)]
    for group, quota in enumerate(quotas):
        _group_limit(program, limits, quota, group)
    if program.question.warps == "groups":
        _register_file(program, limits, quotas)


def _as_published(program: Program, limit: int) -> None:
    held = [
        (op.value.registers_per_thread, op.name)
        for op in program.problem.ops
        if op.value is not None and op.value.space == "registers" and op.value.registers_per_thread
    ]
    for moment in program.moments(program.end):
        for group in range(program.groups):
            terms = [
                (weight, conjunction((live(program, name, copy, cycle), program.inside(name, group))))
                for weight, name in held
                for copy, cycle in moment
            ]
            program.script.at_most(terms, limit)


def _quota(program: Program, limits: Registers, group: int) -> list[str]:
    """Return, per step above the smallest quota, "the quota of the group is at least so large"; all hold where
    warps have no quotas.
    """
    steps = (limits.largest - limits.smallest) // limits.quota_step
    if program.question.warps == "paper":
        return [TRUE] * steps
    quota = [program.script.boolean(f"quota {group} {step}") for step in range(1, steps + 1)]
    for low, high in pairwise(quota):
        program.script.implies((high,), low)
    return quota


def _group_limit(program: Program, limits: Registers, quota: list[str], group: int) -> None:
    constant: Terms = [(limits.overhead_per_thread, TRUE)]
    constant += [(limits.quota_step, negation(step)) for step in quota]
    lives: list[tuple[int, dict[int, str]]] = []
    for resident in program.problem.residents:
        held = disjunction(program.inside(user, group) for user in resident.users)
        constant.append((resident.registers_per_thread, held))
    for value in storages(program.problem, "registers"):
        weight = value.registers_per_thread
        if value.pinned:
            held = disjunction(program.inside(name, group) for name in value.members)
            constant.append((weight, held))
            lives.append((weight, dict(_copies(program, value, group))))
        else:
            lives.append((weight, dict(_live(program, value, group))))
    last = max((cycle + 1 for _, found in lives for cycle in found), default=0)
    for moment in program.moments(last):
        terms = [(weight, found.get(cycle, FALSE)) for weight, found in lives for _, cycle in moment]
        program.script.at_most([*constant, *terms], limits.smallest + limits.quota_step * len(quota))


def _live(program: Program, value: Storage, group: int) -> Iterator[tuple[int, str]]:
    """Yield (cycle, "the storage of copy 0 is live in ``group``"): at home, or as a copy on the way."""
    for cycle in _cycles(program, value):
        home = [
            conjunction((program.inside(member, group), program.begun(member, 0, cycle), ahead))
            for ahead in (_kept_at_home(program, value, group, cycle),)
            for member in value.members
        ]
        term = disjunction([*home, *_away_terms(program, value, group, cycle)])
        if term != FALSE:
            yield cycle, _flag(program, f"held {value.name} {group} {cycle}", term)


def _copies(program: Program, value: Storage, group: int) -> Iterator[tuple[int, str]]:
    """Yield the same for copies of a storage that is occupied all the time in its own group."""
    for cycle in _cycles(program, value):
        term = disjunction(_away_terms(program, value, group, cycle))
        if term != FALSE:
            yield cycle, _flag(program, f"copied {value.name} {group} {cycle}", term)


def _flag(program: Program, label: str, term: str) -> str:
    """Return a symbol that holds where ``term`` does."""
    if not term.startswith("("):
        return term
    flag = program.script.boolean(label)
    program.script.clause(negation(term), flag)
    return flag


def _cycles(program: Program, value: Storage) -> range:
    first = min(program.ranges[name][0] for name in value.members)
    return range(first, max(_latest_end(program, program.ops[name]) for name in value.members))


def _latest_end(program: Program, op: PricedOp) -> int:
    ends = [
        program.ranges[edge.head][1] + edge.distance * program.interval + _held(program, edge)
        for edge in program.consumers(op.name)
    ]
    return max([program.ranges[op.name][1] + op.latency_cycles + op.handoff_cycles, *ends])


def _held(program: Program, edge: PricedEdge) -> int:
    return max(edge.read_cycles, program.ops[edge.head].issue_cycles)


def _kept_at_home(program: Program, value: Storage, group: int, cycle: int) -> str:
    """Return "some member in ``group`` is still being written, read there, or written out"."""
    return disjunction(
        conjunction((program.inside(name, group), _needed(program, program.ops[name], group, cycle)))
        for name in value.members
    )


def _needed(program: Program, op: PricedOp, group: int, cycle: int) -> str:
    written = op.latency_cycles + op.handoff_cycles
    terms = [negation(program.begun(op.name, 0, cycle - op.latency_cycles))]
    for edge in program.consumers(op.name):
        read = program.begun(edge.head, edge.distance, cycle - edge.read_cycles)
        there = program.inside(edge.head, group)
        terms.append(conjunction((there, negation(read))))
        terms.append(conjunction((negation(there), negation(program.begun(op.name, 0, cycle - written)))))
    return disjunction(terms)


def _away_terms(program: Program, value: Storage, group: int, cycle: int) -> Iterator[str]:
    """Yield, per member, "a copy is live in ``group``": from the first reader's start there to the last one's end."""
    if program.groups == 1:
        return
    for name in value.members:
        readers = [edge for edge in program.consumers(name) if edge.head not in value.members]
        opened = disjunction(
            conjunction((program.inside(edge.head, group), program.begun(edge.head, edge.distance, cycle)))
            for edge in readers
        )
        ahead = disjunction(_reading(program, edge, group, cycle) for edge in readers)
        yield conjunction((negation(program.inside(name, group)), opened, ahead))


def _reading(program: Program, edge: PricedEdge, group: int, cycle: int) -> str:
    ended = program.begun(edge.head, edge.distance, cycle - _held(program, edge))
    return conjunction((program.inside(edge.head, group), negation(ended)))


def _register_file(program: Program, limits: Registers, quotas: list[list[str]]) -> None:
    """Sum over groups of 32 x warps x quota, padding to 4 warps included, <= what a block of so many warps gets."""
    most = -(-program.problem.groups.max_warps // 4)
    if all(32 * 4 * fours * limits.largest <= limits.pool(4 * fours) for fours in range(1, most + 1)):
        return
    script = program.script
    warps = width_terms(program)
    shares = [term for group, quota in enumerate(quotas) for term in _share(program, limits, quota, group)]
    at_least = [TRUE, *(script.boolean(f"block beyond {4 * fours}") for fours in range(1, most)), FALSE]
    for fours in range(1, most + 1):
        larger, exactly = at_least[fours], conjunction((at_least[fours - 1], negation(at_least[fours])))
        script.implies((larger,), at_least[fours - 1])
        script.clause(larger, f"(<= {total(warps)} {4 * fours})")
        script.clause(negation(larger), f"(> {total(warps)} {4 * fours})")
        taken = total([(32 * weight, term) for weight, term in shares])
        padding = f"(* {32 * limits.quota_min} (- {4 * fours} {total(warps)}))"
        script.implies((exactly,), f"(<= (+ {taken} {padding}) {limits.pool(4 * fours)})")


def _share(program: Program, limits: Registers, quota: list[str], group: int) -> Terms:
    """Return weighted formulas that sum to warps x quota of one group."""
    terms: Terms = []
    previous = 0
    for width in program.problem.groups.warps:
        term = program.script.named(f"wide {group} {width}", wide(program, group, width))
        terms.append(((width - previous) * limits.smallest, term))
        terms += [((width - previous) * limits.quota_step, conjunction((term, step))) for step in quota]
        previous = width
    return terms
