"""What a report is made of: the records of every stage of one run."""

from __future__ import annotations

from dataclasses import dataclass

from twillgpu.costs.record import PriceOptions, Problem
from twillgpu.frontend.kernel import Kernel
from twillgpu.graph.record import DepGraph
from twillgpu.machine.record import Machine
from twillgpu.schedule.record import SearchResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run from source to schedule.

    Attributes:
        source: the file as the user named it.
        machine: the machine, without the user's limits.
        limits: the user's limits, and the rules in force.
        kernel: the kernel that was scheduled (sub-tiled), ``None`` for graph JSON.
        graph: its loop body.
        problem: the graph priced on the machine.
        result: what the search found; its schedule, if any, has passed the verifier.
        remarks: what was decided on the way and the user should know.
        seconds: wall seconds from reading the source to the verified schedule.
        kept_since: Unix time at which the result was found, where it is from the cache; ``None``: found now.
    """

    source: str
    machine: Machine
    limits: PriceOptions
    kernel: Kernel | None
    graph: DepGraph
    problem: Problem
    result: SearchResult
    remarks: tuple[str, ...]
    seconds: float
    kept_since: float | None = None
