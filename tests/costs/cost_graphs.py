"""Short forms of graphs and machines for the tests of the cost model."""

from twillgpu.costs.price import price
from twillgpu.costs.record import PricedEdge, PricedOp, PriceOptions, Problem
from twillgpu.graph.record import Cost, DepGraph, Edge, Op, Resident, Use, Value, ValueSpace
from twillgpu.machine.load import from_mapping
from twillgpu.machine.record import Machine

SMALL = {
    "name": "small",
    "units": {"tensor": 1, "alu": 1, "issue": 8},
    "memories": {"smem": {"capacity_bytes": 1000, "alignment_bytes": 16}},
    "registers": {"per_thread": 64, "per_sm": 8192, "overhead_per_thread": 4},
    "groups": {"max": 2, "warps": [1, 4], "max_warps": 8},
    "handoff": {"base_cycles": 10, "cycles_per_kb": 4, "barrier_cycles": 7},
}


def small(**changes: object) -> Machine:
    """Return a machine with two groups, 1000 bytes of SMEM in blocks of 16, 64 registers per thread."""
    return from_mapping({**SMALL, **changes}, "test")


def value(space: ValueSpace = "registers", size: int = 512, alias: str | None = None) -> Value:
    return Value(space=space, bytes=size, alias=alias)


def op(
    name: str,
    cycles: int = 2,
    *,
    latency: int | None = None,
    issue: int | None = None,
    unit: str = "alu",
    result: Value | None = None,
    warps: int = 4,
    variable: bool = False,
    kind: str = "op",
    handoff: int | None = None,
) -> Op:
    """Return an op that holds ``unit`` for ``cycles``; latency and issue time are the same unless given."""
    cost = Cost(
        uses=(Use(unit=unit, cycles=cycles),) if cycles else (),
        issue_cycles=cycles if issue is None else issue,
        latency_cycles=cycles if latency is None else latency,
        handoff_cycles=handoff,
    )
    return Op(name=name, kind=kind, warps=warps, variable_latency=variable, result=result, cost=cost)


def edge(tail: str, head: str, distance: int = 0, **more: object) -> Edge:
    return Edge(tail=tail, head=head, distance=distance, **more)  # type: ignore[arg-type]


def graph(
    ops: tuple[Op, ...],
    edges: tuple[Edge, ...] = (),
    fixed: tuple[tuple[str, int], ...] = (),
    residents: tuple[Resident, ...] = (),
) -> DepGraph:
    return DepGraph(name="g", ops=ops, edges=edges, fixed_bytes=fixed, residents=residents)


def priced(found: DepGraph, machine: Machine | None = None, **options: object) -> Problem:
    return price(found, machine or small(), PriceOptions(**options))  # type: ignore[arg-type]


def named(problem: Problem, name: str) -> PricedOp:
    return next(one for one in problem.ops if one.name == name)


def between(problem: Problem, tail: str, head: str) -> PricedEdge:
    return next(one for one in problem.edges if (one.tail, one.head) == (tail, head))
