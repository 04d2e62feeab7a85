"""Prices of tensor core ops: wgmma (Hopper), tcgen05.mma (Blackwell), mma.sync (Ampere).

One instruction covers a block of rows, up to 256 columns and 32 bytes of K. It occupies the tensor core for
``2 x rows x columns x K / rate`` cycles, or for as long as its operands take to come out of SMEM, if that is
longer. Several instructions of one op follow each other without a gap. While they run, the operands in SMEM take
their share of the port to SMEM.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from twillgpu.costs.job import SUB_PARTITIONS, Job
from twillgpu.costs.pricing import Price, whole
from twillgpu.frontend.kernel import TileType
from twillgpu.graph.record import Use

STEP_BYTES = 32
"""Bytes of K of one instruction (PTX ISA: K is 256 bits for wgmma and tcgen05.mma)."""
COLUMNS = 256
"""Most columns of one instruction (PTX ISA)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """``rows x k`` times ``k x columns``: the two operands and the bytes of an element of A."""

    rows: int
    columns: int
    k: int
    a: TileType
    b: TileType
    element_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """``count`` instructions, one every ``interval_cycles``, that need ``smem_cycles`` of the SMEM port each."""

    count: int
    interval_cycles: float
    smem_cycles: float

    @property
    def cycles(self) -> int:
        """Cycles for which they occupy the tensor core."""
        return whole(self.count * self.interval_cycles)


def wgmma(job: Job) -> Price:
    """m64nNk16: 64 N 16 2 / 4096 = N / 2 cycles; operands of 32 bytes a row from SMEM at 128 bytes per cycle.

    A whole tile of M rows is M / 64 such products, one of each warpgroup. The result is there when the pipeline has
    drained.
    """
    product = _product(job)
    burst = _burst(job, product, rows=64)
    return Price(
        uses=_uses(job, burst),
        issue_cycles=whole(job.figure("wgmma.issue_cycles")),
        latency_cycles=burst.cycles + whole(job.figure("wgmma.pipeline_cycles")),
        asynchronous=True,
        accumulates=True,
    )


def tcgen05(job: Job) -> Price:
    """128 rows (64 take as long): one instruction every max(N / 2, bytes from SMEM / 128) cycles; the last one
    completes N / 2 + 136 cycles after its issue (120 with 64 rows, 104 with A in TMEM) and arrives on an mbarrier.
    """
    product = _product(job)
    burst = _burst(job, product, rows=128)
    last = min(COLUMNS, product.columns) / 2 + job.figure(f"tcgen05.latency_{_place(product)}_cycles")
    return Price(
        uses=_uses(job, burst),
        issue_cycles=whole(job.figure("tcgen05.issue_cycles")),
        latency_cycles=whole((burst.count - 1) * burst.interval_cycles + last),
        asynchronous=True,
        signals=True,
        accumulates=True,
    )


def mma_v2(job: Job) -> Price:
    """mma.sync m16n8k16: the warps themselves issue one instruction after the other, for as long as the tensor core
    takes; operands and result are in registers.
    """
    product = _product(job)
    cycles = 2 * product.rows * product.columns * product.k / _rate(job, product) * job.entry.passes
    instructions = product.rows * product.columns * product.k * product.element_bytes / (16 * 8 * STEP_BYTES)
    shares = job.shares("issue", instructions / job.figure("rates.warp_instructions_per_cycle") / cycles)
    duration = cycles * SUB_PARTITIONS / job.schedulers
    return Price(
        uses=job.use("tensor", duration) + job.use("issue", duration, shares),
        issue_cycles=whole(duration),
        latency_cycles=whole(duration + job.figure("mma_v2.pipeline_cycles")),
        accumulates=True,
    )


def _product(job: Job) -> Product:
    a, b = job.operand(0), job.operand(1)
    if len(a.shape) != 2 or len(b.shape) != 2 or a.shape[1] != b.shape[0]:
        raise job.fail(f"operands of {a.shape} and {b.shape} elements", "multiply tiles of two dimensions")
    return Product(
        rows=a.shape[0],
        columns=b.shape[1],
        k=a.shape[1],
        a=a,
        b=b,
        element_bytes=job.bits_of(a) // 8,
    )


def _burst(job: Job, product: Product, rows: int) -> Burst:
    columns = min(COLUMNS, product.columns)
    step = STEP_BYTES // product.element_bytes
    from_smem = columns * STEP_BYTES
    if product.a.space == "smem":
        from_smem += min(rows, product.rows) * STEP_BYTES
    smem = from_smem / job.figure("smem.bytes_per_cycle")
    tensor = 2 * rows * columns * step / _rate(job, product)
    count = math.ceil(product.rows / rows) * math.ceil(product.columns / columns) * math.ceil(product.k / step)
    return Burst(count=count, interval_cycles=max(tensor, smem), smem_cycles=smem)


def _rate(job: Job, product: Product) -> float:
    """FLOP per cycle of the SM for the element type of A."""
    figures = {1: "tensor.flop_per_cycle_8bit", 2: "tensor.flop_per_cycle_16bit", 4: "tensor.flop_per_cycle_tf32"}
    if product.element_bytes not in figures:
        raise job.fail(f"no tensor core rate for {product.a.dtype}", "use elements of 8, 16 or 32 bits")
    return job.figure(figures[product.element_bytes])


def _place(product: Product) -> str:
    if product.a.space == "tmem":
        return "tmem"
    return "smem_m64" if product.rows <= 64 else "smem_m128"


def _uses(job: Job, burst: Burst) -> tuple[Use, ...]:
    amount = job.shares("smem_port", burst.smem_cycles / burst.interval_cycles)
    return job.use("tensor", burst.cycles) + job.use("smem_port", burst.cycles, amount)
