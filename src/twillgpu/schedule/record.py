"""The record of a schedule and of the search that found it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from twillgpu.costs.record import Bounds
from twillgpu.graph.record import ValueSpace

Status = Literal["optimal", "feasible", "infeasible", "limit"]
"""``optimal``: proved; ``feasible``: verified, with a gap to the bound; ``infeasible``: proved that none
exists; ``limit``: a limit was reached before a schedule was found."""


Limit = Literal["none", "work", "time", "call"]
"""What ended a search without a proof: ``work``, ``time``: the limit in ``SearchOptions``; ``call``: a solver call at
its own limit; ``none``: nothing (a proof, or a gap that is tolerated)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledOp:
    """Start of an op of iteration 0 in cycles, and the index of its group."""

    name: str
    start_cycle: int
    group: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A warp group: width in warps, registers per thread (its quota; 0 where registers are unlimited)."""

    name: str
    warps: int
    registers_per_thread: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer:
    """A ring in a memory.

    Attributes:
        name: the op whose value it holds, ``NAME.staging`` for a register value handed over, or the alias class.
        space: ``smem`` or ``tmem``.
        bytes: bytes of one copy, rounded up to the memory's alignment.
        depth: copies, at least ``depth_floor``.
        depth_floor: instances live at once by the model.
        offset_bytes: place of copy 0; copy k is at ``offset_bytes + k * bytes``. Instance i is in copy
            i mod ``depth``. Two buffers may overlap where no two of their instances are ever live together.
    """

    name: str
    space: ValueSpace
    bytes: int
    depth: int
    depth_floor: int
    offset_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A modulo schedule: op v of iteration i starts at ``start_cycle(v) + i * ii_cycles``."""

    graph: str
    machine: str
    ii_cycles: int
    ops: tuple[ScheduledOp, ...]
    groups: tuple[Group, ...]
    buffers: tuple[Buffer, ...]
    graph_sha256: str = ""
    machine_sha256: str = ""
    problem_sha256: str = ""

    def start(self, name: str) -> int:
        """Return the start cycle of op ``name`` in iteration 0."""
        return next(op.start_cycle for op in self.ops if op.name == name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuted:
    """A range of initiation intervals ``first..last`` (cycles, inclusive) that no schedule reaches; why, in
    words; and the rule families that force it (empty: an analytic bound).
    """

    first_cycles: int
    last_cycles: int
    reason: str
    families: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One call of a solver: interval in slots, stages allowed, resolution, what came out, seconds."""

    purpose: str
    slots: int
    slot_cycles: int
    stages: int
    outcome: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """What the user asked for; part of every result.

    Attributes:
        resolution: slots per iteration wanted in the coarse search.
        max_stages: stages allowed, ``None`` for the default.
        max_groups, warps, registers: limits below the machine's own, ``None`` for the machine's.
        gap: relative gap between interval and bound at which no finer resolution is tried.
        work_limit: deterministic work units in all.
        time_limit_seconds: wall-clock backstop.
        seed: solver seed.
        objective: order of the secondary objectives after the interval.
    """

    resolution: int = 34
    max_stages: int | None = None
    gap: float = 0.005
    work_limit: float = 20.0
    time_limit_seconds: float = 300.0
    seed: int = 0
    objective: tuple[str, ...] = ("mixed", "handoff", "barriers", "warps", "groups", "stages", "registers", "length")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """What a search found and proved.

    Attributes:
        status: see ``Status``.
        schedule: the schedule, ``None`` for ``infeasible`` and possibly for ``limit``.
        bounds: analytic lower bounds.
        lower_bound_cycles: proved lower bound on the interval over all schedules of at most ``max_stages``.
        bound_reason: what proves it.
        max_stages: the claim is over schedules of at most so many stages.
        objective: (name, value) of the secondary objectives of the schedule found.
        objective_proved: whether the secondary objective is proved optimal at the search's resolution.
        refuted: intervals refuted, ascending.
        attempts: every solver call.
        method, solver, version, options: how it was made.
        slot_cycles: resolution used.
        seconds: wall seconds.
        remarks: what else the method has to say, a sentence each.
        work: deterministic work units used.
        limit: what ended the search without a proof.
    """

    status: Status
    schedule: Schedule | None
    bounds: Bounds
    lower_bound_cycles: int
    bound_reason: str
    max_stages: int
    objective: tuple[tuple[str, int], ...]
    objective_proved: bool
    refuted: tuple[Refuted, ...]
    attempts: tuple[Attempt, ...]
    method: str
    solver: str
    version: str
    options: SearchOptions
    slot_cycles: int
    seconds: float
    remarks: tuple[str, ...] = ()
    work: float = 0.0
    limit: Limit = "none"
