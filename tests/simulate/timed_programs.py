"""Small warp programs with costs that make their times easy to derive, and the machine they run on."""

from __future__ import annotations

from collections.abc import Sequence

from problems import Dep, Node, problem
from twillgpu.costs.record import Problem
from twillgpu.frontend.kernel import Kernel, KernelValue, Loop, TileType
from twillgpu.lower.record import (
    Access,
    Arrive,
    Barrier,
    BarrierUse,
    Commit,
    Engine,
    Execute,
    ExpectBytes,
    GroupProgram,
    Instance,
    Instruction,
    Iteration,
    Ring,
    Wait,
    WarpProgram,
)
from twillgpu.machine.record import Handoff, Machine
from twillgpu.simulate.record import SimulationOptions

HOP = 10
ARRIVE = 3
WAIT = 2
TILE = TileType(space="smem", shape=(64, 64), dtype="f16")
BYTES = 8192
NOW = Iteration(anchor="loop", offset=0)
MACHINE = Machine(name="tiny", handoff=Handoff(barrier_cycles=HOP, base_cycles=HOP, cycles_per_kb=2))


def options(**given: object) -> SimulationOptions:
    """Return options with the costs of barrier instructions that the derivations use."""
    return SimulationOptions(arrive_cycles=ARRIVE, wait_cycles=WAIT, **given)  # type: ignore[arg-type]


def instance(lag: int = 0) -> Instance:
    return Instance(scope="iteration", iteration=NOW, lag=lag)


def barrier_use(name: str, lag: int = 0) -> BarrierUse:
    return BarrierUse(barrier=name, instance=instance(lag))


def wait(name: str, lag: int = 0) -> Wait:
    return Wait(use=barrier_use(name, lag))


def arrive(name: str) -> Arrive:
    return Arrive(use=barrier_use(name))


def expect(name: str) -> ExpectBytes:
    return ExpectBytes(use=barrier_use(name), bytes=BYTES)


def commit(name: str, engine: Engine = "tcgen05") -> Commit:
    return Commit(engine=engine, use=barrier_use(name))


def execute(op: str, engine: Engine = "simt", *, reads: str = "", writes: str = "", completes: str = "") -> Execute:
    return Execute(
        op=op,
        members=(op,),
        engine=engine,
        iteration=NOW,
        reads=(Access(ring=reads, instance=instance()),) if reads else (),
        writes=(Access(ring=writes, instance=instance()),) if writes else (),
        completes=barrier_use(completes) if completes else None,
    )


def group(name: str, loop: Sequence[Instruction], warps: int = 4) -> GroupProgram:
    return GroupProgram(
        name=name,
        warps=warps,
        registers_per_thread=0,
        stages=1,
        before=(),
        prologue=(),
        loop=tuple(loop),
        epilogue=(),
        after=(),
    )


def ring(name: str, depth: int) -> Ring:
    return Ring(
        name=name, memory="smem", bytes=BYTES, depth=depth, offset_bytes=0, scope="iteration", tile=TILE, values=()
    )


def barrier(name: str, copies: int = 1, arrivals: int = 1) -> Barrier:
    return Barrier(name=name, copies=copies, arrivals=arrivals, scope="iteration", serves=())


def program(
    groups: Sequence[GroupProgram], rings: Sequence[Ring] = (), barriers: Sequence[Barrier] = (), ii: int = 100
) -> WarpProgram:
    index = KernelValue(name="i", type=TileType(space="scalar", dtype="i32"))
    loop = Loop(
        name="loop", induction=index, lower="zero", upper="n", step="one", trip_count=None, carried=(), body=()
    )
    kernel = Kernel(name="handmade", target="sm_90a", num_warps=4, arguments=(), before=(), loop=loop, after=())
    return WarpProgram(
        kernel=kernel,
        machine="tiny",
        ii_cycles=ii,
        groups=tuple(groups),
        rings=tuple(rings),
        barriers=tuple(barriers),
        persistent=True,
    )


def producer_consumer(depth: int) -> WarpProgram:
    """A group that loads tiles into a ring, and one that reads them."""
    load: list[Instruction] = [
        wait("ready", depth),
        expect("full"),
        execute("load", "tma", writes="tile", completes="full"),
    ]
    read: list[Instruction] = [wait("full"), execute("read", reads="tile"), arrive("ready")]
    barriers = [barrier("full", depth), barrier("ready", depth)]
    return program([group("producer", load, 1), group("consumer", read)], [ring("tile", depth)], barriers)


def tiny(*nodes: Node, deps: Sequence[Dep] = ()) -> Problem:
    return problem(nodes, deps)
