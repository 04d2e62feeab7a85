"""Small warp programs written by hand, and ways to break them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

from twillgpu.frontend.kernel import Carried, Kernel, KernelOp, KernelValue, Loop, Space, TileType
from twillgpu.lower.record import (
    Access,
    Arrive,
    Barrier,
    BarrierUse,
    Commit,
    Drain,
    Engine,
    Execute,
    ExpectBytes,
    Fence,
    GroupProgram,
    Instance,
    Instruction,
    Iteration,
    Memory,
    Put,
    Ring,
    Scope,
    Wait,
    WarpProgram,
)

TILE = TileType(space="smem", shape=(64, 64), dtype="f16")
BYTES = 8192
NOW = Iteration(anchor="loop", offset=0)


def per_iteration(at: Iteration = NOW, lag: int = 0) -> Instance:
    return Instance(scope="iteration", iteration=at, lag=lag)


def per_tile(lag: int = 0) -> Instance:
    return Instance(scope="tile", lag=lag)


def access(ring: str, instance: Instance | None = None) -> Access:
    return Access(ring=ring, instance=instance or per_iteration())


def use(barrier: str, instance: Instance | None = None) -> BarrierUse:
    return BarrierUse(barrier=barrier, instance=instance or per_iteration())


def wait(barrier: str, lag: int = 0, at: Iteration = NOW, least: int = 0) -> Wait:
    return Wait(use=use(barrier, per_iteration(at, lag)), at_least=least)


def arrive(barrier: str, lag: int = 0, at: Iteration = NOW, least: int = 0) -> Arrive:
    return Arrive(use=use(barrier, per_iteration(at, lag)), at_least=least)


def expect(barrier: str, count: int = BYTES, at: Iteration = NOW) -> ExpectBytes:
    return ExpectBytes(use=use(barrier, per_iteration(at)), bytes=count)


def execute(
    op: str,
    engine: Engine = "simt",
    *,
    reads: Sequence[str | Access] = (),
    writes: Sequence[str | Access] = (),
    completes: str | BarrierUse | None = None,
    at: Iteration | None = NOW,
    least: int = 0,
) -> Execute:
    def touched(one: str | Access) -> Access:
        return access(one, per_iteration(at or NOW)) if isinstance(one, str) else one

    signal = use(completes, per_iteration(at or NOW)) if isinstance(completes, str) else completes
    return Execute(
        op=op,
        members=(op,),
        engine=engine,
        iteration=at,
        reads=tuple(map(touched, reads)),
        writes=tuple(map(touched, writes)),
        completes=signal,
        at_least=least,
    )


def ring(
    name: str, depth: int, offset: int = 0, *, memory: Memory = "smem", size: int = BYTES, scope: Scope = "iteration"
) -> Ring:
    return Ring(
        name=name,
        memory=memory,
        bytes=size,
        depth=depth,
        offset_bytes=offset,
        scope=scope,
        tile=replace(TILE, space=memory),
        values=(name,),
    )


def barrier(
    name: str, copies: int, arrivals: int = 1, scope: Scope = "iteration", serves: tuple[str, ...] = ()
) -> Barrier:
    return Barrier(name=name, copies=copies, arrivals=arrivals, scope=scope, serves=serves)


def group(
    name: str,
    loop: Sequence[Instruction],
    *,
    stages: int = 1,
    before: Sequence[Instruction] = (),
    prologue: Sequence[Instruction] = (),
    epilogue: Sequence[Instruction] = (),
    after: Sequence[Instruction] = (),
) -> GroupProgram:
    return GroupProgram(
        name=name,
        warps=4,
        registers_per_thread=128,
        stages=stages,
        before=tuple(before),
        prologue=tuple(prologue),
        loop=tuple(loop),
        epilogue=tuple(epilogue),
        after=tuple(after),
    )


def op(
    name: str, operands: Sequence[str] = (), space: Space | Literal[""] = "", opcode: str = "arith.addf"
) -> KernelOp:
    results = (KernelValue(name=name, type=replace(TILE, space=space)),) if space else ()
    return KernelOp(
        name=name, opcode=opcode, operands=tuple(operands), results=results, source=f"kernel.py:{len(name)}"
    )


def kernel(body: Sequence[KernelOp], carried: Sequence[Carried] = ()) -> Kernel:
    index = TileType(space="scalar", dtype="i32")
    loop = Loop(
        name="loop",
        induction=KernelValue(name="i", type=index),
        lower="zero",
        upper="n",
        step="one",
        trip_count=None,
        carried=tuple(carried),
        body=tuple(body),
    )
    return Kernel(name="handmade", target="sm_90a", num_warps=4, arguments=(), before=(), loop=loop, after=())


def program(
    groups: Sequence[GroupProgram],
    rings: Sequence[Ring],
    barriers: Sequence[Barrier],
    body: Sequence[KernelOp] = (),
    carried: Sequence[Carried] = (),
) -> WarpProgram:
    return WarpProgram(
        kernel=kernel(body, carried),
        machine="toy",
        ii_cycles=100,
        groups=tuple(groups),
        rings=tuple(rings),
        barriers=tuple(barriers),
        persistent=True,
    )


def producer_consumer(depth: int, consumers: int = 1) -> WarpProgram:
    """A TMA load into a ring, read by one or two groups."""
    load = group(
        "producer",
        [wait("empty", lag=depth), expect("full"), execute("load", "tma", writes=["tile"], completes="full")],
    )
    readers = [
        group(f"consumer{index}", [wait("full"), execute(f"sum{index}", reads=["tile"]), arrive("empty")])
        for index in range(consumers)
    ]
    return program(
        [load, *readers],
        [ring("tile", depth)],
        [
            barrier("full", depth, serves=("load -> sum0 (data, 0)",)),
            barrier("empty", depth, consumers, serves=(f"sum0 -> load (anti, {depth})",)),
        ],
        [op("load"), *(op(f"sum{index}") for index in range(consumers))],
    )


def staged(depth: int) -> WarpProgram:
    """A load, and a wgmma that is drained one iteration later, with prologue and epilogue."""
    load = group(
        "producer",
        [wait("empty", lag=depth), expect("full"), execute("load", "tma", writes=["tile"], completes="full")],
    )
    first, last = Iteration(anchor="first", offset=0), Iteration(anchor="last", offset=-1)
    before = Iteration(anchor="loop", offset=-1)

    def start(at: Iteration, least: int = 0) -> list[Instruction]:
        return [wait("full", at=at, least=least), execute("dot", "wgmma", reads=["tile"], at=at, least=least)]

    def finish(at: Iteration, pending: int, least: int = 0) -> list[Instruction]:
        return [
            Drain(engine="wgmma", pending=pending, at_least=least),
            arrive("empty", at=at, least=least),
            execute("use", at=at, least=least),
        ]

    mma = group(
        "mma",
        [*start(NOW), *finish(before, 1)],
        stages=2,
        prologue=start(first, 1),
        epilogue=finish(last, 0, 1),
    )
    return program(
        [load, mma],
        [ring("tile", depth)],
        [barrier("full", depth), barrier("empty", depth)],
        [op("load"), op("dot", (), "registers", "ttng.warp_group_dot"), op("use", ("dot",))],
    )


def handover(depth: int = 1) -> WarpProgram:
    """A register value stored to SMEM for a tensor core that another group drives, accumulator in TMEM."""
    softmax = group(
        "softmax",
        [
            wait("p_empty", lag=depth),
            Put(value="p", iteration=NOW, access=access("p")),
            Fence(kind="async_shared"),
            arrive("p_full"),
        ],
    )
    mma = group(
        "mma",
        [
            wait("p_full"),
            execute("pv", "tcgen05", reads=["p", access("acc", per_tile())], writes=[access("acc", per_tile())]),
            Commit(engine="tcgen05", use=use("p_empty")),
        ],
        before=[Wait(use=use("acc_empty", per_tile(1)))],
        after=[Commit(engine="tcgen05", use=use("acc_full", per_tile()))],
    )
    out = group(
        "out",
        [],
        after=[
            Wait(use=use("acc_full", per_tile())),
            execute("store", reads=[access("acc", per_tile())], at=None, least=1),
            Arrive(use=use("acc_empty", per_tile())),
        ],
    )
    return program(
        [softmax, mma, out],
        [ring("p", depth), ring("acc", 1, memory="tmem", scope="tile")],
        [
            barrier("p_full", depth),
            barrier("p_empty", depth),
            barrier("acc_full", 1, scope="tile"),
            barrier("acc_empty", 1, scope="tile"),
        ],
        [op("pv"), op("store")],
    )


def aliased() -> WarpProgram:
    """S and P share TMEM: a product writes S, software reads it and writes P over it, a product reads P."""
    mma = group(
        "mma",
        [
            wait("pv_done", lag=1),
            execute("qk", "tcgen05", writes=["s"]),
            Commit(engine="tcgen05", use=use("s_full")),
            wait("p_full"),
            execute("pv", "tcgen05", reads=["p"]),
            Commit(engine="tcgen05", use=use("pv_done")),
        ],
    )
    softmax = group(
        "softmax",
        [
            wait("s_full"),
            execute("exp", reads=["s"]),
            execute("store_p", writes=["p"]),
            Fence(kind="tmem_store"),
            arrive("p_full"),
        ],
        after=[wait("pv_done", at=Iteration(anchor="last", offset=-1), least=1)],
    )
    return program(
        [mma, softmax],
        [ring("s", 1, memory="tmem"), ring("p", 1, memory="tmem", size=BYTES // 2)],
        [barrier("s_full", 1), barrier("p_full", 1), barrier("pv_done", 1)],
        [op("qk"), op("pv"), op("exp"), op("store_p")],
    )


def edit(
    subject: WarpProgram, name: str, change: Callable[[list[Instruction]], Sequence[Instruction]], part: str = "loop"
) -> WarpProgram:
    """Return a program with one part of one group changed."""

    def changed(one: GroupProgram) -> Any:  # a field by name
        return {part: tuple(change(list(getattr(one, part))))}

    groups = tuple(replace(one, **changed(one)) if one.name == name else one for one in subject.groups)
    return replace(subject, groups=groups)


def without(kind: type, which: int = 0) -> Callable[[list[Instruction]], list[Instruction]]:
    """Return what drops the ``which``-th instruction of a kind."""

    def change(instructions: list[Instruction]) -> list[Instruction]:
        places = [place for place, one in enumerate(instructions) if isinstance(one, kind)]
        return [one for place, one in enumerate(instructions) if place != places[which]]

    return change
