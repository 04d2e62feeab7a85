"""A scheduling problem in cycles: priced ops, dependences, limits and the rules in force; and its bounds.

Everything that the rules of ``docs/formulation.md`` speak of is in ``Problem``; the search and the verifier
both read it and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from twillgpu.graph.record import (
    Concurrency,
    EdgeKind,
    LegalityRelation,
    LegalPair,
    Resident,
    Use,
    ValueSpace,
    VariableLatency,
)
from twillgpu.machine.record import Groups, Handoff, Memory, Registers, Unit

__all__ = [
    "Bound",
    "Bounds",
    "Columns",
    "Concurrency",
    "LegalPair",
    "LegalityRelation",
    "PriceOptions",
    "PricedEdge",
    "PricedOp",
    "PricedValue",
    "Problem",
    "RuleOptions",
    "Scale",
    "VariableLatency",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedValue:
    """What an op produces, with its size in every sense resolved.

    ``bytes`` is already rounded up to the memory's alignment for SMEM and TMEM. ``registers_per_thread`` is
    what a copy in registers costs each thread of a group (0 for values that never are in registers).
    """

    space: ValueSpace
    bytes: int
    registers_per_thread: int
    alias: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedOp:
    """An op with its costs in cycles.

    Attributes:
        uses: reservation table.
        issue_cycles: cycles for which it keeps its group's instruction stream busy.
        latency_cycles: cycles until its result may be used; 0 for a streaming op.
        real_latency_cycles: the same without the streaming rule (decides ring depth).
        handoff_cycles: added to its outgoing register edges that cross groups; for values in SMEM or TMEM the
            barrier hop.
        warps: warps that it needs; its group is at least as wide.
        variable_latency, streaming: see the formulation.
        asynchronous: its units are still held when its issue is over, so consumers need a blocking wait and it
            reads its operands until it completes.
        value: the value produced, or ``None``.
        staging_bytes: SMEM for one copy of its register value on the way to another group.
    """

    name: str
    kind: str
    source: str
    uses: tuple[Use, ...]
    issue_cycles: int
    latency_cycles: int
    real_latency_cycles: int
    handoff_cycles: int
    warps: int
    variable_latency: bool
    streaming: bool
    asynchronous: bool
    value: PricedValue | None
    staging_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedEdge:
    """``M(head) + distance I >= M(tail) + latency_cycles`` (``+ handoff_cycles`` if the groups differ).

    ``read_cycles``: how long after its start the head still reads the tail's value (0 where the registers are
    free at the head's start). ``blocking``: the head executes a blocking wait wherever it is; an edge that
    crosses groups always blocks.
    """

    tail: str
    head: str
    latency_cycles: int
    distance: int
    kind: EdgeKind
    blocking: bool
    handoff_cycles: int
    read_cycles: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleOptions:
    """Which variants of the rules are in force.

    Attributes:
        concurrency: ``issue``: the window of another op is its issue time; ``paper``: its longest use, also for
            asynchronous ops.
        variable_latency: ``designated``: with more than one group, variable-latency ops sit in group 0 (the
            objective keeps other ops out of it); ``iff``: exactly they do; ``free``: no rule.
        cross_group: whether values in registers may cross groups at all.
    """

    concurrency: Concurrency = "issue"
    variable_latency: VariableLatency = "designated"
    cross_group: bool = True


Columns = Literal["free", "fixed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceOptions:
    """Limits below the machine's own, and the rules in force.

    Attributes:
        rules: variants of the rules.
        max_groups: at most so many warp groups; ``None``: the machine's limit.
        max_warps: at most so many warps in the block; ``None``: the machine's limit.
        registers: at most so many registers per thread; ``None``: the machine's limit; 0: unlimited.
        lift: legality sub-rules that do not apply.
        columns: ``free``: TMEM is shared wherever lifetimes allow; ``fixed``: an operand that software stores is in
            the columns of the product that it is made from (``twillgpu.costs.columns``).
    """

    rules: RuleOptions = RuleOptions()
    max_groups: int | None = None
    max_warps: int | None = None
    registers: int | None = None
    lift: tuple[str, ...] = ()
    columns: Columns = "free"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A scheduling problem. ``registers`` is ``None`` where registers are unlimited; memories that are not
    listed are unlimited; ``fixed_bytes`` is what lives outside the loop, per memory. ``sha256`` is the hash of all
    that rules speak of (``costs/digest.py``).
    """

    name: str
    machine: str
    ops: tuple[PricedOp, ...]
    edges: tuple[PricedEdge, ...]
    residents: tuple[Resident, ...]
    units: tuple[Unit, ...]
    memories: tuple[Memory, ...]
    fixed_bytes: tuple[tuple[str, int], ...]
    registers: Registers | None
    groups: Groups
    handoff: Handoff
    legality: tuple[LegalPair, ...]
    rules: RuleOptions
    trip_count: int | None
    flop_per_iteration: int
    graph_sha256: str
    machine_sha256: str
    sha256: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A lower bound on the initiation interval: its name (a unit, ``recurrence``, a memory, ``registers``),
    cycles, the reason in words, and the ops it consists of.
    """

    name: str
    cycles: int
    reason: str
    ops: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """All lower bounds, largest first; ``binding`` is the largest.

    ``impossible`` says, for each memory or register file that is too small at any interval, why no schedule
    exists; empty otherwise.
    """

    bounds: tuple[Bound, ...]
    impossible: tuple[str, ...] = ()

    @property
    def binding(self) -> Bound:
        """The largest bound."""
        return self.bounds[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Time resolution of a search: one slot is ``slot_cycles`` cycles, costs rounded ``up`` (a schedule found
    holds in cycles) or ``down`` (a refutation holds in cycles).
    """

    slot_cycles: int
    rounding: Literal["up", "down"]
