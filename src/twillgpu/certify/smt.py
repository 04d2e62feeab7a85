"""A scheduling question as SMT-LIB 2 text (QF_LIA): starts and groups are integers, rules as in the formulation.

Nothing here is shared with the clausal model: whatever holds modulo the interval is told instance by instance with
differences of starts, and sums are looked at where something begins, since they only rise there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal as Choice

from twillgpu.certify import smt_limits, smt_pauses
from twillgpu.certify.smt_text import Moment, Text
from twillgpu.costs.record import PricedEdge, PricedOp, Problem
from twillgpu.schedule.record import Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class SmtQuestion:
    """Is there a schedule of ``problem`` (in slots) of this interval and so many stages?

    ``rounding``: ``down`` where times were rounded down to slots: then staging is left out, and a wait in the very
    slot in which another op starts is allowed (``docs/search.md``). ``exact`` where a slot is a cycle.
    """

    problem: Problem
    interval: int
    stages: int
    rounding: Choice["down", "exact"]


def question_text(question: SmtQuestion, schedule: Schedule | None = None) -> str:
    """Return the question as a complete SMT-LIB script; with ``schedule``, whether it is a solution."""
    text = Text(question.problem, question.interval, question.stages)
    text.comment(
        f"{question.problem.name} on {question.problem.machine}: interval {question.interval} slots, "
        f"at most {question.stages} stages, times {question.rounding}"
    )
    for rule in (_times, _dependence, _capacity, _groups, _legality, _crossing, _concurrency):
        text.rule(rule.__name__.strip("_"))
        rule(text, question)
    text.rule("register_limit")
    smt_limits.registers(text)
    text.rule("memory_capacity")
    smt_limits.memories(text, down=question.rounding == "down")
    if schedule is not None:
        text.rule("the schedule")
        _fix(text, schedule)
    return text.script()


def _times(text: Text, question: SmtQuestion) -> None:
    length = question.stages * question.interval
    for op in question.problem.ops:
        start = text.start(op.name)
        text.check(f"(<= 0 {start})", f"(<= (+ {start} {max(1, op.latency_cycles)}) {length})")


def _after(text: Text, edge: PricedEdge, gap: int) -> str:
    shifted = gap - edge.distance * text.interval
    return f"(>= {text.start(edge.head)} (+ {text.start(edge.tail)} {text.number(shifted)}))"


def _dependence(text: Text, question: SmtQuestion) -> None:
    for edge in question.problem.edges:
        text.check(_after(text, edge, edge.latency_cycles))


def _capacity(text: Text, question: SmtQuestion) -> None:
    """Wherever a run of uses begins, what is held then fits."""
    for unit in question.problem.units:
        runs = [
            (op.name, use) for op in question.problem.ops for use in op.uses if use.unit == unit.name and use.amount
        ]
        if sum(use.amount * -(-use.cycles // text.interval) for _, use in runs) <= unit.capacity:
            continue
        for name, begun in runs:
            moment = Moment(op=name, cycles=begun.offset)
            held = []
            for other, use in runs:
                turns, rest = divmod(use.cycles, text.interval)
                held.append(str(turns * use.amount))
                if rest:
                    covers = text.since(moment, Moment(op=other, cycles=use.offset), 0, rest - 1)
                    held.append(text.weighted(use.amount, covers))
            text.check(f"(<= {text.total(held)} {unit.capacity})")


def _groups(text: Text, question: SmtQuestion) -> None:
    """Every op in one group, as wide as it needs; widths of the machine; the block's warps; the loads' group."""
    limits, ops = question.problem.groups, question.problem.ops
    rule = question.problem.rules.variable_latency
    apart = text.group_count > 1 and rule != "free" and any(op.variable_latency for op in ops)
    for op in ops:
        group = text.group(op.name)
        text.check(f"(<= 0 {group} {text.group_count - 1})")
        if apart and op.variable_latency:
            text.check(f"(= {group} 0)")
        elif apart and rule == "iff":
            text.check(f"(>= {group} 1)")
    for number in range(text.group_count):
        width = text.width(number)
        text.check(text.any_of(f"(= {width} {choice})" for choice in (0, *limits.warps)))
        for op in ops:
            text.check(f"(=> {text.is_in(op.name, number)} (>= {width} {op.warps}))")
    widths = text.total([text.width(group) for group in range(text.group_count)])
    text.check(f"(<= {widths} {limits.max_warps})")


def _legality(text: Text, question: SmtQuestion) -> None:
    for pair in question.problem.legality:
        if pair.relation != "pause":
            same = text.same(pair.first, pair.second)
            text.check(same if pair.relation == "together" else f"(not {same})")
    smt_pauses.pauses(text, down=question.rounding == "down")


def _crossing(text: Text, question: SmtQuestion) -> None:
    ops = {op.name: op for op in question.problem.ops}
    for edge in question.problem.edges:
        value = ops[edge.tail].value
        if edge.tail == edge.head or text.group_count == 1:
            continue
        same = text.same(edge.tail, edge.head)
        in_registers = value is not None and value.space == "registers"
        if not question.problem.rules.cross_group and edge.kind == "data" and in_registers:
            text.check(same)
        else:
            text.check(f"(or {same} {_after(text, edge, edge.latency_cycles + edge.handoff_cycles)})")


def _concurrency(text: Text, question: SmtQuestion) -> None:
    """A waiting op starts in no slot in which another op of its group is issuing."""
    first = 1 if question.rounding == "down" else 0
    for waiter in question.problem.ops:
        waits = _waits(text, [edge for edge in question.problem.edges if edge.head == waiter.name])
        for other in question.problem.ops:
            window = _window(question.problem, other)
            if other.name == waiter.name or window <= first or waits == "false":
                continue
            both = text.all_of((waits, text.same(waiter.name, other.name)))
            # A window of whole turns covers every slot, that of the op's own start included.
            if window - first < text.interval:
                busy = text.since(Moment(op=waiter.name), Moment(op=other.name), first, window - 1)
                both = text.all_of((both, busy))
            text.check(f"(not {both})")


def _window(problem: Problem, op: PricedOp) -> int:
    if problem.rules.concurrency == "issue":
        return op.issue_cycles
    return max((use.offset + use.cycles for use in op.uses), default=op.issue_cycles)


def _waits(text: Text, incoming: Iterable[PricedEdge]) -> str:
    incoming = list(incoming)
    if any(edge.blocking for edge in incoming):
        return "true"
    return text.any_of(f"(not {text.same(edge.tail, edge.head)})" for edge in incoming if edge.tail != edge.head)


def _fix(text: Text, schedule: Schedule) -> None:
    for op in schedule.ops:
        text.check(f"(= {text.start(op.name)} {op.start_cycle})", f"(= {text.group(op.name)} {op.group})")
    for index, group in enumerate(schedule.groups):
        text.check(f"(= {text.width(index)} {group.warps})")
        if text.problem.registers is not None:
            text.check(f"(= {text.quota(index)} {group.registers_per_thread})")
