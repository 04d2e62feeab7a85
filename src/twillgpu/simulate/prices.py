"""What each instruction costs: ops of the loop as the problem prices them, everything else by the same rules."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import NamedTuple

from twillgpu.costs.pricing import whole
from twillgpu.costs.record import PricedOp, Problem
from twillgpu.costs.work import price_work
from twillgpu.errors import InputError
from twillgpu.frontend.kernel import Kernel, KernelOp, KernelValue, TileType
from twillgpu.graph.body import body_of, tile_bytes
from twillgpu.graph.nodes import Node, nodes_of
from twillgpu.graph.record import Op, Use, Work
from twillgpu.lower.record import Execute, Get, Put, Ring, WarpProgram
from twillgpu.machine.record import Machine

KB = 1024


class Cost(NamedTuple):
    """Cycles of one instruction: units held, instruction stream busy, until the result is there.

    ``variable``: the latency is that of a load from global memory. ``result``: the graph op whose register value it
    gives to its group, or empty.
    """

    uses: tuple[Use, ...] = ()
    issue: int = 0
    latency: int = 0
    variable: bool = False
    result: str = ""
    unit: str = ""


FREE = Cost()


class Prices:
    """Costs of a program's instructions; ``unpriced`` collects what has none outside the loop and is free."""

    def __init__(self, program: WarpProgram, problem: Problem, machine: Machine, *, staging: bool) -> None:
        self._problem = {op.name: op for op in problem.ops}
        self._machine = machine
        self._staging = staging
        self._rings = {ring.name: ring for ring in program.rings}
        self._types = value_types(program.kernel)
        self._makers = _makers(program, problem)
        self._outside = Outside(program.kernel, machine)

    @property
    def unpriced(self) -> tuple[str, ...]:
        """Return what was said about ops that have no price."""
        return tuple(self._outside.unpriced)

    def execute(self, execute: Execute, warps: int) -> Cost:
        """Return the cost of an op; index tiles and scalars that every group computes for itself are free."""
        priced = self._problem.get(execute.op)
        if execute.iteration is not None:
            return FREE if priced is None else of_op(priced)
        return self._outside.cost(execute.members, warps)

    def handover(self, step: Put | Get, warps: int) -> Cost:
        """Return the cost of a hand-over: that of the graph op which it is, or of a store or load of the tile.

        Without ``staging`` it is the model's: the cycles per KB between the two groups, no instruction and no port.
        """
        ring = self._rings[step.access.ring]
        priced = self._problem.get(ring.name)
        result = self._makers.get(step.value, "")
        if isinstance(step, Put) and priced is not None:
            return of_op(priced)
        if not self._staging:
            return self._modelled(step, ring)._replace(result=result)
        return self._moved(step, ring, warps)._replace(result=result)

    def _modelled(self, step: Put | Get, ring: Ring) -> Cost:
        if isinstance(step, Get):
            return FREE
        return Cost(latency=whole(self._machine.handoff.cycles_per_kb * tile_bytes(ring.tile) / KB))

    def _moved(self, step: Put | Get, ring: Ring, warps: int) -> Cost:
        store = isinstance(step, Put)
        opcode = "ttg.local_store" if store else "ttg.local_load"
        if not any(entry.opcode == opcode for entry in self._machine.ops):
            half = whole(self._machine.handoff.cycles_per_kb * tile_bytes(ring.tile) / KB / 2)
            return Cost(issue=half, latency=half)
        tile = self._types.get(step.value, ring.tile)
        work = Work(opcode=opcode, operands=(tile if store else ring.tile,), results=() if store else (tile,))
        return of_work(Op(name=step.value, warps=warps, work=(work,)), self._machine)


class Outside:
    """Costs of the ops before and after the loop."""

    def __init__(self, kernel: Kernel, machine: Machine) -> None:
        self._machine = machine
        self._nodes: dict[str, Node] = {}
        self._costs: dict[tuple[str, int], Cost] = {}
        self.unpriced: list[str] = []
        for part in (_as_loop(kernel, kernel.before), _as_loop(kernel, kernel.after)):
            for node in nodes_of(body_of(part)):
                if node.members:
                    self._nodes[node.members[0].name] = node

    def cost(self, members: tuple[str, ...], warps: int) -> Cost:
        """Return the cost of the ops one after the other."""
        costs = [self._cost(self._nodes[name], warps) for name in members if name in self._nodes]
        if len(costs) <= 1:
            return costs[0] if costs else FREE
        uses: list[Use] = []
        issue = 0
        for cost in costs:
            uses += [replace(use, offset=use.offset + issue) for use in cost.uses]
            issue += cost.issue
        return Cost(tuple(uses), issue, issue + costs[-1].latency - costs[-1].issue, unit=costs[-1].unit)

    def _cost(self, node: Node, warps: int) -> Cost:
        width = 1 if node.one_warp else warps
        key = (node.name, width)
        if key not in self._costs:
            op = Op(name=node.name, kind=node.kind, source=node.source, warps=width, work=node.work)
            self._costs[key] = self._priced(op)
        return self._costs[key]

    def _priced(self, op: Op) -> Cost:
        try:
            return of_work(op, self._machine)
        except InputError as error:
            self.unpriced.append(f"outside the loop, {error.where} is taken as free: {error.what}")
            return FREE


def of_op(op: PricedOp) -> Cost:
    """Return the cost of an op of the loop."""
    return Cost(op.uses, op.issue_cycles, op.real_latency_cycles, op.variable_latency, op.name, longest(op.uses))


def of_work(op: Op, machine: Machine) -> Cost:
    """Return the cost of machine ops."""
    price = price_work(op, machine)
    variable = op.kind in ("tma_load", "async_copy")
    return Cost(price.uses, price.issue_cycles, price.latency_cycles, variable, "", longest(price.uses))


def longest(uses: tuple[Use, ...]) -> str:
    """Return the unit that is held for most cycles."""
    held: Counter[str] = Counter()
    for use in uses:
        held[use.unit] += use.cycles
    return max(held, key=lambda unit: held[unit]) if held else ""


def _as_loop(kernel: Kernel, ops: tuple[KernelOp, ...]) -> Kernel:
    """Return a kernel whose loop body is ``ops``, so that they become nodes as the ops of a loop do."""
    results = tuple(KernelValue(name=carried.result, type=carried.argument.type) for carried in kernel.loop.carried)
    arguments = tuple(carried.argument for carried in kernel.loop.carried)
    return replace(
        kernel,
        arguments=(*kernel.arguments, *arguments, *results),
        before=(*kernel.before, *kernel.loop.body),
        loop=replace(kernel.loop, body=ops, carried=()),
    )


def value_types(kernel: Kernel) -> dict[str, TileType]:
    """Return the type of every value that an op of the kernel makes or the loop carries."""
    ops = (*kernel.before, *kernel.loop.body, *kernel.after)
    found = {result.name: result.type for op in ops for result in op.results}
    for carried in kernel.loop.carried:
        found[carried.argument.name] = found[carried.result] = carried.argument.type
    return found


def _makers(program: WarpProgram, problem: Problem) -> dict[str, str]:
    """Return the graph op that makes each register value of the loop: its member's, or (a free change of layout)
    that of the value it is made from.
    """
    priced = {op.name for op in problem.ops}
    groups = program.groups
    executes = [one for group in groups for part in (group.prologue, group.loop) for one in part]
    owner = {
        member: one.op for one in executes if isinstance(one, Execute) and one.op in priced for member in one.members
    }
    found: dict[str, str] = {}
    for op in program.kernel.loop.body:
        maker = owner.get(op.name) or next((found[name] for name in op.operands if name in found), "")
        if maker:
            found |= {result.name: maker for result in op.results}
    return found
