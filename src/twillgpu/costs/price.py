"""From a dependence graph and a machine to a scheduling problem in cycles."""

from __future__ import annotations

from twillgpu.costs.columns import with_fixed_columns
from twillgpu.costs.digest import with_digest
from twillgpu.costs.edges import price_edge
from twillgpu.costs.legality import legal_pairs
from twillgpu.costs.limits import check_fixed, check_residents, check_value, limited, options_of, round_up
from twillgpu.costs.pricing import Price, at, check_uses, given, whole
from twillgpu.costs.record import PricedOp, PricedValue, PriceOptions, Problem
from twillgpu.costs.work import price_work
from twillgpu.errors import InputError
from twillgpu.graph.record import DepGraph, Op, Value
from twillgpu.machine.record import Machine


def price(graph: DepGraph, machine: Machine, options: PriceOptions | None = None) -> Problem:
    """Return the scheduling problem of ``graph`` on ``machine``, every cost in cycles of one SM.

    Ops that carry a cost are taken as they are; ops of kernels are priced from their work. Streaming ops,
    read times, hand-offs and the latencies of edges follow ``docs/formulation.md`` where the graph does not say them.

    Args:
        graph: the loop body.
        machine: what prices it.
        options: limits and rules; ``None``: those that the graph asks for.

    Raises:
        InputError: an opcode without price, an unknown unit or legality rule, a limit above the machine's, or
            a value or an op that cannot fit the machine; with the op, its source line and the numbers.
    """
    options = options_of(graph.limits) if options is None else options
    machine = limited(machine, options)
    fixed = check_fixed(graph, machine)
    prices = {op.name: _price_of(op, machine) for op in graph.ops}
    streaming = _streaming(graph)
    ops = tuple(_priced(op, prices[op.name], op.name in streaming, machine, fixed) for op in graph.ops)
    by_name = {op.name: op for op in ops}
    check_residents(graph, machine)
    problem = Problem(
        name=graph.name,
        machine=machine.name,
        ops=ops,
        edges=tuple(price_edge(edge, by_name, prices, machine.handoff) for edge in graph.edges),
        residents=graph.residents,
        units=machine.units,
        memories=machine.memories,
        fixed_bytes=graph.fixed_bytes,
        registers=machine.registers,
        groups=machine.groups,
        handoff=machine.handoff,
        legality=legal_pairs(graph, prices, machine.legality, options.lift),
        rules=options.rules,
        trip_count=graph.trip_count,
        flop_per_iteration=graph.flop_per_iteration,
        graph_sha256=graph.sha256,
        machine_sha256=machine.sha256,
    )
    return with_digest(with_fixed_columns(problem) if options.columns == "fixed" else problem)


def _price_of(op: Op, machine: Machine) -> Price:
    found = given(op) if op.cost is not None or not op.work else price_work(op, machine)
    check_uses(op, found, {unit.name: unit.capacity for unit in machine.units}, machine.name)
    return found


def _streaming(graph: DepGraph) -> frozenset[str]:
    """Variable-latency ops without an incoming data edge except from themselves."""
    fed = {edge.head for edge in graph.edges if edge.kind == "data" and edge.tail != edge.head}
    return frozenset(op.name for op in graph.ops if op.variable_latency and op.name not in fed)


def _priced(op: Op, cost: Price, streaming: bool, machine: Machine, fixed: dict[str, int]) -> PricedOp:
    if op.warps > machine.groups.warps[-1]:
        raise InputError(
            at(op),
            f"it needs {op.warps} warps, the widest group of machine {machine.name} has {machine.groups.warps[-1]}",
            "split it (sub-tiles), or launch with fewer warps",
        )
    value = None if op.result is None else _value(op, op.result, machine, fixed)
    return PricedOp(
        name=op.name,
        kind=op.kind,
        source=op.source,
        uses=cost.uses,
        issue_cycles=cost.issue_cycles,
        latency_cycles=0 if streaming else cost.latency_cycles,
        real_latency_cycles=cost.latency_cycles,
        handoff_cycles=_handoff(cost, value, machine),
        warps=op.warps,
        variable_latency=op.variable_latency,
        streaming=streaming,
        asynchronous=cost.asynchronous,
        value=value,
        staging_bytes=_staging(value, machine),
    )


def _value(op: Op, value: Value, machine: Machine, fixed: dict[str, int]) -> PricedValue:
    memory = machine.memory(value.space)
    size = value.bytes if memory is None else round_up(value.bytes, memory.alignment_bytes)
    registers = value.registers_per_thread
    if registers is None:
        registers = whole(value.bytes / (4 * 32 * op.warps)) if value.space == "registers" else 0
    found = PricedValue(space=value.space, bytes=size, registers_per_thread=registers, alias=value.alias)
    check_value(op, found, machine, fixed)
    return found


def _handoff(cost: Price, value: PricedValue | None, machine: Machine) -> int:
    """Hand-off of a value: through SMEM from registers; one barrier hop where software wrote a memory; nothing
    where the unit itself signals that it has.
    """
    if cost.handoff_cycles is not None:
        return cost.handoff_cycles
    if value is None:
        return whole(machine.handoff.barrier_cycles)
    if value.space == "registers":
        return whole(machine.handoff.base_cycles + machine.handoff.cycles_per_kb * value.bytes / 1024)
    return 0 if cost.signals else whole(machine.handoff.barrier_cycles)


def _staging(value: PricedValue | None, machine: Machine) -> int:
    if value is None or value.space != "registers":
        return 0
    smem = machine.memory("smem")
    return value.bytes if smem is None else round_up(value.bytes, smem.alignment_bytes)
