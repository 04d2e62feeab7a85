"""Bounds of memories and registers derived anew: at each interval the values of a period take more than there is."""

from __future__ import annotations

from dataclasses import dataclass

from twillgpu.costs.record import PricedEdge, PricedOp, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A storage: amount, and the ops whose values share it."""

    amount: int
    members: tuple[PricedOp, ...]


def apart_pairs(problem: Problem) -> set[frozenset[str]]:
    """Return the pairs of ops that are in different groups whatever the schedule."""
    return {frozenset((pair.first, pair.second)) for pair in problem.legality if pair.relation == "apart"}


def least_latency(edge: PricedEdge, apart: set[frozenset[str]]) -> int:
    """Return the latency of an edge; between ops that must be apart it pays its hand-off, too."""
    return edge.latency_cycles + (edge.handoff_cycles if frozenset((edge.tail, edge.head)) in apart else 0)


def storage_is_short(problem: Problem, name: str, cycles: int) -> str:
    """Return why no interval below ``cycles`` has room for the values in ``name``, or an empty text.

    ``name`` is a memory, ``registers`` (of the threads of all groups) or ``register file``.
    """
    capacity = _capacity(problem, name)
    if capacity is None:
        return ""
    needs, always = _needs(problem, name), _residents(problem, name)
    least = _Least(problem)
    for interval in range(1, cycles):
        held = sum(need.amount * least.cycles(need.members, interval) for need in needs) + always * interval
        if held <= capacity * interval:
            return ""
    unit = "bytes" if name in {memory.name for memory in problem.memories} else "registers"
    held = sum(need.amount * least.cycles(need.members, cycles - 1) for need in needs) + always * (cycles - 1)
    return f"values take {held} {unit} x cycles, an interval of {cycles - 1} has {capacity} x {cycles - 1}"


def _capacity(problem: Problem, name: str) -> int | None:
    limits = problem.registers
    memory = next((memory for memory in problem.memories if memory.name == name), None)
    if memory is not None:
        return memory.capacity_bytes - dict(problem.fixed_bytes).get(name, 0)
    if limits is None or name not in ("registers", "register file"):
        return None
    if name == "registers":
        return problem.groups.max * (limits.per_thread - limits.overhead_per_thread)
    widest = max((op.warps for op in problem.ops), default=0)
    return limits.per_sm - 32 * widest * limits.overhead_per_thread


def _amount(op: PricedOp, name: str) -> int:
    if op.value is None:
        return 0
    if name == "register file":
        return 32 * op.warps * op.value.registers_per_thread
    return op.value.registers_per_thread if name == "registers" else op.value.bytes


def _needs(problem: Problem, name: str) -> list[Need]:
    space = "registers" if name == "register file" else name
    classes: dict[tuple[str, str], list[PricedOp]] = {}
    for op in problem.ops:
        if op.value is not None and op.value.space == space:
            key = ("alias", op.value.alias) if op.value.alias is not None else ("op", op.name)
            classes.setdefault(key, []).append(op)
    return [
        Need(amount=max(_amount(op, name) for op in members), members=tuple(members)) for members in classes.values()
    ]


def _residents(problem: Problem, name: str) -> int:
    """Return what is held all the time by values that live through the loop, counted in one group."""
    warps = {op.name: op.warps for op in problem.ops}
    used = [resident for resident in problem.residents if resident.users]
    if name == "registers":
        return sum(resident.registers_per_thread for resident in used)
    if name != "register file":
        return 0
    return sum(resident.registers_per_thread * 32 * max(warps[user] for user in resident.users) for resident in used)


class _Least:
    """The least that a value lives, by the dependences."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._apart = apart_pairs(problem)
        self._readers: dict[str, list[PricedEdge]] = {op.name: [] for op in problem.ops}
        self._after: dict[str, list[PricedEdge]] = {op.name: [] for op in problem.ops}
        for edge in problem.edges:
            if edge.kind == "data":
                self._readers[edge.tail].append(edge)
            if edge.distance == 0:
                self._after[edge.tail].append(edge)
        self._paths: dict[str, dict[str, int]] = {}

    def cycles(self, members: tuple[PricedOp, ...], interval: int) -> int:
        """Return the least lifetime of a storage at an interval."""
        aliased = members[0].value is not None and members[0].value.alias is not None
        if aliased and any(edge.distance for op in members for edge in self._readers[op.name]):
            return interval
        return max(self._value(op, interval) for op in members)

    def _value(self, op: PricedOp, interval: int) -> int:
        edges = self._readers[op.name]
        in_registers = op.value is not None and op.value.space == "registers"
        own = op.latency_cycles if edges or in_registers else op.real_latency_cycles
        ends = [own if in_registers else max(1, own)]
        for edge in edges:
            end = self._end(edge, interval)
            ends.append(
                min(end, op.latency_cycles + op.handoff_cycles) if in_registers and self._leaves(edge) else end
            )
        return max(ends)

    def _end(self, edge: PricedEdge, interval: int) -> int:
        """Return how long after its start the reader has read, at the least."""
        ends = [edge.latency_cycles + edge.read_cycles]
        path = self._longest(edge.tail).get(edge.head)
        if path is not None:
            ends.append(path + edge.distance * interval + edge.read_cycles)
        return max(ends)

    def _leaves(self, edge: PricedEdge) -> bool:
        """Return whether the reader may be in another group: then the value may leave these registers earlier."""
        pair = {edge.tail, edge.head}
        together = any(
            one.relation == "together" and {one.first, one.second} == pair for one in self._problem.legality
        )
        free = self._problem.groups.max > 1 and self._problem.rules.cross_group
        return free and edge.tail != edge.head and not together

    def _longest(self, name: str) -> dict[str, int]:
        """Return the longest path within an iteration to every op that is reached from ``name``."""
        if name not in self._paths:
            found = {name: 0}
            waiting = [name]
            while waiting:
                tail = waiting.pop()
                for edge in self._after[tail]:
                    length = found[tail] + least_latency(edge, self._apart)
                    if length > found.get(edge.head, -1):
                        found[edge.head] = length
                        waiting.append(edge.head)
            self._paths[name] = found
        return self._paths[name]
