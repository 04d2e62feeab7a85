"""A published kernel as a schedule of one of the examples, and what the model says about it on a whole chip."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from one import EXAMPLES
from twillgpu.baselines.compare import PLANS
from twillgpu.baselines.complete import STAGES, complete
from twillgpu.baselines.record import Unsuited
from twillgpu.errors import InputError
from twillgpu.frontend.launch import LoadOptions
from twillgpu.inputs import Priced, SourceOptions, load_problem
from twillgpu.lower.lower import lower
from twillgpu.lower.record import WarpProgram
from twillgpu.machine.record import Machine
from twillgpu.schedule.record import Schedule, SearchOptions
from twillgpu.schedule.search import search
from twillgpu.simulate.figures import BLOCK_START, LAUNCH
from twillgpu.simulate.simulate import steady_state
from twillgpu.simulate.whole import Launch, kernel_time
from twillgpu.verify import check
from twillgpu.verify.record import Verified

MACHINES = Path(__file__).parent / "machines"
OPTIMUM = "optimum"
ALIGNED = 48
"""Iterations of the block that is simulated from start to end; what it takes beyond its steady state is kept."""
LIMITS = SearchOptions(time_limit_seconds=240)


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """How a kernel is modelled.

    Attributes:
        name: short, unique.
        example: the loop.
        machine: a machine of the package, or a file in ``bench/machines``.
        constexprs: the tile.
        rows: of a sub-tile: ``None`` one of the tensor core's, each with warps of its own; 0: none, all warps of the
            block go through the loop in step.
        way: ``optimum``, or a plan of ``twillgpu compare``.
    """

    name: str
    example: str
    machine: str
    constexprs: tuple[tuple[str, int], ...] = ()
    rows: int | None = None
    way: str = OPTIMUM


@dataclass(frozen=True, slots=True, kw_only=True)
class Modelled:
    """What came of a model: all that a launch of any size needs.

    Attributes:
        ii_cycles: the schedule's interval; ``None``: no schedule was found, and ``said`` tells why.
        steady_cycles: an iteration of the simulated loop.
        edge_cycles: what a block takes beyond its iterations.
        flop: of an iteration.
        loop_bytes, edge_bytes: of global memory, in an iteration and outside the loop.
        machine_sha256: of the machine that all this was priced on.
    """

    ii_cycles: int | None = None
    steady_cycles: float = 0.0
    edge_cycles: float = 0.0
    flop: int = 0
    loop_bytes: int = 0
    edge_bytes: int = 0
    machine_sha256: str = ""
    said: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A model's warp program, and the interval of the schedule that it was made from."""

    priced: Priced
    program: WarpProgram
    ii_cycles: int
    said: str


def made(model: Model) -> Made | str:
    """Return the warp program of a model, or why there is none."""
    priced = load(model)
    schedule, stages, said = _schedule(priced, model.way)
    kernel = priced.loaded.kernel
    if schedule is None or kernel is None:
        return said
    verdict = check(priced.problem, schedule, max_stages=stages)
    if not isinstance(verdict, Verified):
        return verdict[0].message
    program = lower(kernel, priced.loaded.graph, verdict)
    return Made(priced=priced, program=program, ii_cycles=schedule.ii_cycles, said=said)


def modelled(model: Model) -> Modelled:
    """Load, search, lower and simulate."""
    found = made(model)
    if isinstance(found, str):
        return Modelled(said=found)
    machine, problem = found.priced.loaded.machine, found.priced.problem
    steady = steady_state(found.program, problem, machine)
    time, _ = kernel_time(found.program, problem, machine, steady, launch=Launch(trips=ALIGNED))
    return Modelled(
        ii_cycles=found.ii_cycles,
        steady_cycles=steady.cycles,
        edge_cycles=time.block_cycles - ALIGNED * steady.cycles,
        flop=problem.flop_per_iteration,
        loop_bytes=time.loop_bytes,
        edge_bytes=time.block_bytes - ALIGNED * time.loop_bytes,
        machine_sha256=problem.machine_sha256,
        said=found.said,
    )


def load(model: Model) -> Priced:
    """Return the scheduling problem of a model."""
    options = SourceOptions(rows=model.rows, load=LoadOptions(constexprs=model.constexprs))
    return load_problem(EXAMPLES / f"{model.example}.py", machine_name(model.machine), options=options)


def machine_name(machine: str) -> str:
    """Return what ``twillgpu.machine.load`` takes: a shipped name, or a file of this folder."""
    file = MACHINES / f"{machine}.toml"
    return str(file) if file.exists() else machine


def _schedule(priced: Priced, way: str) -> tuple[Schedule | None, int, str]:
    """Return the schedule, the stages that it may have, and what is to be said about it."""
    if way == OPTIMUM:
        result = search(priced.problem, LIMITS)
        return result.schedule, result.max_stages, result.status
    known, planner = next((known, planner) for known, planner in PLANS if known.name == way)
    plan = planner(priced.problem)
    if isinstance(plan, Unsuited):
        return None, STAGES, plan.reason
    options = SearchOptions(max_stages=STAGES, time_limit_seconds=LIMITS.time_limit_seconds)
    found = complete(priced.problem, known, plan, options, lambda _: None)
    return found.schedule, STAGES, found.reason or found.outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted:
    """Rates of a launch: by the model at the stated clock, and at most what the power limit leaves."""

    model_tflops: float
    ceiling_tflops: float
    waves: int

    @property
    def tflops(self) -> float:
        """The prediction."""
        return min(self.model_tflops, self.ceiling_tflops)


def predicted(found: Modelled, machine: Machine, blocks: int, trips: int) -> Predicted:
    """Return the rates of a launch of ``blocks`` blocks of ``trips`` iterations, by the formula of ``kernel_time``.

    Time = waves x (block + start of a block) / clock + launch; a block takes its iterations and what is around them,
    or what the path from L2 needs for its bytes.

    Raises ``InputError`` where there is no schedule.
    """
    if found.ii_cycles is None:
        raise InputError("the model", found.said, "choose another schedule")
    figures = {figure.path: figure.value for figure in machine.figures}
    sms, clock = figures["chip.sms"], figures["chip.clock_mhz"]
    path = (found.edge_bytes + trips * found.loop_bytes) / figures["global.bytes_per_cycle"]
    block = max(found.edge_cycles + trips * found.steady_cycles, path)
    waves = math.ceil(blocks / sms)
    microseconds = waves * (block + BLOCK_START.value) / clock + LAUNCH.value
    return Predicted(
        model_tflops=found.flop * trips * blocks / microseconds / 1e6,
        ceiling_tflops=figures["chip.practical_tflops_16bit"],
        waves=waves,
    )
