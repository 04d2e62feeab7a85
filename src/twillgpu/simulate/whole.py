"""From one block to a whole launch: waves of blocks, memory's limits, time and TFLOP/s."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from twillgpu.costs.record import Problem
from twillgpu.errors import InputError
from twillgpu.frontend.kernel import Kernel, KernelOp
from twillgpu.graph.body import tile_bytes
from twillgpu.graph.kinds import GLOBAL_OPCODES
from twillgpu.lower.record import WarpProgram
from twillgpu.machine.record import Machine
from twillgpu.simulate.figures import BLOCK_START, LAUNCH
from twillgpu.simulate.prices import value_types
from twillgpu.simulate.record import KernelTime, SimulationOptions, SteadyState, Trace
from twillgpu.simulate.simulate import simulate

WHOLE = 96
"""A block of at most so many iterations is simulated from start to end; longer ones repeat the steady state."""

ROUNDING = 1.01
"""Occupancies are whole cycles: a rate this much above that of 16-bit products still is one of theirs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A launch: trip count of every block, number of blocks (``None``: one for each SM), and how many accesses each
    byte that comes from HBM serves (``None``: not known, HBM is left out).
    """

    trips: int
    blocks: int | None = None
    reuse: float | None = None


def kernel_time(
    program: WarpProgram,
    problem: Problem,
    machine: Machine,
    steady: SteadyState,
    *,
    launch: Launch,
    options: SimulationOptions | None = None,
) -> tuple[KernelTime, Trace]:
    """Return what a launch takes, and the trace of the block that this follows from.

    Blocks run one to an SM, wave after wave. A block takes what the simulation says, or what the path from L2 needs
    for its bytes; the launch takes that, or what HBM needs, and the launch overhead. A long loop is simulated for
    some iterations and continued at the pace of the steady state.

    Raises:
        InputError: the machine has no number of SMs or no clock.
    """
    figures = {figure.path: figure.value for figure in machine.figures}
    for path in ("chip.sms", "chip.clock_mhz"):
        if path not in figures:
            raise InputError(f"machine {machine.name}", f"it has no {path}", "choose a real machine")
    shown = _simulated(launch.trips, steady)
    trace = simulate(program, problem, machine, replace(options or SimulationOptions(), trips=(shown,)))
    block = trace.cycles + (launch.trips - shown) * steady.cycles
    return _time(program.kernel, problem, figures, trace=trace, block=block, launch=launch), trace


def _simulated(trips: int, steady: SteadyState) -> int:
    """Return how many iterations to simulate: all, or a whole number of periods fewer."""
    if trips <= WHOLE:
        return trips
    period = max(1, steady.period)
    return WHOLE - period + 1 + (trips - WHOLE - 1) % period


def _time(
    kernel: Kernel, problem: Problem, figures: Mapping[str, float], *, trace: Trace, block: float, launch: Launch
) -> KernelTime:
    sms, clock = int(figures["chip.sms"]), figures["chip.clock_mhz"]
    blocks = sms if launch.blocks is None else launch.blocks
    loop_bytes = moved_bytes(kernel, kernel.loop.body)
    block_bytes = moved_bytes(kernel, (*kernel.before, *kernel.after)) + launch.trips * loop_bytes
    path = block_bytes / figures["global.bytes_per_cycle"] if "global.bytes_per_cycle" in figures else None
    waves = math.ceil(blocks / sms)
    busy = (max(block, path or 0.0) + BLOCK_START.value) * waves / clock
    hbm = _hbm(figures, block_bytes * blocks)
    held = None if hbm is None or launch.reuse is None else hbm / launch.reuse
    whole = max(busy, held or 0.0) + LAUNCH.value
    flop = problem.flop_per_iteration * launch.trips * blocks
    first, last = _loop(trace)
    return KernelTime(
        trips=launch.trips,
        blocks=blocks,
        sms=sms,
        waves=waves,
        block_cycles=block,
        before_cycles=first,
        after_cycles=trace.cycles - last,
        loop_bytes=loop_bytes,
        block_bytes=block_bytes,
        path_cycles=path,
        hbm_microseconds=held,
        reuse=launch.reuse,
        launch_microseconds=LAUNCH.value,
        binding=_binding(block, path, busy, held),
        microseconds=whole,
        tflops=flop / whole / 1e6 if flop else None,
        ceiling_tflops=_ceiling(figures, problem),
        reuse_needed=None if hbm is None or not busy else hbm / busy,
    )


def _ceiling(figures: Mapping[str, float], problem: Problem) -> float | None:
    """Return what the chip sustains on 16-bit products; nothing for products that run faster than those."""
    held = sum(use.cycles for op in problem.ops for use in op.uses if use.unit == "tensor")
    peak = figures.get("tensor.flop_per_cycle_16bit")
    if not problem.flop_per_iteration or peak is None or problem.flop_per_iteration > ROUNDING * peak * held:
        return None
    return figures.get("chip.practical_tflops_16bit")


def _hbm(figures: Mapping[str, float], total_bytes: float) -> float | None:
    """Return the microseconds that HBM needs for so many bytes."""
    if "global.hbm_bytes_per_cycle" not in figures:
        return None
    rate = figures["global.hbm_bytes_per_cycle"] * figures["chip.sms"]
    return total_bytes / rate / figures["chip.clock_mhz"]


def _binding(block: float, path: float | None, busy: float, held: float | None) -> str:
    if held is not None and held > busy:
        return "HBM"
    return "path to L2" if path is not None and path > block else "simulation"


def _loop(trace: Trace) -> tuple[int, int]:
    """Return when the first op of the loop starts, and when its last one is over."""
    inside = [event for event in trace.events if event.iteration is not None and event.kind in ("op", "put", "get")]
    if not inside:
        return trace.cycles, trace.cycles
    return min(one.start_cycle for one in inside), max(one.work_end_cycle for one in inside)


def moved_bytes(kernel: Kernel, ops: Iterable[KernelOp]) -> int:
    """Return the bytes that ops load from, and store to, global memory: their tiles, masked elements included."""
    types = value_types(kernel)
    total = 0
    for op in ops:
        if op.opcode in GLOBAL_OPCODES:
            moved = op.results[0].type if op.results else types.get(op.operands[1])
            total += tile_bytes(moved) if moved is not None else 0
    return total
