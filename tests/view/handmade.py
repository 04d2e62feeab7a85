"""A small run made by hand: a load, two matrix products and an exponential on two groups, 100 cycles apart."""

from __future__ import annotations

from twillgpu.costs.record import Bound, Bounds, PricedEdge, PricedOp, PricedValue, PriceOptions, Problem, RuleOptions
from twillgpu.frontend.kernel import Kernel, KernelOp, KernelValue, Loop, TileType
from twillgpu.graph.record import DepGraph, Use
from twillgpu.machine.record import Figure, Groups, Handoff, Machine, Memory, Registers, Unit
from twillgpu.schedule.record import (
    Attempt,
    Buffer,
    Group,
    Refuted,
    Schedule,
    ScheduledOp,
    SearchOptions,
    SearchResult,
)
from twillgpu.view.record import Run

UNITS = (Unit(name="issue", capacity=8), Unit(name="mufu", capacity=1), Unit(name="tensor", capacity=1))
MEMORIES = (Memory(name="smem", capacity_bytes=4096), Memory(name="tmem", capacity_bytes=262144))


def _op(
    name: str, kind: str, line: int, *uses: Use, issue: int, latency: int, value: PricedValue | None = None
) -> PricedOp:
    return PricedOp(
        name=name,
        kind=kind,
        source=f"kernel.py:{line}",
        uses=uses,
        issue_cycles=issue,
        latency_cycles=latency,
        real_latency_cycles=latency,
        handoff_cycles=0,
        warps=4 if kind == "exp" else 1,
        variable_latency=kind == "tma_load",
        streaming=kind == "tma_load",
        asynchronous=kind == "mma",
        value=value,
        staging_bytes=0,
    )


def _value(space: str, size: int) -> PricedValue:
    return PricedValue(space=space, bytes=size, registers_per_thread=0, alias=None)  # type: ignore[arg-type]


def _edge(tail: str, head: str) -> PricedEdge:
    return PricedEdge(
        tail=tail,
        head=head,
        latency_cycles=0,
        distance=0,
        kind="data",
        blocking=True,
        handoff_cycles=0,
        read_cycles=0,
    )


FIGURES = (
    Figure(path="chip.sms", value=100, unit="SMs", source="hand", confidence="V"),
    Figure(path="chip.clock_mhz", value=1000, unit="MHz", source="hand", confidence="G"),
    Figure(path="chip.practical_tflops_16bit", value=300, unit="TFLOP/s", source="hand", confidence="S"),
    Figure(path="tensor.flop_per_cycle_16bit", value=4000, unit="FLOP/cycle", source="hand", confidence="D"),
)
MACHINE = Machine(
    name="hand",
    title="A machine made by hand",
    units=UNITS,
    memories=MEMORIES,
    registers=Registers(per_thread=255, per_sm=65536),
    figures=FIGURES,
)

OPS = (
    _op("load", "tma_load", 3, issue=2, latency=0, value=_value("smem", 1024)),
    _op("qk", "mma", 4, Use(unit="tensor", cycles=50), issue=4, latency=60, value=_value("tmem", 65536)),
    _op("p", "exp", 5, Use(unit="mufu", cycles=80), Use(unit="issue", cycles=80, amount=2), issue=80, latency=90),
    _op("pv", "mma", 6, Use(unit="tensor", cycles=50), issue=4, latency=60, value=_value("tmem", 65536)),
)
PROBLEM = Problem(
    name="hand",
    machine="hand",
    ops=OPS,
    edges=(_edge("load", "qk"), _edge("qk", "p"), _edge("p", "pv")),
    residents=(),
    units=UNITS,
    memories=MEMORIES,
    fixed_bytes=(("smem", 512),),
    registers=Registers(per_thread=255, per_sm=65536),
    groups=Groups(max=2, warps=(1, 4), max_warps=32),
    handoff=Handoff(),
    legality=(),
    rules=RuleOptions(),
    trip_count=None,
    flop_per_iteration=200_000,
    graph_sha256="",
    machine_sha256="",
)

STARTS = (("load", 0, 0), ("qk", 10, 0), ("p", 70, 1), ("pv", 160, 0))
SCHEDULE = Schedule(
    graph="hand",
    machine="hand",
    ii_cycles=100,
    ops=tuple(ScheduledOp(name=name, start_cycle=start, group=group) for name, start, group in STARTS),
    groups=(
        Group(name="g0", warps=1, registers_per_thread=24),
        Group(name="g1", warps=4, registers_per_thread=200),
    ),
    buffers=(
        Buffer(name="load", space="smem", bytes=1024, depth=3, depth_floor=2, offset_bytes=512),
        Buffer(name="qk", space="tmem", bytes=65536, depth=2, depth_floor=2, offset_bytes=0),
        Buffer(name="pv", space="tmem", bytes=65536, depth=1, depth_floor=1, offset_bytes=131072),
    ),
)

BOUNDS = (
    Bound(name="tensor", cycles=100, reason="two matrix products of 50 cycles each", ops=("qk", "pv")),
    Bound(name="mufu", cycles=80, reason="one exponential of 80 cycles", ops=("p",)),
)
ATTEMPT = Attempt(purpose="schedule", slots=20, slot_cycles=5, stages=3, outcome="optimal", seconds=0.5)
RESULT = SearchResult(
    status="optimal",
    schedule=SCHEDULE,
    bounds=Bounds(bounds=BOUNDS),
    lower_bound_cycles=100,
    bound_reason="tensor: two matrix products of 50 cycles each",
    max_stages=3,
    objective=(("handoff", 2), ("groups", 2), ("registers", 26_368), ("length", 220)),
    objective_proved=True,
    refuted=(
        Refuted(first_cycles=1, last_cycles=99, reason="below the tensor bound", families=()),
        Refuted(first_cycles=100, last_cycles=100, reason="not with 1 stage", families=("dependence", "capacity")),
    ),
    attempts=(ATTEMPT,),
    method="clauses",
    solver="CP-SAT",
    version="9",
    options=SearchOptions(),
    slot_cycles=5,
    seconds=1.25,
)

TILE = TileType(space="registers", shape=(128, 64), dtype="f32")
LOOP = Loop(
    name="loop",
    induction=KernelValue(name="i", type=TileType(space="scalar", dtype="i32")),
    lower="zero",
    upper="n",
    step="one",
    trip_count=None,
    carried=(),
    body=(KernelOp(name="p", opcode="math.exp2", operands=("x",), results=(KernelValue(name="p", type=TILE),)),),
    source="kernel.py:2",
)
KERNEL = Kernel(
    name="softmax",
    target="sm_90a",
    num_warps=4,
    arguments=(),
    before=(),
    loop=LOOP,
    after=(),
    source_file="kernel.py",
)
RUN = Run(
    source="kernel.py",
    machine=MACHINE,
    limits=PriceOptions(),
    kernel=KERNEL,
    graph=DepGraph(name="hand", ops=(), edges=()),
    problem=PROBLEM,
    result=RESULT,
    remarks=("split into 2 sub-tiles of 64 rows", "module torch is not installed and was stubbed"),
    seconds=1.75,
)
