"""Whether ops find the values that they mean: registers that are there, and the right iteration's copy of a ring."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from twillgpu.emulate.naming import Names
from twillgpu.emulate.steps import Cell
from twillgpu.emulate.unroll import Moment, counter, number
from twillgpu.emulate.wording import Findings
from twillgpu.frontend.kernel import Kernel, KernelOp
from twillgpu.lower.record import Access, Execute, Get, GroupProgram, Instruction, Iteration, Put, WarpProgram

VIEWS = frozenset(
    {
        "ttg.memdesc_trans",
        "ttg.memdesc_subslice",
        "ttg.memdesc_index",
        "ttg.memdesc_reshape",
        "ttg.memdesc_reinterpret",
        "ttng.tmem_subslice",
    }
)
"""Ops that name a part of a tile, or the tile in another form."""

IN_REGISTERS = ("registers", "scalar", "global")


class Flow(NamedTuple):
    """What an instruction uses and gives, by name, and for which iteration."""

    text: str
    uses: tuple[str, ...]
    gives: tuple[str, ...]
    iteration: Iteration | None
    at_least: int
    reads: tuple[Access, ...] = ()
    tiles: tuple[str, ...] = ()
    """Operands in SMEM and TMEM."""
    stores: tuple[tuple[str, Access], ...] = ()
    """Register values stored to a ring."""
    loads: tuple[tuple[str, Access], ...] = ()
    """Register values read from a ring."""


class _Table(NamedTuple):
    """A program's names: ops, values in registers that an op makes, carried values, tiles in memory and the op that
    makes each, and the values that name an instance of each ring.
    """

    ops: dict[str, KernelOp]
    made: frozenset[str]
    names: Names
    makers: dict[str, KernelOp]
    stored: dict[str, set[str]]


def check_values(program: WarpProgram, trips: int, findings: Findings) -> None:
    """Record every value that a group uses before it has it, in a tile with ``trips`` iterations."""
    table = _table(program.kernel)._replace(stored={ring.name: set(ring.values) for ring in program.rings})
    flows = [list(_flows(group, table, trips)) for group in program.groups]
    stored = _stored(flows, trips, table)
    for group, steps in zip(program.groups, flows, strict=True):
        held: set[Cell] = {(program.kernel.loop.induction.name, at) for at in range(trips)}
        for flow, moment in steps:
            here = None if flow.iteration is None else number(flow.iteration, moment)
            for name in flow.uses:
                cell = table.names.cell(name, here, trips)
                if cell[0] in table.made and cell not in held:
                    findings.missing(group.name, flow.text, cell, trips)
            _check_slots(group.name, flow, moment, trips, table, findings)
            for name, access in flow.loads:
                meant = stored.get((access.ring, table.names.cell(name, here, trips)))
                found = counter(access.instance)(moment)
                if meant is not None and found not in meant:
                    findings.slot(group.name, flow.text, access.ring, (found, min(meant)))
            held.update(table.names.cell(name, here, trips) for name in flow.gives)


def _stored(flows: list[list[tuple[Flow, Moment]]], trips: int, table: _Table) -> dict[tuple[str, Cell], set[int]]:
    """Return the instances of each ring that each register value is stored to."""
    found: dict[tuple[str, Cell], set[int]] = {}
    for flow, moment in (entry for steps in flows for entry in steps):
        here = None if flow.iteration is None else number(flow.iteration, moment)
        for name, access in flow.stores:
            key = (access.ring, table.names.cell(name, here, trips))
            found.setdefault(key, set()).add(counter(access.instance)(moment))
    return found


def _check_slots(
    group: str,
    flow: Flow,
    moment: Moment,
    trips: int,
    table: _Table,
    findings: Findings,
) -> None:
    """Record a read of another iteration's copy than the one that holds the op's operand."""
    here = None if flow.iteration is None else number(flow.iteration, moment)
    for name in flow.tiles:
        root, at = _root(name, here, trips, table)
        if at is None:
            continue
        for access in flow.reads:
            if root not in table.stored.get(access.ring, ()) or access.instance.scope != "iteration":
                continue
            found = counter(access.instance)(moment)
            if found != at:
                findings.slot(group, flow.text, access.ring, (found, at))


def _root(name: str, here: int | None, trips: int, table: _Table) -> Cell:
    """Return the allocation, and its iteration, that a tile in SMEM or TMEM is a view of."""
    found, at = table.names.cell(name, here, trips)
    maker = table.makers.get(found)
    if maker is None or maker.opcode not in VIEWS:
        return found, at
    return _root(maker.operands[0], at, trips, table)


def _flows(group: GroupProgram, table: _Table, trips: int) -> Iterator[tuple[Flow, Moment]]:
    def compiled(part: tuple[Instruction, ...]) -> list[Flow]:
        found = (_flow(one, table) for one in part)
        return [flow for flow in found if flow is not None and trips >= flow.at_least]

    moment = Moment(0, 0, trips)
    yield from ((flow, moment) for flow in compiled((*group.before, *group.prologue)))
    loop = compiled(group.loop)
    for t in range(group.stages - 1, trips):
        yield from ((flow, moment._replace(t=t)) for flow in loop)
    yield from ((flow, moment) for flow in compiled((*group.epilogue, *group.after)))


def _flow(one: Instruction, table: _Table) -> Flow | None:
    if isinstance(one, Put):
        stores = ((one.value, one.access),)
        return Flow(f"put {one.value}", (one.value,), (), one.iteration, one.at_least, stores=stores)
    if isinstance(one, Get):
        loads = ((one.value, one.access),)
        return Flow(f"get {one.value}", (), (one.value,), one.iteration, one.at_least, loads=loads)
    if not isinstance(one, Execute):
        return None
    members = [table.ops[name] for name in one.members if name in table.ops]
    loaded = {name for access in one.reads for name in table.stored.get(access.ring, ())}
    given: list[str] = []
    uses: dict[str, None] = {}
    tiles: dict[str, None] = {}
    for op in members:
        uses |= dict.fromkeys(name for name in op.operands if name not in loaded and name not in given)
        tiles |= dict.fromkeys(name for name in op.operands if name in table.makers and name not in given)
        given += [result.name for result in op.results]
    return Flow(
        text=one.op or ", ".join(one.members),
        uses=tuple(uses),
        gives=tuple(given),
        iteration=one.iteration,
        at_least=one.at_least,
        reads=one.reads,
        tiles=tuple(tiles),
        loads=_loads(one, members, table),
    )


def _loads(one: Execute, members: list[KernelOp], table: _Table) -> tuple[tuple[str, Access], ...]:
    """Return the register values that ops find in a ring, with the place."""
    operands = {name for op in members for name in op.operands if name not in table.makers}
    found = ((name, access) for access in one.reads for name in table.stored.get(access.ring, ()))
    return tuple((name, access) for name, access in found if name in operands)


@lru_cache(maxsize=8)
def _table(kernel: Kernel) -> _Table:
    ops = (*kernel.before, *kernel.loop.body, *kernel.after)
    made = {result.name for op in ops for result in op.results if result.type.space in IN_REGISTERS}
    makers = {result.name: op for op in ops for result in op.results if result.type.space in ("smem", "tmem")}
    return _Table({op.name: op for op in ops}, frozenset(made), Names(kernel), makers, {})
