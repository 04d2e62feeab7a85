"""What is asked of a tuning run, and what comes out for each candidate."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Literal

from twillgpu.costs.record import PriceOptions
from twillgpu.errors import InputError
from twillgpu.frontend.launch import LoadOptions
from twillgpu.schedule.record import SearchOptions

Value = int | float | bool | str | None
Status = Literal["solved", "pruned", "infeasible", "limit", "declined", "unsupported", "error", "bounded"]
"""``solved``: has a schedule and a predicted time; ``pruned``: its lower bound is above the best found;
``infeasible``: proved to have no schedule; ``limit``: a limit of the search came before a schedule; ``declined``: the
candidate breaks a condition, or Triton or the input refuses it; ``unsupported``: twillgpu declines the kernel;
``error``: a worker died, or a defect; ``bounded``: bounded only, to be solved or pruned yet.
"""

LIMITS = ("registers", "groups", "warps")
"""Axes that are limits of the problem: registers per thread, warp groups, warps of the block."""
LAUNCH = ("num_warps", "config")
"""Axes that are options of the launch, as ``--num-warps`` and ``--config``."""
SUBTILE = "subtile"
SPECIAL = (SUBTILE, *LIMITS, *LAUNCH)
"""Axes that are no constexpr of the kernel."""


def shown(name: str, value: Value) -> str:
    """Return a value of an axis as ``--space`` spells it."""
    if name in SPECIAL and value is None:
        return "default"
    return "none" if name == SUBTILE and value == 0 else str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One choice of the space: a name and its values in the order given."""

    name: str
    values: tuple[Value, ...]

    def __post_init__(self) -> None:
        where = f"--space {self.name}"
        if not self.values:
            raise InputError(where, "it has no values", "write NAME=VALUE,VALUE")
        if len(set(map(repr, self.values))) != len(self.values):
            raise InputError(where, "a value is given twice", "give each value once")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One point of the space: (name, value) for every axis, in the order of the axes."""

    values: tuple[tuple[str, Value], ...]

    @property
    def key(self) -> str:
        """A text that no other candidate has."""
        return json.dumps(sorted(self.values, key=lambda item: item[0]))

    @property
    def text(self) -> str:
        """``BLOCK_M=64 BLOCK_N=128``."""
        return " ".join(f"{name}={shown(name, value)}" for name, value in self.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Everything but the candidate that decides about a candidate's time.

    Attributes:
        source: kernel or graph JSON; ``{NAME}`` in it stands for the candidate's value of axis NAME.
        graphs: the same, for graph JSON that prices candidates that Triton refuses; ``None``: they are declined.
        machine: a machine's name or file; ``None`` where graph JSON says it.
        load: kernel, argument types, constexprs, and so on; axes come on top.
        rows: rows of a sub-tile; ``None``: the target's; 0: none.
        limits: limits and rules; ``None``: those that graph JSON asks for. Axes come on top.
        search: limits of each search.
        shape: (name, value) of the problem's sizes: for expressions, and for the kernel's arguments of these names.
        grid: expressions whose product is the number of blocks.
        trips: expression for the trip count; ``None``: it follows from the kernel's arguments, or graph JSON says it.
        where: conditions that a candidate meets, or is declined.
        reuse: accesses through L2 that a byte from HBM serves; ``None``: HBM is left out.
        cache: whether workers look for results in their user's cache, and keep them there; it decides about nothing.
    """

    source: str
    grid: tuple[str, ...]
    machine: str | None = None
    graphs: str | None = None
    load: LoadOptions = field(default_factory=LoadOptions)
    rows: int | None = None
    limits: PriceOptions | None = None
    search: SearchOptions = field(default_factory=SearchOptions)
    shape: tuple[tuple[str, int], ...] = ()
    trips: str | None = None
    where: tuple[str, ...] = ()
    reuse: float | None = None
    cache: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A candidate with what follows from the question for it; sent to workers.

    Attributes:
        question, candidate: see there.
        files: the source, and graph JSON that stands in for it where Triton refuses it (if there is any).
        digests: SHA-256 of each of ``files``.
        blocks: blocks of the launch.
        trips: trip count; ``None``: it follows from the kernel.
    """

    question: Question
    candidate: Candidate
    files: tuple[str, ...]
    digests: tuple[str, ...]
    blocks: int
    trips: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A row of the result.

    Attributes:
        candidate: what was tried.
        status: see ``Status``.
        reason: why there is no time, or what the user should know.
        by: ``simulation`` of the warp program; ``schedule``: from the interval alone (graph JSON has no program).
        floor_microseconds: lower bound on the time of the launch.
        microseconds: predicted time of the launch.
        tflops: what that makes, before power limits; ``None`` where the work is not known.
        ceiling_tflops: what the chip sustains on such products under its power limit, where that is known.
        ii_cycles: interval of the schedule; ``proof``: ``optimal`` or ``feasible``.
        steady_cycles: cycles of an iteration as simulated.
        block_cycles, trips, blocks, waves: one block, its iterations, the launch.
        binding: what the time is made of: ``simulation``, ``schedule``, ``path to L2`` or ``HBM``.
        groups, warps: of the block. ``registers``: largest quota of a group, per thread.
        smem_bytes: highest byte of shared memory in use by rings. ``rings``: (name, depth) of each.
        seconds: wall seconds of the work on it.
    """

    candidate: Candidate
    status: Status
    reason: str = ""
    by: str = ""
    floor_microseconds: float | None = None
    microseconds: float | None = None
    tflops: float | None = None
    ceiling_tflops: float | None = None
    ii_cycles: int | None = None
    proof: str = ""
    steady_cycles: float | None = None
    block_cycles: float | None = None
    trips: int | None = None
    blocks: int | None = None
    waves: int | None = None
    binding: str = ""
    groups: int | None = None
    warps: int | None = None
    registers: int | None = None
    smem_bytes: int | None = None
    rings: tuple[tuple[str, int], ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """The result of a tuning run.

    Attributes:
        question: what was asked.
        axes: the space.
        outcomes: every candidate once: solved ones from the fastest on, then the others.
        kept: how many were taken from the journal.
        seconds: wall seconds.
    """

    question: Question
    axes: tuple[Axis, ...]
    outcomes: tuple[Outcome, ...]
    kept: int
    seconds: float

    @property
    def best(self) -> Outcome | None:
        """The fastest candidate, ``None`` where none was solved."""
        first = self.outcomes[0] if self.outcomes else None
        return first if first is not None and first.status == "solved" else None

    def count(self, status: Status) -> int:
        """Return how many candidates have a status."""
        return sum(one.status == status for one in self.outcomes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a run is: candidates in all, bounded, finished, pruned; the best; estimated seconds left (``None``: not
    known yet).
    """

    total: int
    bounded: int
    finished: int
    pruned: int
    best: Outcome | None
    seconds_left: float | None
