"""The records of a simulation: what was asked for, every event, and what the steady state is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from twillgpu.graph.record import Use
from twillgpu.machine.record import Unit
from twillgpu.simulate.figures import ARRIVE, WAIT

LatencyKind = Literal["fixed", "uniform", "heavy"]
EventKind = Literal["op", "put", "get", "wait", "arrive", "commit", "drain", "fence"]
Why = Literal["start", "order", "operand", "unit", "queue", "barrier", "drain", "fence", "issue"]
"""What set the time of an event: nothing (``start``); the instruction before it (``order``); a register result
(``operand``); another op on a unit (``unit``), or before it in the queue of an engine (``queue``); an arrival
(``barrier``); an op that was drained; a fence; for the work of an engine, its own issue (``issue``).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Latency of loads from global memory that an engine does (TMA, cp.async), from the start to the signal.

    Attributes:
        kind: ``fixed``: as the machine file prices it; ``uniform``: from that to ``figures.LOADED`` times that;
            ``heavy``: a lognormal body with a Pareto tail (``latency.py``).
        cycles: replaces the priced latency of every such load; ``None``: the price.
        scale: multiplies it.
    """

    kind: LatencyKind = "fixed"
    cycles: int | None = None
    scale: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationOptions:
    """What is simulated; part of every trace.

    Attributes:
        latency: of loads.
        seed: of random latencies.
        arrive_cycles, wait_cycles: what the instruction stream pays to arrive at an mbarrier, and to pass one that is
            ready.
        trips: trip count of each tile that the block works on, in order; several only for persistent programs.
        staging: whether handing a register value over takes issue slots and the SMEM port. The model charges its
            latency only.
    """

    trips: tuple[int, ...] = (64,)
    latency: Latency = Latency()
    seed: int = 0
    arrive_cycles: int = int(ARRIVE.value)
    wait_cycles: int = int(WAIT.value)
    staging: bool = True


class Event(NamedTuple):
    """One instruction of a group, once. A named tuple because a run makes thousands. All times are in cycles.

    Attributes:
        number: place in the trace.
        group: name of the group.
        op: op or value, barrier, or engine that is drained.
        kind: what the instruction does.
        engine: who does the work.
        tile, iteration: of the block; ``iteration`` is ``None`` outside the loop.
        unit: the unit that it holds longest, or empty.
        start_cycle, end_cycle: the group's instruction stream is at it, after any stall.
        stall: why the stream stood still before or, for a wait, in it; empty where it did not. ``barrier NAME``,
            ``unit NAME``, ``result of NAME``, ``drain ENGINE``, ``writes``.
        stall_cycles: for how long.
        work_start_cycle, work_end_cycle: the engine at work, until the result is there.
        uses: units held, from ``work_start_cycle``.
        cause, why: the event that set ``start_cycle`` (``end_cycle`` for waits, drains and fences), ``-1`` for none.
        work_cause, work_why: the event that set ``work_start_cycle``.
    """

    number: int
    group: str
    op: str
    kind: EventKind
    engine: str
    tile: int
    iteration: int | None
    unit: str
    start_cycle: int
    end_cycle: int
    stall: str
    stall_cycles: int
    work_start_cycle: int
    work_end_cycle: int
    uses: tuple[Use, ...]
    cause: int
    why: Why
    work_cause: int
    work_why: Why


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A block run from start to end.

    Attributes:
        kernel, machine: names.
        ii_cycles: the schedule's interval.
        groups: names of the groups.
        units: units with their capacities.
        events: in order of ``number``; those of one group are in program order.
        cycles: when the last group and the last engine are done.
        options: what was asked for.
        remarks: what has no price and was taken as free.
    """

    kernel: str
    machine: str
    ii_cycles: int
    groups: tuple[str, ...]
    units: tuple[Unit, ...]
    events: tuple[Event, ...]
    cycles: int
    options: SimulationOptions
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Cycles per iteration for one reason, in one group (empty: the whole block)."""

    group: str
    reason: str
    cycles: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadyState:
    """What a loop settles to.

    Attributes:
        ii_cycles: the schedule's interval.
        cycles: cycles per iteration.
        period: iterations after which all times repeat; 0 where they do not, and ``cycles`` is an average.
        first, last: the iterations that were measured, ``last`` not included.
        issue: cycles per iteration that each group's instruction stream is busy.
        stalls: cycles per iteration that it stands still, by reason, longest first.
        critical: what an iteration's time consists of: the chain of events, each of which set the time of the next.
        utilisation: unit and share of its capacity that is held.
    """

    ii_cycles: int
    cycles: float
    period: int
    first: int
    last: int
    issue: tuple[Share, ...]
    stalls: tuple[Share, ...]
    critical: tuple[Share, ...]
    utilisation: tuple[tuple[str, float], ...]

    @property
    def excess(self) -> float:
        """How much longer than the schedule's interval an iteration takes, as a fraction of it."""
        return self.cycles / self.ii_cycles - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """A cost beyond the schedule's interval: with it, and those before it, an iteration takes ``cycles``."""

    name: str
    cycles: float


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTime:
    """What a whole launch takes.

    Attributes:
        trips, blocks: trip count of every block, and how many there are.
        sms, waves: SMs of the chip with a block each, and how often they are filled.
        block_cycles: a block from start to end, by the simulation.
        before_cycles, after_cycles: of these, until the first and from the last op of the loop.
        loop_bytes, block_bytes: what an iteration, and the whole block, loads and stores.
        path_cycles: what the path between L2 and the SM needs for that, ``None`` where the machine has no figure.
        hbm_microseconds: what HBM needs if every byte that comes from it serves ``reuse`` accesses; ``None`` where
            ``reuse`` is not given or the machine has no figure.
        reuse: see above.
        launch_microseconds: added once.
        binding: what decides the time: ``simulation``, ``path to L2`` or ``HBM``.
        microseconds: of the launch.
        tflops: by the model, ``None`` where the loop has no matrix product.
        ceiling_tflops: what the chip sustains in practice, ``None`` where that is not known.
        reuse_needed: how many accesses a byte from HBM has to serve, so that HBM does not bind.
    """

    trips: int
    blocks: int
    sms: int
    waves: int
    block_cycles: float
    before_cycles: int
    after_cycles: int
    loop_bytes: int
    block_bytes: int
    path_cycles: float | None
    hbm_microseconds: float | None
    reuse: float | None
    launch_microseconds: float
    binding: str
    microseconds: float
    tflops: float | None
    ceiling_tflops: float | None
    reuse_needed: float | None

    @property
    def practical_tflops(self) -> float | None:
        """The smaller one of model and ceiling."""
        if self.tflops is None or self.ceiling_tflops is None:
            return self.tflops
        return min(self.tflops, self.ceiling_tflops)
