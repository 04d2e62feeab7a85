"""Small scheduling problems for tests: builders, and a hypothesis strategy.

The derived figures (streaming, asynchronous, read times, hand-offs) follow ``docs/formulation.md``, written here
again so that tests of the verifier and of the search do not rest on the cost model.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

from hypothesis import assume
from hypothesis import strategies as st

from exhaustive import brute_force
from twillgpu.costs.record import LegalPair, PricedEdge, PricedOp, PricedValue, Problem, RuleOptions
from twillgpu.graph.record import EdgeKind, Resident, Use
from twillgpu.machine.record import Groups, Handoff, Memory, Registers, Unit

__all__ = ["Dep", "Node", "brute_force", "in_memory", "in_registers", "problem", "problems", "use"]

BARRIER = 1
"""Cycles of a barrier hop in generated problems."""
ALIGNMENT = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """An op before its derived figures are known; ``issue`` and ``latency`` default to the end of the last use."""

    name: str
    uses: tuple[Use, ...] = ()
    latency: int | None = None
    issue: int | None = None
    warps: int = 1
    variable: bool = False
    value: PricedValue | None = None
    handoff: int = 0
    staging: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Dep:
    """An edge before its derived figures are known; ``latency`` defaults to the tail's, 0 for ``order``."""

    tail: str
    head: str
    distance: int = 0
    kind: EdgeKind = "data"
    blocking: bool = False
    latency: int | None = None


def use(unit: str = "alu", cycles: int = 1, *, offset: int = 0, amount: int = 1) -> Use:
    return Use(unit=unit, cycles=cycles, offset=offset, amount=amount)


def in_registers(registers: int, *, alias: str | None = None) -> PricedValue:
    return PricedValue(space="registers", bytes=registers * 4, registers_per_thread=registers, alias=alias)


def in_memory(size: int, *, tmem: bool = False, alias: str | None = None) -> PricedValue:
    return PricedValue(space="tmem" if tmem else "smem", bytes=size, registers_per_thread=0, alias=alias)


def problem(
    nodes: Iterable[Node],
    deps: Iterable[Dep] = (),
    *,
    units: dict[str, int] | None = None,
    memories: tuple[Memory, ...] = (),
    fixed: tuple[tuple[str, int], ...] = (),
    registers: Registers | None = None,
    groups: Groups | None = None,
    rules: RuleOptions | None = None,
    residents: tuple[Resident, ...] = (),
    legality: tuple[LegalPair, ...] = (),
    barrier: int = BARRIER,
) -> Problem:
    """Return the problem with every derived figure filled in; units default to capacity 1 each."""
    nodes, deps = tuple(nodes), tuple(deps)
    fed = {dep.head for dep in deps if dep.kind == "data" and dep.head != dep.tail}
    ops = {node.name: _op(node, streaming=node.variable and node.name not in fed) for node in nodes}
    names = dict.fromkeys(item.unit for node in nodes for item in node.uses)
    capacities = units or dict.fromkeys(names, 1)
    return Problem(
        name="tiny",
        machine="tiny",
        ops=tuple(ops.values()),
        edges=tuple(_edge(dep, ops, barrier) for dep in deps),
        residents=residents,
        units=tuple(Unit(name=name, capacity=capacity) for name, capacity in capacities.items()),
        memories=memories,
        fixed_bytes=fixed,
        registers=registers,
        groups=groups or Groups(max=1, warps=(1, 4), max_warps=16),
        handoff=Handoff(barrier_cycles=barrier),
        legality=legality,
        rules=rules or RuleOptions(),
        trip_count=None,
        flop_per_iteration=0,
        graph_sha256="",
        machine_sha256="",
    )


def _op(node: Node, *, streaming: bool) -> PricedOp:
    end = max((item.offset + item.cycles for item in node.uses), default=0)
    latency = end if node.latency is None else node.latency
    issue = end if node.issue is None else node.issue
    return PricedOp(
        name=node.name,
        kind="op",
        source="",
        uses=node.uses,
        issue_cycles=issue,
        latency_cycles=0 if streaming else latency,
        real_latency_cycles=latency,
        handoff_cycles=node.handoff,
        warps=node.warps,
        variable_latency=node.variable,
        streaming=streaming,
        asynchronous=issue < end,
        value=node.value,
        staging_bytes=node.staging,
    )


def _edge(dep: Dep, ops: dict[str, PricedOp], barrier: int) -> PricedEdge:
    tail, head = ops[dep.tail], ops[dep.head]
    given = tail.latency_cycles if dep.latency is None else dep.latency
    return PricedEdge(
        tail=dep.tail,
        head=dep.head,
        latency_cycles=0 if tail.streaming or (dep.kind == "order" and dep.latency is None) else given,
        distance=dep.distance,
        kind=dep.kind,
        blocking=dep.blocking,
        handoff_cycles=tail.handoff_cycles if dep.kind == "data" else barrier,
        read_cycles=_read(dep, tail, head, barrier),
    )


def _read(dep: Dep, tail: PricedOp, head: PricedOp, barrier: int) -> int:
    if dep.kind != "data" or tail.value is None:
        return 0
    if tail.value.space == "registers":
        return head.real_latency_cycles if head.asynchronous else 0
    return head.real_latency_cycles + barrier


@st.composite
def problems(draw: st.DrawFn, *, max_ops: int = 4, free: bool = False) -> Problem:
    """Small problems with every feature of the formulation; many are tight, some are infeasible.

    ``free``: without limits on registers and memories, and one group, so that an interval always exists.
    """
    count = draw(st.integers(min_value=1, max_value=max_ops))
    nodes = [draw(_nodes(name, free=free)) for name in "abcdefgh"[:count]]
    deps = draw(_deps([node.name for node in nodes]))
    if count >= 2 and draw(st.booleans()):
        nodes, deps = draw(_classes(nodes, deps))
        assume(not _circular(deps))
    if free:
        return problem(nodes, deps, units={"alu": 2, "mma": 1}, groups=Groups(max=1, warps=(1, 4), max_warps=4))
    return problem(
        nodes,
        deps,
        units={"alu": 2, "mma": 1},
        memories=draw(_memories()),
        fixed=(("smem", draw(st.sampled_from((0, ALIGNMENT)))),),
        registers=draw(_registers()),
        groups=draw(_groups()),
        rules=draw(_rules()),
        residents=draw(_residents([node.name for node in nodes])),
        legality=draw(_legality([node.name for node in nodes])),
    )


@st.composite
def _nodes(draw: st.DrawFn, name: str, *, free: bool) -> Node:
    uses = draw(st.lists(_uses(), max_size=2, unique_by=lambda item: item.unit))
    end = max((item.offset + item.cycles for item in uses), default=0)
    return Node(
        name=name,
        uses=tuple(uses),
        latency=draw(st.integers(min_value=max(end, 1), max_value=max(end, 1) + 2)),
        issue=draw(st.sampled_from((end, end, min(end, 1), 0))),
        warps=1 if free else draw(st.sampled_from((1, 1, 4))),
        variable=draw(st.sampled_from((False, False, True))),
        value=draw(_values()),
        handoff=draw(st.integers(min_value=0, max_value=2)),
        staging=draw(st.sampled_from((0, ALIGNMENT))),
    )


@st.composite
def _uses(draw: st.DrawFn) -> Use:
    unit = draw(st.sampled_from(("alu", "mma")))
    return use(
        unit,
        draw(st.integers(min_value=1, max_value=3)),
        offset=draw(st.sampled_from((0, 0, 1))),
        amount=draw(st.integers(min_value=1, max_value=2)) if unit == "alu" else 1,
    )


@st.composite
def _values(draw: st.DrawFn) -> PricedValue | None:
    kind = draw(st.sampled_from(("none", "registers", "registers", "smem", "smem", "tmem")))
    if kind == "none":
        return None
    if kind == "registers":
        return in_registers(draw(st.sampled_from((8, 16, 24))))
    return in_memory(draw(st.sampled_from((ALIGNMENT, 2 * ALIGNMENT))), tmem=kind == "tmem")


@st.composite
def _deps(draw: st.DrawFn, names: list[str]) -> list[Dep]:
    """Draw edges without a circuit of distance 0: distance 0 only goes from an op to a later one."""
    deps: list[Dep] = []
    for _ in range(draw(st.integers(min_value=0, max_value=len(names) + 1))):
        tail, head = draw(st.sampled_from(names)), draw(st.sampled_from(names))
        least = 0 if names.index(tail) < names.index(head) else 1
        kind: EdgeKind = draw(st.sampled_from(("data", "data", "data", "anti", "order")))
        deps.append(
            Dep(
                tail=tail,
                head=head,
                distance=draw(st.sampled_from((least, least, least + 1, 2))),
                kind=kind,
                blocking=draw(st.booleans()),
                latency=draw(st.sampled_from((None, 1))) if kind != "data" else None,
            )
        )
    return deps


@st.composite
def _classes(draw: st.DrawFn, nodes: list[Node], deps: list[Dep]) -> tuple[list[Node], list[Dep]]:
    """Let one op, or two in a row, update one storage in place; with the edges that order its readers."""
    size = draw(st.integers(min_value=1, max_value=2))
    first = draw(st.integers(min_value=0, max_value=len(nodes) - size))
    value = draw(st.sampled_from((in_registers(16), in_memory(2 * ALIGNMENT, tmem=True), in_memory(ALIGNMENT))))
    value = replace(value, alias="acc")
    members = [node.name for node in nodes[first : first + size]]
    carried = draw(st.booleans())
    nodes = [replace(node, value=value, variable=False) if node.name in members else node for node in nodes]
    deps = [dep for dep in deps if dep.kind != "data" or _readable(dep, members, carried=carried)]
    if size == 2:
        deps.append(Dep(tail=members[0], head=members[1], blocking=draw(st.booleans())))
    if carried:
        deps.append(Dep(tail=members[-1], head=members[0], distance=1, blocking=draw(st.booleans())))
    return nodes, deps + _ordering(members, nodes, deps, carried=carried)


def _readable(dep: Dep, members: list[str], *, carried: bool) -> bool:
    """Return whether the head can read a member's value before the next write of the storage at all."""
    if dep.tail not in members:
        return True
    lasting = 1 if carried and dep.tail == members[-1] else 0
    return dep.head not in members and dep.distance <= lasting


def _ordering(members: list[str], nodes: list[Node], deps: list[Dep], *, carried: bool) -> list[Dep]:
    """Return the edges that keep a member from being overwritten before its readers outside have read it.

    The next write of the storage is the second member's in the same iteration, or the first's in the next. It
    also waits until a value that some reader in another group takes has been written out.
    """
    by_name = {node.name: node for node in nodes}
    found: list[Dep] = []
    for member, (head, ahead) in _overwriters(members, carried=carried).items():
        node = by_name[member]
        found.extend(
            Dep(
                tail=dep.head,
                head=head,
                distance=ahead - dep.distance,
                kind="anti",
                latency=by_name[dep.head].latency,
            )
            for dep in deps
            if dep.tail == member and dep.kind == "data" and dep.head not in members
        )
        found.append(
            Dep(tail=member, head=head, distance=ahead, kind="order", latency=(node.latency or 0) + node.handoff)
        )
    return found


def _overwriters(members: list[str], *, carried: bool) -> dict[str, tuple[str, int]]:
    """Return, for each member, which op writes the storage next, and how many iterations later."""
    found = {first: (second, 0) for first, second in pairwise(members)}
    return {**found, members[-1]: (members[0], 1)} if carried else found


def _circular(deps: list[Dep]) -> bool:
    """Return whether edges of distance 0 go round in a circle."""
    edges = {(dep.tail, dep.head) for dep in deps if dep.distance == 0}
    while edges:
        open_ends = {(tail, head) for tail, head in edges if not any(head == other for other, _ in edges)}
        if not open_ends:
            return True
        edges -= open_ends
    return False


def _memories() -> st.SearchStrategy[tuple[Memory, ...]]:
    sizes = st.sampled_from((2 * ALIGNMENT, 3 * ALIGNMENT, 6 * ALIGNMENT))
    smem = sizes.map(lambda size: Memory(name="smem", capacity_bytes=size, alignment_bytes=ALIGNMENT))
    tmem = sizes.map(lambda size: Memory(name="tmem", capacity_bytes=size, alignment_bytes=ALIGNMENT))
    return st.one_of(st.tuples(smem, tmem), st.tuples(smem), st.tuples(tmem), st.just(()))


def _registers() -> st.SearchStrategy[Registers | None]:
    limits = st.builds(
        Registers,
        per_thread=st.sampled_from((24, 40, 64)),
        per_sm=st.sampled_from((32 * 4 * 40, 32 * 8 * 40, 65536)),
        overhead_per_thread=st.sampled_from((0, 6)),
    )
    return st.one_of(st.none(), limits)


def _groups() -> st.SearchStrategy[Groups]:
    return st.builds(
        Groups, max=st.integers(min_value=1, max_value=3), warps=st.just((1, 4)), max_warps=st.sampled_from((8, 12))
    )


def _rules() -> st.SearchStrategy[RuleOptions]:
    return st.builds(
        RuleOptions,
        concurrency=st.sampled_from(("issue", "issue", "paper")),
        variable_latency=st.sampled_from(("designated", "iff", "free")),
        cross_group=st.sampled_from((True, True, False)),
    )


@st.composite
def _residents(draw: st.DrawFn, names: list[str]) -> tuple[Resident, ...]:
    users = draw(st.lists(st.sampled_from(names), max_size=2, unique=True))
    return (Resident(name="kept", registers_per_thread=8, users=tuple(users)),) if users else ()


@st.composite
def _pauses(draw: st.DrawFn, names: list[str]) -> tuple[LegalPair, ...]:
    ends = st.lists(st.sampled_from(names), min_size=2, max_size=2, unique=True)
    drawn = draw(st.lists(st.tuples(ends, st.integers(min_value=0, max_value=1)), min_size=1, max_size=4))
    return tuple(
        LegalPair(rule="tiny_pause", relation="pause", first=first, second=second, distance=distance)
        for (first, second), distance in drawn
    )


@st.composite
def _legality(draw: st.DrawFn, names: list[str]) -> tuple[LegalPair, ...]:
    pair = draw(st.lists(st.sampled_from(names), min_size=2, max_size=2, unique=True)) if len(names) > 1 else []
    relation = draw(st.sampled_from(("apart", "together", "pause", "none")))
    if not pair or relation == "none":
        return ()
    if relation == "pause":
        return draw(_pauses(names))
    return (
        LegalPair(
            rule="tiny_rule",
            relation="together" if relation == "together" else "apart",
            first=pair[0],
            second=pair[1],
        ),
    )
