"""Lower bound on the time of a launch, before any schedule is known; and the time from a schedule alone."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

from twillgpu.costs.record import Bounds, Problem
from twillgpu.errors import InputError
from twillgpu.frontend.kernel import Kernel
from twillgpu.graph.record import Use
from twillgpu.machine.record import Machine
from twillgpu.schedule.record import Schedule
from twillgpu.simulate.figures import BLOCK_START, LAUNCH
from twillgpu.simulate.whole import moved_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A launch of blocks that each run ``trips`` iterations; ``reuse`` as in ``twillgpu.simulate.whole.Launch``."""

    trips: int
    blocks: int
    reuse: float | None


def waves(machine: Machine, blocks: int) -> int:
    """Return how many blocks, one after the other, the busiest SM runs.

    Raises ``InputError`` where the machine has no number of SMs.
    """
    return math.ceil(blocks / _figure(machine, "chip.sms"))


def microseconds(machine: Machine, block_cycles: float, blocks: int) -> float:
    """Return the time of a launch whose blocks take so many cycles each, as ``simulate.whole`` counts it.

    Raises ``InputError`` where the machine has no number of SMs or no clock.
    """
    clock = _figure(machine, "chip.clock_mhz")
    return (block_cycles + BLOCK_START.value) * waves(machine, blocks) / clock + LAUNCH.value


def kernel_floor(problem: Problem, kernel: Kernel, machine: Machine, work: Work) -> float:
    """Return microseconds below which ``simulate.whole.kernel_time`` is for no schedule.

    A block holds each unit for what its iterations ask of it, and moves its bytes over the path from L2; the
    launch moves its bytes from HBM. Bounds of memories, registers and recurrences are left out: they hold for the
    interval of a schedule, and the simulation may run ahead of it. Raises what ``microseconds`` does.
    """
    figures = {figure.path: figure.value for figure in machine.figures}
    loop = moved_bytes(kernel, kernel.loop.body)
    moved = moved_bytes(kernel, (*kernel.before, *kernel.after)) + work.trips * loop
    rate = figures.get("global.bytes_per_cycle")
    cycles = max(busiest(problem) * work.trips, moved / rate if rate else 0.0)
    return max(microseconds(machine, cycles, work.blocks), _hbm(machine, figures, moved, work))


def _hbm(machine: Machine, figures: dict[str, float], moved: float, work: Work) -> float:
    rate = figures.get("global.hbm_bytes_per_cycle")
    if rate is None or work.reuse is None:
        return 0.0
    sms, clock = _figure(machine, "chip.sms"), _figure(machine, "chip.clock_mhz")
    return moved * work.blocks / (rate * sms) / clock / work.reuse + LAUNCH.value


def busiest(problem: Problem) -> float:
    """Return the cycles of an iteration that the busiest unit is held for: the sum of its uses over its capacity."""
    held: dict[str, int] = defaultdict(int)
    for op in problem.ops:
        for use in op.uses:
            held[use.unit] += use.cycles * use.amount
    return max((held[unit.name] / unit.capacity for unit in problem.units), default=0.0)


def graph_floor(problem: Problem, bounds: Bounds, machine: Machine, work: Work) -> float:
    """Return microseconds below which a launch is, by ``graph_block`` of any schedule. Raises as above."""
    cycles = max(busiest(problem) * work.trips, float(bounds.binding.cycles * (work.trips - 1)))
    return microseconds(machine, cycles, work.blocks)


def graph_block(problem: Problem, schedule: Schedule, trips: int) -> int:
    """Return the cycles of a block by its schedule alone: (trips - 1) I, and the length of one iteration."""
    latency = {op.name: max(op.real_latency_cycles, _held(op.uses)) for op in problem.ops}
    length = max(op.start_cycle + latency[op.name] for op in schedule.ops)
    return (trips - 1) * schedule.ii_cycles + length


def _held(uses: tuple[Use, ...]) -> int:
    return max((use.offset + use.cycles for use in uses), default=0)


def _figure(machine: Machine, path: str) -> float:
    found = next((figure.value for figure in machine.figures if figure.path == path), None)
    if found is None:
        raise InputError(f"machine {machine.name}", f"it has no {path}", "choose a real machine")
    return found
