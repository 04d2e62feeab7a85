"""Registers and memories in SMT-LIB: lifetimes from the formulation, counted wherever something begins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from twillgpu.certify.smt_text import Moment, Text
from twillgpu.costs.record import PricedEdge, PricedOp, PricedValue
from twillgpu.machine.record import Memory, Registers

Edges = tuple[tuple[str, Moment], ...]
"""Conditions and moments: the first (or last) of the moments whose condition holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """Weight that is live in every iteration from the first of ``begins`` to the last of ``ends``, where ``present``
    holds; all the time if pinned.
    """

    weight: int
    present: str
    begins: Edges = ()
    ends: Edges = ()
    pinned: bool = False


class Values:
    """The values of a problem and who reads them."""

    def __init__(self, text: Text) -> None:
        self.text = text
        self.ops = {op.name: op for op in text.problem.ops}
        self.readers: dict[str, list[PricedEdge]] = {name: [] for name in self.ops}
        for edge in text.problem.edges:
            if edge.kind == "data":
                self.readers[edge.tail].append(edge)

    def classes(self, space: str) -> list[list[str]]:
        """Return the ops whose values share a storage, for each storage of a space."""
        found: dict[str, list[str]] = {}
        for op in self.ops.values():
            if op.value is not None and op.value.space == space:
                found.setdefault(f"alias {op.value.alias}" if op.value.alias else f"op {op.name}", []).append(op.name)
        return list(found.values())

    def held(self, name: str) -> PricedValue:
        """Return the value of an op that has one."""
        value = self.ops[name].value
        if value is None:
            raise ValueError(name)
        return value

    def pinned(self, members: list[str]) -> bool:
        """Return whether a class is updated in place across iterations."""
        aliased = self.held(members[0]).alias is not None
        return aliased and any(edge.distance for name in members for edge in self.readers[name])

    def read_end(self, edge: PricedEdge, cycles: int) -> Moment:
        """Return the moment ``cycles`` after the reader's start, in the iteration that reads."""
        return Moment(op=edge.head, cycles=edge.distance * self.text.interval + cycles)


def registers(text: Text) -> None:
    """Registers per thread of what is live in a group fit its quota, and all quotas the register file."""
    limits = text.problem.registers
    if limits is None:
        return
    values = Values(text)
    for group in range(text.group_count):
        step = text.declare(f"step{group}")
        text.check(f"(= {text.quota(group)} (* {limits.quota_step} {step}))")
        text.check(f"(<= {limits.smallest} {text.quota(group)} {limits.largest})")
        lives = [*_residents(text, group), *_homes(values, group), *_copies(values, group)]
        room = f"(- {text.quota(group)} {limits.overhead_per_thread})"
        _fit(text, lives, room, [Moment(op=name) for name in values.ops])
    _file(text, limits)


def _fit(text: Text, lives: list[Life], room: str, moments: list[Moment]) -> None:
    """Assert that what is live fits at every moment at which something may begin."""
    always = [text.weighted(life.weight, life.present) for life in lives if life.pinned]
    passing = [life for life in lives if not life.pinned]
    if not passing:
        text.check(f"(<= {text.total(always)} {room})" if always else "true")
        return
    constant = text.define(text.total(always))
    for moment in moments:
        now = [text.weighted(life.weight, live) for life in passing for live in _instances(text, life, moment)]
        text.check(f"(<= {text.total([constant, *now])} {room})")


def _instances(text: Text, life: Life, moment: Moment) -> Iterator[str]:
    """Yield for every iteration whether its instance is live at a moment: begun, and not ended."""
    longest = max(abs(other.cycles) for _, other in (*life.begins, *life.ends)) + abs(moment.cycles)
    reach = text.stages + 1 + longest // text.interval
    for turn in range(-reach, text.stages + 1):
        begun = text.any_of(text.all_of((cond, text.not_later(at, moment, turn))) for cond, at in life.begins)
        going = text.any_of(
            text.all_of((cond, text.not_later(replace(moment, cycles=moment.cycles + 1), at, -turn)))
            for cond, at in life.ends
        )
        yield text.all_of((life.present, begun, going))


def _residents(text: Text, group: int) -> Iterator[Life]:
    for resident in text.problem.residents:
        used = text.any_of(text.is_in(user, group) for user in resident.users)
        yield Life(weight=resident.registers_per_thread, present=used, pinned=True)


def _homes(values: Values, group: int) -> Iterator[Life]:
    """Yield what is live of each storage in a group that holds one of its writers."""
    text = values.text
    for members in values.classes("registers"):
        weight = max(values.held(name).registers_per_thread for name in members)
        present = text.any_of(text.is_in(name, group) for name in members)
        if values.pinned(members):
            yield Life(weight=weight, present=present, pinned=True)
            continue
        begins = tuple((text.is_in(name, group), Moment(op=name)) for name in members)
        ends = tuple(end for name in members for end in _home_ends(values, name, group))
        yield Life(weight=weight, present=present, begins=begins, ends=ends)


def _home_ends(values: Values, name: str, group: int) -> Iterator[tuple[str, Moment]]:
    text, op = values.text, values.ops[name]
    here = text.is_in(name, group)
    yield here, Moment(op=name, cycles=op.latency_cycles)
    for edge in values.readers[name]:
        there = text.is_in(edge.head, group)
        yield text.all_of((here, there)), values.read_end(edge, edge.read_cycles)
        written = Moment(op=name, cycles=op.latency_cycles + op.handoff_cycles)
        yield text.all_of((here, f"(not {there})")), written


def _copies(values: Values, group: int) -> Iterator[Life]:
    """Yield what is live of each value in a group that only reads it."""
    text = values.text
    for members in values.classes("registers"):
        weight = max(values.held(name).registers_per_thread for name in members)
        for name in members:
            edges = [edge for edge in values.readers[name] if edge.head not in members]
            if not edges or text.group_count == 1:
                continue
            away = f"(not {text.is_in(name, group)})"
            reads = [(text.is_in(edge.head, group), edge) for edge in edges]
            begins = tuple((here, values.read_end(edge, 0)) for here, edge in reads)
            ends = tuple(
                (here, values.read_end(edge, max(edge.read_cycles, values.ops[edge.head].issue_cycles)))
                for here, edge in reads
            )
            yield Life(weight=weight, present=away, begins=begins, ends=ends)


def _file(text: Text, limits: Registers) -> None:
    """32 x (warps x quota of every group, and the smallest quota for padding to four warps) <= what a block gets."""
    shares = []
    for group in range(text.group_count):
        share, width = text.declare(f"share{group}"), text.width(group)
        shares.append(share)
        for warps in (0, *text.problem.groups.warps):
            amount = f"(* {warps} {text.quota(group)})" if warps else "0"
            text.check(f"(=> (= {width} {warps}) (= {share} {amount}))")
    fours, total = text.declare("fours"), text.total([text.width(group) for group in range(text.group_count)])
    text.check(f"(<= (- (* 4 {fours}) 3) {total})", f"(<= {total} (* 4 {fours}))")
    for count in range(1, -(-text.problem.groups.max_warps // 4) + 1):
        padding = f"(* {limits.quota_min} (- {4 * count} {total}))"
        taken = f"(* 32 {text.total([*shares, padding])})"
        text.check(f"(=> (= {fours} {count}) (<= {taken} {limits.pool(4 * count)}))")


def memories(text: Text, *, down: bool) -> None:
    """Bytes of what is live fit each memory beside what is fixed; places are not part of the question."""
    values = Values(text)
    fixed = dict(text.problem.fixed_bytes)
    for memory in text.problem.memories:
        room = (memory.capacity_bytes - fixed.get(memory.name, 0)) // memory.alignment_bytes
        lives = [_buffer(values, members, memory, down=down) for members in values.classes(memory.name)]
        moments = [Moment(op=name) for name, op in values.ops.items() if op.value and op.value.space == memory.name]
        if memory.name == "smem" and not down and text.problem.rules.cross_group and text.group_count > 1:
            for op in values.ops.values():
                staged = list(_staging(values, op, memory))
                lives += staged
                moments += [moment for life in staged for _, moment in life.begins]
        _fit(text, lives, str(room), moments)


def _units(size: int, memory: Memory) -> int:
    return -(-size // memory.alignment_bytes)


def _buffer(values: Values, members: list[str], memory: Memory, *, down: bool) -> Life:
    """Return the lifetime of a storage: while it is written, and until the last reader has read it."""
    weight = _units(max(values.held(name).bytes for name in members), memory)
    if values.pinned(members):
        return Life(weight=weight, present="true", pinned=True)
    ends = []
    for name in members:
        op = values.ops[name]
        filling = op.latency_cycles if values.readers[name] else op.real_latency_cycles
        ends.append(("true", Moment(op=name, cycles=filling if down else max(1, filling))))
        ends += [("true", values.read_end(edge, edge.read_cycles)) for edge in values.readers[name]]
    begins = tuple(("true", Moment(op=name)) for name in members)
    return Life(weight=weight, present="true", begins=begins, ends=tuple(ends))


def _staging(values: Values, op: PricedOp, memory: Memory) -> Iterator[Life]:
    """Yield the copy of a register value on its way to other groups."""
    text = values.text
    if op.value is None or op.value.space != "registers" or not op.staging_bytes:
        return
    away = [
        (f"(not {text.same(op.name, edge.head)})", edge) for edge in values.readers[op.name] if edge.head != op.name
    ]
    if not away:
        return
    begins = (("true", Moment(op=op.name, cycles=op.latency_cycles)),)
    ends = tuple((crosses, values.read_end(edge, 0)) for crosses, edge in away)
    yield Life(weight=_units(op.staging_bytes, memory), present="true", begins=begins, ends=ends)
