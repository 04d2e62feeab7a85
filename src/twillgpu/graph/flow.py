"""Which node needs what another node made: flow dependences through registers, SMEM and TMEM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from twillgpu.frontend.kernel import KernelOp
from twillgpu.graph.body import Body
from twillgpu.graph.kinds import ALLOCS, VIEWS
from twillgpu.graph.nodes import Node

Mode = Literal["read", "write", "update"]
"""``update``: reads and overwrites, as an accumulation or a write of a part does."""

_IN_MEMORY = ("smem", "tmem")
_PARTS = frozenset({"ttg.memdesc_index", "ttg.memdesc_subslice", "ttg.memdesc_subview", "ttng.tmem_subslice"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """``head`` of iteration i reads what ``tail`` of iteration i - ``distance`` made; ``accumulates``: as the
    accumulator that a tensor core op adds to.
    """

    tail: str
    head: str
    distance: int
    accumulates: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """A use of a storage in one iteration, in program order."""

    node: str
    mode: Mode


Storages = Mapping[str, tuple[Access, ...]]
"""The accesses to each memory tile that the loop writes, by the value that names the tile."""


def storages_of(body: Body, nodes: tuple[Node, ...]) -> Storages:
    """Return the memory tiles that ops of the loop write in place, with their accesses.

    A tile that is allocated with its content and never written again is a plain value and not in here.
    """
    found: dict[str, list[Access]] = {}
    written: set[str] = set()
    for node in nodes:
        for op in node.members:
            for value, mode in _accesses(op, body):
                root = root_of(value, body)
                found.setdefault(root, []).append(Access(node=node.name, mode=_whole(value, mode, body)))
                if mode != "read" and op.opcode not in ALLOCS:
                    written.add(root)
    return {root: tuple(accesses) for root, accesses in found.items() if root in written}


def root_of(value: str, body: Body) -> str:
    """Return the memory tile that ``value`` is a view of."""
    while True:
        op = body.inner.get(value) or body.outer.get(value)
        if op is None or op.opcode not in VIEWS or not op.operands:
            return value
        value = op.operands[0]


def flows_of(body: Body, nodes: tuple[Node, ...], sources: Sources) -> tuple[Flow, ...]:
    """Return every flow dependence, each once, in program order of the readers."""
    found: dict[Flow, None] = {}
    for node in nodes:
        for position, value in enumerate(node.reads):
            accumulates = node.kind == "mma" and position == _ACCUMULATOR
            if accumulates and _starts_anew(node.members[0], body):
                continue
            for tail, distance in sources.of(value):
                found[Flow(tail=tail, head=node.name, distance=distance, accumulates=accumulates)] = None
    for accesses in sources.storages.values():
        found |= dict.fromkeys(storage_flows(accesses))
    return tuple(found)


_ACCUMULATOR = 2
"""Position of the accumulator among the operands of every tensor core op."""


class Sources:
    """Finds the nodes that a value comes from, through ops that do no work and through carried values."""

    def __init__(self, body: Body, nodes: tuple[Node, ...], storages: Storages) -> None:
        self.body = body
        self.storages = storages
        self.made = {value: node.name for node in nodes for value in node.defines}

    def kept(self) -> frozenset[str]:
        """Return the nodes whose results outlive the iteration, in the next one or after the loop."""
        yielded = [carried.yielded for carried in self.body.kernel.loop.carried]
        return frozenset(node for value in yielded for node, distance in self.of(value) if distance == 0)

    def of(self, value: str) -> tuple[tuple[str, int], ...]:
        """Return (node, distance) pairs, each once; none for tokens, constants and what is made before the loop."""
        found: dict[tuple[str, int], None] = {}
        seen: set[tuple[str, int]] = set()
        pending: list[tuple[str, int, frozenset[str]]] = [(value, 0, frozenset())]
        while pending:
            value, distance, passed = pending.pop()
            # A carried value that only depends on itself (a pointer that moves on) comes from no node.
            if (value, distance) in seen or value in passed or self.is_storage(value):
                continue
            seen.add((value, distance))
            if value in self.made:
                found[self.made[value], distance] = None
            elif value in self.body.carried:
                pending.append((self.body.carried[value].yielded, distance + 1, passed | {value}))
            elif value in self.body.inner:
                operands = reversed(self.body.inner[value].operands)
                pending += [(operand, distance, passed) for operand in operands]
        return tuple(found)

    def is_storage(self, value: str) -> bool:
        """Return whether ``value`` names a tile written in place, or is a token: flow goes by the accesses then."""
        kind = self.body.types.get(value)
        if kind is None or kind.space == "token":
            return kind is not None
        return kind.space in _IN_MEMORY and root_of(value, self.body) in self.storages


def storage_flows(accesses: tuple[Access, ...]) -> tuple[Flow, ...]:
    """Return the flow from the last write before each read, which may be of the iteration before."""
    found = []
    for index, access in enumerate(accesses):
        if access.mode != "write":
            writer, distance = last_write(accesses, index)
            found.append(
                Flow(
                    tail=accesses[writer].node,
                    head=access.node,
                    distance=distance,
                    accumulates=access.mode == "update",
                )
            )
    return tuple(found)


def last_write(accesses: tuple[Access, ...], index: int) -> tuple[int, int]:
    """Return the index of the last write before ``accesses[index]`` and how many iterations ago it was."""
    writes = [at for at, access in enumerate(accesses) if access.mode != "read"]
    earlier = [at for at in writes if at < index]
    return (earlier[-1], 0) if earlier else (writes[-1], 1)


def _accesses(op: KernelOp, body: Body) -> tuple[tuple[str, Mode], ...]:
    """Return what ``op`` does to memory tiles; reads come before writes, as in the hardware."""
    found: list[tuple[str, Mode]] = []
    for position, operand in enumerate(op.operands):
        if body.types[operand].space in _IN_MEMORY:
            found.append((operand, _mode(op, position, body)))
    if op.opcode in ALLOCS and op.operands:
        found.append((op.results[0].name, "write"))
    return tuple(sorted(found, key=lambda access: access[1] != "read"))


def _mode(op: KernelOp, position: int, body: Body) -> Mode:
    if op.opcode.startswith("ttng.tc_gen5_mma") and position == _ACCUMULATOR:
        return "write" if _starts_anew(op, body) else "update"
    if op.opcode == "ttng.tmem_store" and position == 0:
        return "write" if body.constant(op.operands[-1]) == "true" else "update"
    if op.opcode in ("ttg.local_store", "ttng.tmem_copy") and position == 1:
        return "write"
    return "read"


def _whole(value: str, mode: Mode, body: Body) -> Mode:
    """Return ``update`` for a write of a part of a tile: the rest keeps its content."""
    op = body.inner.get(value) or body.outer.get(value)
    partial = op is not None and (op.opcode in _PARTS)
    return "update" if mode == "write" and partial else mode


def _starts_anew(op: KernelOp, body: Body) -> bool:
    """Return whether a tensor core op does not add to its accumulator: its flag is the constant false."""
    flags = [operand for operand in op.operands[3:] if body.types[operand].dtype == "i1"]
    return bool(flags) and body.constant(flags[0]) == "false"
