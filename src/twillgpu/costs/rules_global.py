"""Prices of ops that touch global memory: TMA, cp.async, plain loads and stores, atomics.

Latencies are those of an idle chip. What the whole chip's traffic adds is outside the model (``docs/machines.md``);
for loads it only moves how many copies of a buffer are wise, not the interval.
"""

from __future__ import annotations

import math
from dataclasses import replace

from twillgpu.costs.job import SUB_PARTITIONS, WARP, Job
from twillgpu.costs.pricing import Price, whole
from twillgpu.frontend.kernel import TileType

KB = 1024
WORD_BYTES = 4
BOX_ROWS = 256
"""Most rows of one TMA box (CUDA driver API, tensor map encoding)."""
SLOW_INSTRUCTIONS = 2
"""Instructions of one load after the first that add their own latency; later ones overlap."""


def tma_load(job: Job) -> Price:
    """460 + 6 per KB + 240 for each of the second and third instruction; the engine is held 6 per KB."""
    size = job.bytes_of(job.tile) / KB
    more = min(_boxes(job, job.tile) - 1, SLOW_INSTRUCTIONS)
    latency = (
        job.figure("tma.load_cycles")
        + job.figure("tma.load_cycles_per_kb") * size
        + job.figure("tma.instruction_cycles") * more
    )
    return _tma(job, size, latency, signals=True)


def tma_store(job: Job) -> Price:
    """130 + 52 per KB until the buffer may be overwritten and the data are on their way."""
    size = job.bytes_of(_source(job)) / KB
    latency = job.figure("tma.store_cycles") + job.figure("tma.store_cycles_per_kb") * size
    return _tma(job, size, latency, signals=False)


def tma_reduce(job: Job) -> Price:
    """As a store: the addition happens in L2."""
    return tma_store(job)


def async_copy(job: Job) -> Price:
    """cp.async: 16 bytes per thread and instruction from L2 into SMEM; arrives on an mbarrier when it has landed."""
    size = job.bytes_of(job.tile)
    return _accesses(job, size, job.figure("latency.hbm_cycles"), signals=True)


def global_load(job: Job) -> Price:
    """16 bytes per thread and instruction into registers; whoever reads them waits."""
    return _accesses(job, job.bytes_of(job.tile), job.figure("latency.hbm_cycles"), signals=False)


def global_store(job: Job) -> Price:
    """16 bytes per thread and instruction; done, as far as this SM is concerned, when it is on its way to L2."""
    size = job.bytes_of(job.operand(1))
    price = _accesses(job, size, 0, signals=False)
    return replace(price, issue_cycles=price.latency_cycles)


def atomic(job: Job) -> Price:
    """One lane at a time at the rate of reductions to L2, and the way there and back."""
    elements = math.prod(job.tile.shape)
    held = max(1, whole(elements / job.figure("global.atomic_lanes")))
    return Price(
        uses=job.smem_access(elements * WORD_BYTES),
        issue_cycles=held,
        latency_cycles=held + whole(job.figure("latency.l2_cycles")),
    )


def _tma(job: Job, size_kb: float, latency: float, *, signals: bool) -> Price:
    return Price(
        uses=job.use("tma", max(1, job.figure("tma.engine_cycles_per_kb") * size_kb)),
        issue_cycles=whole(job.figure("tma.issue_cycles")),
        latency_cycles=whole(latency),
        asynchronous=True,
        signals=signals,
    )


def _boxes(job: Job, kind: TileType) -> int:
    """Return TMA instructions of a tile: rows of a box hold 128 bytes, and a box has at most 256 rows."""
    *outer, inner = kind.shape or (1,)
    across = math.ceil(inner * job.bits_of(kind) / 8 / job.figure("tma.box_row_bytes"))
    return across * math.ceil(math.prod(outer) / BOX_ROWS)


def _source(job: Job) -> TileType:
    """Return the tile that a TMA store reads: the operand with a shape that is no descriptor."""
    for kind in job.work.operands:
        if kind.shape and kind.space in ("smem", "registers"):
            return kind
    raise job.fail("it has no tile to store", "give the op a cost in a graph file")


def _accesses(job: Job, size_bytes: int, latency: float, *, signals: bool) -> Price:
    """All threads' accesses: one warp instruction per cycle of the load and store unit, then the path to L2."""
    instructions = size_bytes / job.figure("global.access_bytes") / WARP
    path = size_bytes / job.figure("global.bytes_per_cycle")
    issue = max(1, whole(instructions * SUB_PARTITIONS / job.schedulers))
    held = max(issue, whole(path))
    shares = job.shares("issue", instructions / job.figure("rates.warp_instructions_per_cycle") / issue)
    return Price(
        uses=job.smem_access(size_bytes) + job.use("issue", issue, shares),
        issue_cycles=issue,
        latency_cycles=whole(latency + held),
        asynchronous=latency > 0,
        signals=signals,
    )
