"""Prices of ops between registers and the memories of the SM: SMEM, TMEM, and changes of layout."""

from __future__ import annotations

import math

from twillgpu.costs.job import SUB_PARTITIONS, WARP, Job, spread
from twillgpu.costs.pricing import Price, whole
from twillgpu.frontend.kernel import TileType
from twillgpu.graph.layout import same_owners

ACCESS_BYTES = 16
"""Widest access of a thread to SMEM (PTX ISA: vectors of 128 bits)."""


def local_load(job: Job) -> Price:
    """Every thread reads its elements, copies of other threads' too, at 128 bytes per cycle."""
    return through_port(job, _register_bytes(job, job.tile), accesses=1)


def local_store(job: Job) -> Price:
    """The tile is written once, at 128 bytes per cycle; it may be read a memory latency later."""
    return through_port(job, job.bytes_of(job.operand(0)), accesses=1)


def local_alloc(job: Job) -> Price:
    """Nothing, or a store of the source."""
    tiles = [kind for kind in job.work.operands if kind.shape]
    return through_port(job, job.bytes_of(tiles[0]), accesses=1) if tiles else Price()


def convert_layout(job: Job) -> Price:
    """Nothing where every thread keeps its elements; otherwise a store, a barrier and a load."""
    source, target = job.operand(0), job.tile
    if same_owners(source, target):
        return Price()
    moved = job.bytes_of(source) + _register_bytes(job, target)
    return through_port(job, moved, accesses=2, wait=job.figure("latency.barrier_cycles"))


def gather(job: Job) -> Price:
    """As a change of layout."""
    moved = job.bytes_of(job.operand(0)) + _register_bytes(job, job.tile)
    return through_port(job, moved, accesses=2, wait=job.figure("latency.barrier_cycles"))


def through_port(job: Job, size_bytes: float, accesses: int, wait: float = 0) -> Price:
    """Return the price of moving bytes between registers and SMEM in one or two ``accesses`` after each other."""
    held = size_bytes / job.figure("smem.bytes_per_cycle")
    slots = size_bytes / ACCESS_BYTES / WARP / job.figure("rates.warp_instructions_per_cycle")
    duration = max(1, whole(max(held, slots * SUB_PARTITIONS / job.schedulers)))
    latency = duration + accesses * job.figure("latency.smem_cycles") + wait
    return Price(
        uses=job.smem_access(size_bytes) + job.use("issue", duration, job.shares("issue", slots / duration)),
        issue_cycles=duration,
        latency_cycles=whole(latency),
    )


def tmem_load(job: Job) -> Price:
    """All lanes' registers at the rate of the port; Triton waits for the data right behind the load, so the issue
    lasts until they are there.
    """
    return _tmem(job, job.tile, "tmem.load_cycles")


def tmem_store(job: Job) -> Price:
    """As a load: Triton waits for the completion right behind the store."""
    return _tmem(job, job.operand(0), "tmem.store_cycles")


def tmem_alloc(job: Job) -> Price:
    """Nothing, or a store of the source."""
    tiles = [kind for kind in job.work.operands if kind.shape]
    return _tmem(job, tiles[0], "tmem.store_cycles") if tiles else Price()


def _tmem(job: Job, kind: TileType, base: str) -> Price:
    held = max(1, whole(job.bytes_of(kind) / job.figure("tmem.bytes_per_cycle")))
    latency = whole(held + job.figure(base))
    return Price(uses=job.use("tmem_port", held), issue_cycles=latency, latency_cycles=latency)


def _register_bytes(job: Job, kind: TileType) -> float:
    """Return the bytes that all threads together hold of a tile, with copies."""
    each = spread(kind, job.op.warps).per_thread
    return math.ceil(each * WARP * job.op.warps * job.bits_of(kind) / 8)
