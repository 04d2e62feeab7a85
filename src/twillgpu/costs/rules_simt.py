"""Prices of ops that all threads of the warps execute on registers.

Such an op is a stream of instructions, one for every element that a thread holds (times the passes of the opcode).
It lasts as long as its slowest unit: the pipe that executes it, or the issue port (4 warp instructions per cycle, one
for each sub-partition; fewer warps use fewer). Its shares of the issue port are instructions / (rate x duration).

A stream at the full issue rate holds all shares but one. The one that is left is what the special functions of
another stream take (one instruction in eight cycles); the stream is then slowed by at most an eighth, which the
model leaves out, because a table of fixed amounts cannot say it.

The next op of the same warps may issue when the stream has issued: its first element was done long ago. Only
where the stream is shorter than the pipeline does the pipeline's latency count; such a stream leaves the issue port
and the wide pipes idle for most of that time, and its few instructions are left out of their tables.
"""

from __future__ import annotations

import math

from twillgpu.costs.job import SUB_PARTITIONS, WARP, Job, Spread, spread
from twillgpu.costs.pricing import Price, whole

_PIPES = {"fp32": "rates.fp32_lanes", "alu": "rates.alu_lanes", "conversion": "rates.conversion_lanes"}
"""Lanes per cycle of the pipe behind each rule; conversions share the ``alu`` unit."""

_UNITS = {"fp32": "fp32", "alu": "alu", "conversion": "alu"}

_MIN_MAX = frozenset(
    f"arith.{name}" for name in ("maxnumf", "minnumf", "maximumf", "minimumf", "maxsi", "minsi", "maxui", "minui")
)


def free(_job: Job) -> Price:
    """Nothing: another name for the same registers or memory."""
    return Price()


def pipe(job: Job) -> Price:
    """Elements x passes on the FP32, integer or conversion pipe; 64-bit elements take twice as long."""
    elements = _elements(job) * _width(job)
    held = lanes_cycles(job, elements * job.entry.passes, _PIPES[job.entry.rule])
    instructions = elements * (job.entry.passes + job.entry.extra_passes)
    return stream(job, {_UNITS[job.entry.rule]: held}, instructions, job.figure("latency.alu_cycles"))


def mufu(job: Job) -> Price:
    """Elements x passes at the rate of the special function unit, and extra instructions on the FP32 pipe."""
    elements = _elements(job)
    held = {
        "mufu": lanes_cycles(job, elements * job.entry.passes, "rates.mufu_lanes"),
        "fp32": lanes_cycles(job, elements * job.entry.extra_passes, "rates.fp32_lanes"),
    }
    instructions = elements * (job.entry.passes + job.entry.extra_passes)
    latency = job.figure("latency.mufu_cycles") + (job.figure("latency.alu_cycles") if job.entry.extra_passes else 0)
    return stream(job, held, instructions, latency)


def reduce(job: Job) -> Price:
    """A tree over each thread's elements, then shuffles across the lanes, then SMEM across the warps.

    Every element costs one run of the combine function. The last two levels of the tree have fewer instructions
    than the pipeline is deep, and every shuffle step is a shuffle and a combination.
    """
    held = spread(job.operand(0), job.op.warps)
    axis = _axis(job)
    elements = held.per_thread * WARP * job.op.warps
    units, instructions = _combine(job, elements * job.entry.passes)
    inside = stream(job, units, instructions, job.figure("latency.alu_cycles"))
    tail = min(2, math.ceil(math.log2(held.thread[axis]))) * job.figure("latency.alu_cycles")
    across, steps = _across(job, held, axis)
    latency = inside.latency_cycles + whole(tail) + across
    return Price(uses=inside.uses, issue_cycles=inside.issue_cycles + steps, latency_cycles=latency)


def scan(job: Job) -> Price:
    """Like a reduction that also writes every partial result (the passes of the opcode say how often)."""
    return reduce(job)


def stream(job: Job, units: dict[str, float], instructions: float, latency: float) -> Price:
    """Return the price of a stream of ``instructions`` (lanes, not warps) that holds each unit so many cycles."""
    if not instructions:
        return Price()
    rate = job.figure("rates.warp_instructions_per_cycle")
    slots = instructions / WARP / (rate * job.schedulers / SUB_PARTITIONS)
    duration = max(1, whole(max(slots, *units.values())))
    full = next((unit.capacity for unit in job.machine.units if unit.name == "issue"), 1)
    shares = job.shares("issue", instructions / WARP / rate / duration)
    if duration < latency:
        uses = job.use("mufu", units.get("mufu", 0))
    else:
        uses = tuple(use for unit, cycles in units.items() for use in job.use(unit, cycles))
        uses += job.use("issue", duration, min(shares, max(1, full - 1)))
    return Price(uses=uses, issue_cycles=duration, latency_cycles=max(duration, whole(latency)))


def lanes_cycles(job: Job, lanes: float, rate: str) -> float:
    """Return the cycles for so many lane operations at a rate of the whole SM, of which the warps reach a part."""
    return lanes / (job.figure(rate) * job.schedulers / SUB_PARTITIONS)


def _elements(job: Job) -> int:
    """Return lane operations of one pass, those on copies of elements included; none for a scalar."""
    if not job.tile.shape:
        return 0
    return spread(job.tile, job.op.warps).per_thread * WARP * job.op.warps


def _width(job: Job) -> int:
    """Return 2 for arithmetic on 64-bit elements: two integer instructions, and FP64 has half the lanes."""
    tiles = [kind for kind in (*job.work.operands, *job.work.results) if kind.shape]
    return 2 if any(job.bits_of(kind) == 64 for kind in tiles) and job.entry.passes == 1 else 1


def _axis(job: Job) -> int:
    text = dict(job.work.attributes).get("axis")
    rank = len(job.operand(0).shape)
    if text is None or not rank:
        raise job.fail("it has no axis", "give the op a cost in a graph file")
    axis = int(text.split(":", maxsplit=1)[0])
    if not 0 <= axis < rank:
        raise job.fail(f"axis {axis} is not one of its {rank} dimensions", "correct the axis")
    return axis


def _carried(job: Job) -> int:
    """Return how many tiles a reduction combines together (2 for an arg max)."""
    return max(1, sum(1 for kind in job.work.operands if kind.shape))


def _combine(job: Job, elements: float) -> tuple[dict[str, float], float]:
    """Return cycles per unit and instructions of combining ``elements``, by the opcodes of the combine function."""
    prices = {entry.opcode: entry for entry in job.machine.ops}
    units: dict[str, float] = {"alu": 0.0}
    instructions = 0.0
    for opcode in job.work.body:
        entry = prices.get(opcode)
        if entry is None or entry.rule not in (*_PIPES, "free"):
            raise job.fail(f"its combine function has {opcode}", "give the op a cost in a graph file")
        if entry.rule == "free":
            continue
        passes = entry.passes * (job.figure("reduce.minmax_passes") if opcode in _MIN_MAX else 1)
        lanes = elements * passes
        unit = _UNITS[entry.rule]
        units[unit] = units.get(unit, 0.0) + lanes_cycles(job, lanes, _PIPES[entry.rule])
        instructions += lanes
    return units, instructions


def _across(job: Job, held: Spread, axis: int) -> tuple[int, int]:
    """Return latency and issue cycles of combining across lanes and across warps."""
    rows = held.per_thread // held.thread[axis] * _carried(job)
    values = rows * WARP * job.op.warps
    alu = job.figure("latency.alu_cycles")
    steps = int(math.log2(held.lanes[axis]))
    busy = lanes_cycles(job, values, "rates.shuffle_lanes")
    latency = steps * (job.figure("latency.shuffle_cycles") + alu + busy)
    issue = steps * busy
    if held.warps[axis] > 1:
        moved = values * 4 / job.figure("smem.bytes_per_cycle")
        latency += 2 * moved + 2 * job.figure("latency.smem_cycles") + job.figure("latency.barrier_cycles") + alu
        issue += 2 * moved
    return whole(latency), whole(issue)
