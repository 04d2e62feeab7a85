"""A second opinion on schedules: run the loop cycle by cycle and look for accidents.

Iterations are executed one by one; every resource is a table of cells (a cycle of a unit, of a group's registers,
of a byte of memory) that ops fill in. Nothing of ``twillgpu.verify`` is used. Slow, for tiny problems only.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import lcm

from twillgpu.costs.record import PricedEdge, PricedOp, Problem
from twillgpu.schedule.record import Buffer, Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """What occupies a buffer in iteration 0: name, space, bytes of a copy, first cycle, cycle after the last."""

    name: str
    space: str
    bytes: int
    start: int
    end: int
    pinned: bool


class Execution:
    """The schedule of a problem, executed for enough iterations to have seen everything that can happen."""

    def __init__(self, problem: Problem, schedule: Schedule) -> None:
        self.problem, self.schedule, self.interval = problem, schedule, schedule.ii_cycles
        self.ops = {op.name: op for op in problem.ops}
        self.start = {op.name: op.start_cycle for op in schedule.ops}
        self.group = {op.name: op.group for op in schedule.ops}
        self.readers: dict[str, list[PricedEdge]] = defaultdict(list)
        for edge in problem.edges:
            if edge.kind == "data":
                self.readers[edge.tail].append(edge)
        self.classes: dict[tuple[str, str], list[PricedOp]] = defaultdict(list)
        for op in problem.ops:
            if op.value is not None:
                name = f"={op.name}" if op.value.alias is None else op.value.alias
                self.classes[op.value.space, name].append(op)

    def iterations(self) -> int:
        """Return how many iterations to execute: until the last use, twice the rings' common period, and more."""
        lasting = max(op.real_latency_cycles + op.handoff_cycles + op.issue_cycles for op in self.ops.values())
        stages = (max(self.start.values()) + lasting) // self.interval + 2
        distance = max((edge.distance for edge in self.problem.edges), default=0)
        return stages + distance + 2 * lcm(*(max(buffer.depth, 1) for buffer in self.schedule.buffers), 1)

    def crosses(self, edge: PricedEdge) -> bool:
        return self.group[edge.tail] != self.group[edge.head]

    def pinned(self, members: list[PricedOp]) -> bool:
        aliased = members[0].value is not None and members[0].value.alias is not None
        return aliased and any(edge.distance > 0 for op in members for edge in self.readers[op.name])

    def written_out(self, op: PricedOp) -> int:
        end = self.start[op.name] + op.latency_cycles
        return end + (op.handoff_cycles if any(map(self.crosses, self.readers[op.name])) else 0)

    def read_at(self, edge: PricedEdge) -> int:
        return self.start[edge.head] + edge.distance * self.interval


def faults(problem: Problem, schedule: Schedule) -> set[str]:
    """Return the names of the rules that the execution sees broken (not ``uniqueness`` and ``consistency``)."""
    run = Execution(problem, schedule)
    checks = {
        "dependence": _order(run) or _overwrites(run),
        "capacity": _units(run),
        "memory_capacity": _memory(run),
        "warp_uniqueness": _warps(run),
        "variable_latency": _variable(run),
        "register_limit": _registers(run),
        "cross_warp_spill": _handoffs(run),
        "concurrency": _issue(run),
        "legality": any(
            (run.group[pair.first] == run.group[pair.second]) != (pair.relation == "together")
            for pair in problem.legality
            if pair.relation != "pause"
        )
        or any(_restless(run, rule) for rule in {pair.rule for pair in problem.legality if pair.relation == "pause"}),
    }
    return {rule for rule, broken in checks.items() if broken}


def _restless(run: Execution, rule: str) -> bool:
    """Return whether a group is never, in two periods of the steady state, without a product in flight."""
    ends: dict[str, list[int]] = defaultdict(list)
    for pair in run.problem.legality:
        if pair.rule == rule:
            ends[pair.first].append(run.start[pair.second] + pair.distance * run.interval)
    count = run.iterations() + 2
    last = (count - 1) * run.interval
    for group in {run.group[name] for name in ends}:
        flying = {
            cycle
            for name in (name for name in ends if run.group[name] == group)
            for turn in range(-count, count)
            for cycle in range(run.start[name] + 1 + turn * run.interval, min(ends[name]) + 1 + turn * run.interval)
        }
        if all(cycle in flying for cycle in range(last - 2 * run.interval, last)):
            return True
    return False


def lives(run: Execution) -> list[Life]:
    """Return what needs a buffer, values and staging copies."""
    found = []
    for (space, name), members in run.classes.items():
        if space != "registers":
            sizes = [op.value.bytes for op in members if op.value is not None]
            start = min(run.start[op.name] for op in members)
            end = max([start + 1, *(_last_cycle(run, op) for op in members)])
            found.append(
                Life(
                    name=name.lstrip("="),
                    space=space,
                    bytes=max(sizes),
                    start=start,
                    end=end,
                    pinned=run.pinned(members),
                )
            )
    return found + [life for op in run.ops.values() for life in _staging(run, op)]


def live_at_once(run: Execution, life: Life) -> int:
    """Return the most instances of a buffer that live at once, by counting at every cycle."""
    if life.pinned:
        return 1
    counts = Counter(
        cycle
        for iteration in range(2 * ((life.end - life.start) // run.interval + 2))
        for cycle in range(life.start + iteration * run.interval, life.end + iteration * run.interval)
    )
    return max(counts.values())


def _last_cycle(run: Execution, op: PricedOp) -> int:
    readers = run.readers[op.name]
    own = op.latency_cycles if readers else op.real_latency_cycles
    return max([run.start[op.name] + own, *(run.read_at(edge) + edge.read_cycles for edge in readers)])


def _staging(run: Execution, op: PricedOp) -> Iterator[Life]:
    ends = [run.read_at(edge) for edge in run.readers[op.name] if run.crosses(edge)]
    charged = op.staging_bytes and any(memory.name == "smem" for memory in run.problem.memories)
    if op.value is not None and op.value.space == "registers" and ends and charged:
        start = run.start[op.name] + op.latency_cycles
        end = max(start + 1, *ends)
        yield Life(
            name=f"{op.name}.staging", space="smem", bytes=op.staging_bytes, start=start, end=end, pinned=False
        )


def _order(run: Execution) -> bool:
    count, step = run.iterations(), run.interval
    return any(
        run.start[edge.head] + i * step < run.start[edge.tail] + (i - edge.distance) * step + edge.latency_cycles
        for edge in run.problem.edges
        for i in range(edge.distance, count)
    )


def _handoffs(run: Execution) -> bool:
    for edge in filter(run.crosses, run.problem.edges):
        value = run.ops[edge.tail].value
        held = edge.kind == "data" and value is not None and value.space == "registers"
        if held and not run.problem.rules.cross_group:
            return True
        if run.read_at(edge) < run.start[edge.tail] + edge.latency_cycles + edge.handoff_cycles:
            return True
    return False


def _units(run: Execution) -> bool:
    held: Counter[tuple[str, int]] = Counter()
    for op in run.ops.values():
        for item in op.uses:
            for i in range(run.iterations()):
                first = run.start[op.name] + i * run.interval + item.offset
                for cycle in range(first, first + item.cycles):
                    held[item.unit, cycle] += item.amount
    limit = {unit.name: unit.capacity for unit in run.problem.units}
    return any(amount > limit[unit] for (unit, _), amount in held.items())


def _warps(run: Execution) -> bool:
    groups, limits = run.schedule.groups, run.problem.groups
    if any(not 0 <= index < len(groups) for index in run.group.values()):
        return True
    narrow = any(groups[run.group[op.name]].warps < op.warps for op in run.ops.values())
    idle = set(run.group.values()) != set(range(len(groups)))
    odd = any(group.warps not in limits.warps for group in groups)
    return narrow or idle or odd or len(groups) > limits.max or sum(g.warps for g in groups) > limits.max_warps


def _variable(run: Execution) -> bool:
    variable = {op.name for op in run.ops.values() if op.variable_latency}
    in_first = {name for name, group in run.group.items() if group == 0}
    option = run.problem.rules.variable_latency
    if option == "free" or not variable or run.problem.groups.max == 1:
        return False
    return in_first != variable if option == "iff" else not variable <= in_first


def _issue(run: Execution) -> bool:
    """Let every op start, and see whether a waiting one starts while another of its group is issuing."""
    waiting = {edge.head for edge in run.problem.edges if edge.blocking or run.crosses(edge)}
    busy: dict[tuple[int, int], set[str]] = defaultdict(set)
    for op in run.ops.values():
        window = op.issue_cycles
        if run.problem.rules.concurrency == "paper":
            window = max([0, *(item.offset + item.cycles for item in op.uses)])
        for i in range(run.iterations()):
            first = run.start[op.name] + i * run.interval
            for cycle in range(first, first + window):
                busy[run.group[op.name], cycle].add(op.name)
    return any(
        busy[run.group[name], run.start[name] + i * run.interval] - {name}
        for name in waiting
        for i in range(run.iterations())
    )


def _registers(run: Execution) -> bool:
    limits, groups = run.problem.registers, run.schedule.groups
    if limits is None:
        return any(group.registers_per_thread for group in groups)
    quotas = [group.registers_per_thread for group in groups]
    legal = range(0, limits.per_thread + 1, limits.quota_step)
    if any(quota not in legal or quota < limits.quota_min for quota in quotas):
        return True
    threads = [32 * group.warps for group in groups]
    while sum(threads) % 128:
        threads, quotas = [*threads, 32], [*quotas, limits.quota_min]
    equal = limits.per_sm // sum(threads)
    shared = sum(threads) * (equal - equal % limits.quota_step)
    if sum(count * quota for count, quota in zip(threads, quotas, strict=True)) > shared:
        return True
    held = _registers_held(run)
    return any(
        max([0, *(amount for (where, _), amount in held.items() if where == index)]) + limits.overhead_per_thread
        > group.registers_per_thread
        for index, group in enumerate(groups)
    )


def _registers_held(run: Execution) -> Counter[tuple[int, int]]:
    """Return the registers per thread held in each group at each cycle."""
    held: Counter[tuple[int, int]] = Counter()
    for group, start, end, amount in _spells_of_all(run):
        for i in range(run.iterations()):
            for cycle in range(start + i * run.interval, end + i * run.interval):
                held[group, cycle] += amount
    for group, amount in _always_held(run):
        for cycle in range(run.iterations() * run.interval):
            held[group, cycle] += amount
    return held


def _always_held(run: Execution) -> Iterator[tuple[int, int]]:
    """Yield (group, registers) of what never goes away."""
    for (space, _), members in run.classes.items():
        if space == "registers" and run.pinned(members):
            for group in {run.group[op.name] for op in members}:
                yield group, _largest(members)
    for resident in run.problem.residents:
        for group in {run.group[user] for user in resident.users}:
            yield group, resident.registers_per_thread


def _spells_of_all(run: Execution) -> Iterator[tuple[int, int, int, int]]:
    for (space, _), members in run.classes.items():
        if space == "registers":
            yield from _spells(run, members)


def _largest(members: list[PricedOp]) -> int:
    return max(op.value.registers_per_thread for op in members if op.value is not None)


def _spells(run: Execution, members: list[PricedOp]) -> Iterator[tuple[int, int, int, int]]:
    """Yield (group, start, end, registers) of iteration 0, for a value or class and for its copies."""
    names = {op.name for op in members}
    for group in {run.group[name] for name in names} if not run.pinned(members) else ():
        here = [op for op in members if run.group[op.name] == group]
        near = [
            run.read_at(edge) + edge.read_cycles
            for op in here
            for edge in run.readers[op.name]
            if not run.crosses(edge)
        ]
        start = min(run.start[op.name] for op in here)
        yield group, start, max([*near, *(run.written_out(op) for op in here)]), _largest(members)
    for op in members:
        far: dict[int, list[PricedEdge]] = defaultdict(list)
        for edge in run.readers[op.name]:
            if run.crosses(edge) and edge.head not in names:
                far[run.group[edge.head]].append(edge)
        for group, edges in far.items():
            start = min(map(run.read_at, edges))
            ends = [run.read_at(edge) + max(edge.read_cycles, run.ops[edge.head].issue_cycles) for edge in edges]
            yield group, start, max(ends), _largest([op])


def _memory(run: Execution) -> bool:
    needed = {life.name: life for life in lives(run)}
    buffers = {buffer.name: buffer for buffer in run.schedule.buffers}
    if set(needed) != set(buffers) or len(buffers) != len(run.schedule.buffers):
        return True
    pairs = [(buffer, needed[name]) for name, buffer in buffers.items()]
    misfits = any(_misfit(run, buffer, life) or _misplaced(run, buffer) for buffer, life in pairs)
    return misfits or _two_in_one_byte(run, pairs)


def _misfit(run: Execution, buffer: Buffer, life: Life) -> bool:
    if buffer.space != life.space or buffer.bytes < life.bytes or buffer.depth < 1:
        return True
    return buffer.depth_floor != live_at_once(run, life) or (life.pinned and buffer.depth != 1)


def _misplaced(run: Execution, buffer: Buffer) -> bool:
    if buffer.offset_bytes < dict(run.problem.fixed_bytes).get(buffer.space, 0):
        return True
    memory = next((memory for memory in run.problem.memories if memory.name == buffer.space), None)
    if memory is None:
        return False
    beyond = buffer.offset_bytes + buffer.depth * buffer.bytes > memory.capacity_bytes
    return beyond or bool(buffer.offset_bytes % memory.alignment_bytes or buffer.bytes % memory.alignment_bytes)


def _two_in_one_byte(run: Execution, pairs: list[tuple[Buffer, Life]]) -> bool:
    """Fill every byte of every buffer with its instance, cycle by cycle, and look for two in one byte."""
    tenant: dict[tuple[str, int, int], tuple[str, int]] = {}
    for buffer, life in pairs:
        for i in range(run.iterations()):
            first = buffer.offset_bytes + i % buffer.depth * buffer.bytes
            who = (buffer.name, 0 if life.pinned else i)
            start, end = (0, run.interval) if life.pinned else (life.start, life.end)
            cells = product(
                range(start + i * run.interval, end + i * run.interval), range(first, first + buffer.bytes)
            )
            if any(tenant.setdefault((buffer.space, byte, cycle), who) != who for cycle, byte in cells):
                return True
    return False


def _overwrites(run: Execution) -> bool:
    return any(_overwritten(run, space, members) for (space, _), members in run.classes.items())


def _overwritten(run: Execution, space: str, members: list[PricedOp]) -> bool:
    """Play back what each storage of a class holds, and let every reader find what it came for."""
    pinned, names = run.pinned(members), {op.name for op in members}
    content: dict[tuple[int, int], list[tuple[int, str, int]]] = defaultdict(list)
    for op in members:
        place = run.group[op.name] if space == "registers" else 0
        for i in range(run.iterations()):
            content[place, 0 if pinned else i].append((run.start[op.name] + i * run.interval, op.name, i))
    if len(members) == 1 and not pinned:
        return False
    for op in members:
        place = run.group[op.name] if space == "registers" else 0
        for edge in run.readers[op.name]:
            end = run.read_at(edge)
            if space == "registers" and run.crosses(edge):
                end = run.written_out(op)
            elif edge.head not in names:
                end += min(edge.read_cycles, run.ops[edge.head].real_latency_cycles)
            for i in range(run.iterations() // 2):
                shift = i * run.interval
                written = run.start[op.name] + shift
                writes = content[place, 0 if pinned else i]
                if any(written <= cycle < end + shift for cycle, *who in writes if who != [op.name, i]):
                    return True
    return False
