"""What a machine file may contain: every figure with its unit, and the names of pricing and legality rules.

One visible list, so that the loader can refuse a misspelt key, a wrong unit or a fractional count, and so that
``docs/machines.md`` and the cost model can be compared with it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from twillgpu.errors import InputError, nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureRule:
    """What a figure must look like: ``path`` (``*`` stands for any name), its unit, and its smallest value."""

    path: str
    units: tuple[str, ...]
    integer: bool = False
    minimum: float = 0.0


def _count(path: str, *units: str) -> FigureRule:
    return FigureRule(path=path, units=units, integer=True, minimum=1)


def _natural(path: str, unit: str) -> FigureRule:
    return FigureRule(path=path, units=(unit,), integer=True)


def _positive(path: str, unit: str) -> FigureRule:
    return FigureRule(path=path, units=(unit,), minimum=1e-9)


def _cycles(path: str) -> FigureRule:
    return FigureRule(path=path, units=("cycles",))


def _per_kb(path: str) -> FigureRule:
    return FigureRule(path=path, units=("cycles/KB",))


LIMITS: tuple[FigureRule, ...] = (
    _count("units.*", "instances", "shares"),
    _count("memories.*.capacity_bytes", "bytes"),
    _count("memories.*.alignment_bytes", "bytes"),
    _count("registers.per_thread", "registers"),
    _count("registers.per_sm", "registers"),
    _natural("registers.overhead_per_thread", "registers"),
    _natural("registers.quota_min", "registers"),
    _count("registers.quota_step", "registers"),
    _count("groups.max", "groups"),
    _count("groups.warps[*]", "warps"),
    _count("groups.max_warps", "warps"),
    _cycles("handoff.base_cycles"),
    _per_kb("handoff.cycles_per_kb"),
    _cycles("handoff.barrier_cycles"),
)
"""Figures that become the typed parts of ``Machine``."""

PRICES: tuple[FigureRule, ...] = (
    _count("chip.sms", "SMs"),
    _positive("chip.clock_mhz", "MHz"),
    _positive("chip.practical_tflops_16bit", "TFLOP/s"),
    _positive("rates.warp_instructions_per_cycle", "instructions/cycle"),
    _positive("rates.fp32_lanes", "lanes/cycle"),
    _positive("rates.alu_lanes", "lanes/cycle"),
    _positive("rates.conversion_lanes", "lanes/cycle"),
    _positive("rates.mufu_lanes", "lanes/cycle"),
    _positive("rates.shuffle_lanes", "lanes/cycle"),
    _cycles("latency.alu_cycles"),
    _cycles("latency.mufu_cycles"),
    _cycles("latency.shuffle_cycles"),
    _cycles("latency.smem_cycles"),
    _cycles("latency.barrier_cycles"),
    _cycles("latency.l2_cycles"),
    _cycles("latency.hbm_cycles"),
    _positive("reduce.minmax_passes", "instructions/element"),
    _positive("tensor.flop_per_cycle_16bit", "FLOP/cycle"),
    _positive("tensor.flop_per_cycle_tf32", "FLOP/cycle"),
    _positive("tensor.flop_per_cycle_8bit", "FLOP/cycle"),
    _cycles("wgmma.issue_cycles"),
    _cycles("wgmma.pipeline_cycles"),
    _cycles("mma_v2.pipeline_cycles"),
    _cycles("tcgen05.issue_cycles"),
    _cycles("tcgen05.latency_smem_m128_cycles"),
    _cycles("tcgen05.latency_smem_m64_cycles"),
    _cycles("tcgen05.latency_tmem_cycles"),
    _positive("smem.bytes_per_cycle", "bytes/cycle"),
    _cycles("tma.issue_cycles"),
    _cycles("tma.load_cycles"),
    _per_kb("tma.load_cycles_per_kb"),
    _per_kb("tma.engine_cycles_per_kb"),
    _cycles("tma.instruction_cycles"),
    _count("tma.box_row_bytes", "bytes"),
    _cycles("tma.store_cycles"),
    _per_kb("tma.store_cycles_per_kb"),
    _positive("tmem.bytes_per_cycle", "bytes/cycle"),
    _cycles("tmem.load_cycles"),
    _cycles("tmem.store_cycles"),
    _count("global.access_bytes", "bytes"),
    _positive("global.bytes_per_cycle", "bytes/cycle"),
    _positive("global.hbm_bytes_per_cycle", "bytes/cycle"),
    _positive("global.atomic_lanes", "lanes/cycle"),
)
"""Figures that the pricing rules read with ``Machine.figure``."""

FIGURES = LIMITS + PRICES

PRICING_RULES: tuple[str, ...] = (
    "free",
    "fp32",
    "alu",
    "conversion",
    "mufu",
    "reduce",
    "scan",
    "gather",
    "wgmma",
    "tcgen05",
    "mma_v2",
    "convert_layout",
    "local_alloc",
    "local_load",
    "local_store",
    "tmem_alloc",
    "tmem_load",
    "tmem_store",
    "tma_load",
    "tma_store",
    "tma_reduce",
    "global_load",
    "global_store",
    "async_copy",
    "atomic",
)
"""Classes of op that the cost model can price."""

LEGALITY_RULES: tuple[str, ...] = (
    "wgmma_accumulator",
    "wgmma_pause",
    "carried_registers",
    "tmem_warps",
    "mma_reader",
)
"""Sub-rules of legality that a machine may ask for."""

CONFIDENCES: tuple[str, ...] = ("V", "D", "S", "G")

_PATTERNS = tuple((re.compile(re.escape(rule.path).replace(r"\*", r"[^.\[\]]+") + r"\Z"), rule) for rule in FIGURES)


def rule_for(path: str, place: str) -> FigureRule:
    """Return the rule of the figure at dotted ``path``; raises ``InputError`` at ``place`` for an unknown one."""
    for pattern, rule in _PATTERNS:
        if pattern.match(path):
            return rule
    known = [rule.path for rule in FIGURES]
    section = [name for name in known if name.startswith(f"{path.partition('.')[0]}.")]
    raise InputError(place, "unknown figure", nearest(path, section or known))


SECTIONS: tuple[str, ...] = tuple(sorted({rule.path.split(".")[0] for rule in FIGURES}))
"""Top-level tables that hold figures."""
