"""A kernel, its graph and its schedule side by side, looked up by name."""

from __future__ import annotations

from dataclasses import dataclass

from twillgpu.costs.record import PricedEdge, PricedOp, Problem
from twillgpu.frontend.kernel import Carried, Kernel, KernelOp, TileType
from twillgpu.graph.body import Body, body_of
from twillgpu.graph.flow import root_of
from twillgpu.graph.record import DepGraph, Op
from twillgpu.lower.record import Engine
from twillgpu.schedule.record import Schedule

_ENGINES: dict[str, Engine] = {
    "tma_load": "tma",
    "async_copy": "cp_async",
    "tma_store": "tma_store",
    "tma_reduce": "tma_store",
}
_TENSOR_ENGINES: dict[str, Engine] = {
    "ttng.warp_group_dot": "wgmma",
    "ttng.tc_gen5_mma": "tcgen05",
    "ttng.tc_gen5_mma_scaled": "tcgen05",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """What lowering looks up.

    Attributes:
        kernel, graph, problem, schedule: as given.
        body: look-ups over the kernel.
        interval: initiation interval in cycles.
        ops, priced: graph ops and priced ops by name, in program order.
        start: start cycle in iteration 0 of each graph op.
        group: index of the group of each graph op.
        edges: the dependences.
        inside: kernel ops of the loop body by name.
        makers: names of the graph ops that a kernel op of the loop is a member of.
    """

    kernel: Kernel
    graph: DepGraph
    problem: Problem
    schedule: Schedule
    body: Body
    interval: int
    ops: dict[str, Op]
    priced: dict[str, PricedOp]
    start: dict[str, int]
    group: dict[str, int]
    edges: tuple[PricedEdge, ...]
    inside: dict[str, KernelOp]
    makers: dict[str, tuple[str, ...]]

    def engine(self, name: str) -> Engine:
        """Return who does the work of a graph op."""
        op = self.ops[name]
        if op.kind == "mma":
            return _TENSOR_ENGINES.get(self.members(name)[-1].opcode, "simt")
        return _ENGINES.get(op.kind, "simt")

    def members(self, name: str) -> tuple[KernelOp, ...]:
        """Return the kernel ops of a graph op, in order."""
        return tuple(self.inside[member] for member in self.ops[name].members)

    def at(self, name: str, iteration: int) -> int:
        """Return the cycle at which a graph op of ``iteration`` starts."""
        return self.start[name] + iteration * self.interval

    def type_of(self, value: str) -> TileType:
        """Return the type of a value known before or in the loop."""
        return self.body.types[value]

    def root(self, value: str) -> str:
        """Return the memory tile that ``value`` is a view of."""
        return root_of(value, self.body)

    def carried(self, value: str) -> Carried | None:
        """Return the carried value of a block argument, ``None`` for any other value."""
        return self.body.carried.get(value)


def sheet_of(kernel: Kernel, graph: DepGraph, problem: Problem, schedule: Schedule) -> Sheet:
    """Return the look-ups for one schedule of one kernel."""
    makers: dict[str, list[str]] = {}
    for op in graph.ops:
        for member in op.members:
            makers.setdefault(member, []).append(op.name)
    return Sheet(
        kernel=kernel,
        graph=graph,
        problem=problem,
        schedule=schedule,
        body=body_of(kernel),
        interval=schedule.ii_cycles,
        ops={op.name: op for op in graph.ops},
        priced={op.name: op for op in problem.ops},
        start={op.name: op.start_cycle for op in schedule.ops},
        group={op.name: op.group for op in schedule.ops},
        edges=problem.edges,
        inside={op.name: op for op in kernel.loop.body},
        makers={member: tuple(names) for member, names in makers.items()},
    )
