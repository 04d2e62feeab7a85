"""Figures that only the simulation needs, each with its source. All others are in the machine files."""

from __future__ import annotations

from twillgpu.machine.record import Figure

TABLE = "facebookexperimental/triton, measured latency table of its warp specialization (B200)"

ARRIVE = Figure(
    path="mbarrier.arrive_cycles",
    value=32,
    unit="cycles",
    source=f"the middle of the measured 20 to 45: {TABLE}",
    confidence="S",
)
WAIT = Figure(
    path="mbarrier.wait_cycles",
    value=30,
    unit="cycles",
    source=f"a wait for a barrier that is ready: {TABLE}",
    confidence="S",
)
LOADED = Figure(
    path="tma.loaded_factor",
    value=5,
    unit="times the latency of an idle chip",
    source="32 KB on B200: 892 cycles idle, a median of about 4600 with the whole chip loading "
    "(SemiAnalysisAI/microbench-blackwell)",
    confidence="D",
)
BODY_MEDIAN = Figure(
    path="tma.heavy.median_factor",
    value=1.2,
    unit="times the latency of an idle chip",
    source="a moderately loaded chip",
    confidence="G",
)
BODY_SPREAD = Figure(
    path="tma.heavy.sigma", value=0.3, unit="of the logarithm", source="no measurement", confidence="G"
)
TAIL_SHARE = Figure(
    path="tma.heavy.tail_share", value=0.02, unit="of the loads", source="misses of L2 and of the TLB", confidence="G"
)
TAIL_SHAPE = Figure(path="tma.heavy.tail_shape", value=1.5, unit="Pareto", source="no measurement", confidence="G")
TAIL_START = Figure(
    path="tma.heavy.tail_factor",
    value=3,
    unit="times the latency of an idle chip",
    source="no measurement",
    confidence="G",
)
TAIL_LIMIT = Figure(
    path="tma.heavy.limit_factor",
    value=40,
    unit="times the latency of an idle chip",
    source="no measurement; a Pareto tail of this shape has no variance without a limit",
    confidence="G",
)
LAUNCH = Figure(
    path="chip.launch_microseconds",
    value=3,
    unit="microseconds",
    source="from one kernel in a stream to the next: public measurements give 2 to 5",
    confidence="G",
)
BLOCK_START = Figure(
    path="chip.block_start_cycles",
    value=700,
    unit="cycles",
    source="a block's launch, its barriers' initialisation and the fetch of descriptors: about one latency of HBM",
    confidence="G",
)
