"""The loop body as a dependence graph: operations, dependences with distances, resident values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from twillgpu.frontend.kernel import TileType
from twillgpu.machine.record import Machine

EdgeKind = Literal["data", "anti", "output", "memory", "order", "token"]
EDGE_KINDS: tuple[EdgeKind, ...] = ("data", "anti", "output", "memory", "order", "token")
ValueSpace = Literal["registers", "smem", "tmem"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """A run of the reservation table: ``amount`` instances of ``unit`` held for ``cycles`` from ``offset``."""

    unit: str
    cycles: int
    offset: int = 0
    amount: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """What an op produces. ``alias`` names a storage shared with other ops' results, counted once;
    ``registers_per_thread`` is ``None`` where it follows from bytes and warps.
    """

    space: ValueSpace
    bytes: int
    registers_per_thread: int | None = None
    alias: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Price of an op in cycles: reservation table, issue time, latency, hand-off to another group.

    ``asynchronous``: whether it works on when its issue is over, so that it reads its operands until it completes;
    ``None`` where that follows from the reservation table.
    """

    uses: tuple[Use, ...]
    issue_cycles: int
    latency_cycles: int
    handoff_cycles: int | None = None
    asynchronous: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One machine op inside a graph op, as the cost model needs it: opcode, types, and the combine ops of a
    reduction. Ops that cost nothing (broadcast, expand_dims, views) are not listed.
    """

    opcode: str
    operands: tuple[TileType, ...]
    results: tuple[TileType, ...]
    attributes: tuple[tuple[str, str], ...] = ()
    body: tuple[str, ...] = ()
    fused: bool = False
    """True where it costs no instruction of its own (a multiply folded into the next add: FMA)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """A node. ``cost`` is given (graph JSON) or follows from ``work`` and the machine (kernels).

    Attributes:
        name: unique name.
        kind: class of op: ``mma``, ``tma_load``, ``elementwise``, ``exp``, ``reduce``, ``tmem_load``, ...
        source: ``file.py:line`` or empty.
        warps: warps that the op needs.
        variable_latency: latency not known statically (TMA).
        result: the value produced, or ``None``.
        cost: price in cycles, or ``None`` before pricing.
        work: the machine ops it stands for, in order; empty for graph JSON.
        members: names of the kernel ops it stands for, an index tile's in each of its readers; empty for graph JSON.
    """

    name: str
    kind: str = "op"
    source: str = ""
    warps: int = 4
    variable_latency: bool = False
    result: Value | None = None
    cost: Cost | None = None
    work: tuple[Work, ...] = ()
    members: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """``head`` of iteration i depends on ``tail`` of iteration i - ``distance``.

    Attributes:
        latency_cycles: ``None`` where it is the tail's own latency (``data``) or follows from the kind.
        handoff_cycles: what crossing groups adds, ``None`` where it follows from the tail and the kind.
        read_cycles: how long after its start the head still reads the tail's value (``data`` only), ``None`` where
            it follows from the head and the space of the value.
    """

    tail: str
    head: str
    distance: int = 0
    kind: EdgeKind = "data"
    blocking: bool = False
    latency_cycles: int | None = None
    handoff_cycles: int | None = None
    read_cycles: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resident:
    """A value that lives through the whole loop in the registers of every group that holds one of ``users``
    (loop-invariant tiles, carried scalars).
    """

    name: str
    registers_per_thread: int
    users: tuple[str, ...]


LegalityRelation = Literal["together", "apart", "pause"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LegalPair:
    """A named legality sub-rule on two ops: they must share a group (``together``) or must not (``apart``); or
    ``first`` is in flight until ``second`` of the iteration ``distance`` later starts, and its group needs a
    moment of the period without such ops in flight (``pause``).
    """

    rule: str
    relation: LegalityRelation
    first: str
    second: str
    distance: int = 0


Concurrency = Literal["issue", "paper"]
VariableLatency = Literal["designated", "iff", "free"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits below the machine's own and variants of the rules that a graph file asks for; ``None``: not said.

    Attributes:
        max_groups: at most so many warp groups.
        max_warps: at most so many warps in the block.
        registers: at most so many registers per thread; 0: unlimited.
        concurrency, variable_latency, cross_group: see ``twillgpu.costs.record.RuleOptions``.
    """

    max_groups: int | None = None
    max_warps: int | None = None
    registers: int | None = None
    concurrency: Concurrency | None = None
    variable_latency: VariableLatency | None = None
    cross_group: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DepGraph:
    """A loop body.

    Attributes:
        name: name of the loop.
        ops, edges: nodes and dependences.
        trip_count: iterations, ``None`` where they are not known.
        fixed_bytes: what lives outside the loop, per memory.
        residents: values that live through the loop in registers.
        legality: pairs of ops that must, or must not, share a group; ``None`` where they follow from the ops and
            the legality rules of the machine.
        limits: limits and variants of the rules that a graph file asks for.
        machine: the machine that a graph file names or carries, ``None`` for kernels.
        flop_per_iteration: operations of the tensor core in one iteration.
        sha256: hash of the content.
    """

    name: str
    ops: tuple[Op, ...]
    edges: tuple[Edge, ...]
    trip_count: int | None = None
    fixed_bytes: tuple[tuple[str, int], ...] = ()
    residents: tuple[Resident, ...] = ()
    legality: tuple[LegalPair, ...] | None = None
    limits: Limits = Limits()
    machine: str | Machine | None = None
    flop_per_iteration: int = 0
    sha256: str = ""
