"""From the ops of a loop body to the nodes of a graph, before fusing: which ops do work together, and as what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from twillgpu.frontend.kernel import KernelOp, TileType
from twillgpu.graph.body import Body
from twillgpu.graph.kinds import address_operands, idle_ops, kind_of
from twillgpu.graph.record import Work

_LOADING = ("tt.load", "tt.descriptor_load", "tt.descriptor_gather", "descriptor_", "load")


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node under construction.

    Attributes:
        name: unique name.
        kind: see ``kinds``.
        members: the ops it stands for, in order.
        work: what it costs.
        result: type of the tile it produces, ``None`` where it produces none.
        defines: the values it makes, under their names in the kernel; a name of a graph-only value ends in ``!``.
        reads: the values that it reads, tokens included.
        one_warp: whether one warp issues it (TMA, tcgen05).
    """

    name: str
    kind: str
    members: tuple[KernelOp, ...]
    work: tuple[Work, ...]
    result: TileType | None
    defines: tuple[str, ...]
    reads: tuple[str, ...]
    one_warp: bool = False

    @property
    def asynchronous_mma(self) -> bool:
        """Whether this is a tensor core op that runs on after it was issued (``tt.dot`` does not)."""
        return self.kind == "mma" and not self.work[-1].opcode.startswith("tt.dot")


def nodes_of(body: Body) -> tuple[Node, ...]:
    """Return the nodes of the loop body in program order, one for each op that does work, except that

    - a TMA load and the allocation that it fills are one ``tma_load``; a reader in registers gets a ``local_load``;
    - a load whose tile only goes to SMEM is one ``async_copy`` (``cp.async``) with the allocations it fills; on a
      target without TMA so is a load that only feeds the tensor core, followed by a ``local_load``;
    - a TMA store or reduction from registers is a ``local_store`` into its staging buffer and the TMA op.
    """
    return tuple(_Former(body).nodes())


def work_of(op: KernelOp, body: Body) -> Work:
    """Return what one op costs, from its own operands and results."""
    return Work(
        opcode=op.opcode,
        operands=tuple(body.types[operand] for operand in op.operands),
        results=tuple(result.type for result in op.results),
        attributes=op.attributes,
        body=op.body,
    )


class _Former:
    """Forms nodes; ``done`` holds the ops that an earlier node already stands for."""

    def __init__(self, body: Body) -> None:
        self.body = body
        self.idle = idle_ops(body)
        self.done: set[str] = set()
        self.names: set[str] = set()

    def nodes(self) -> Iterator[Node]:
        for op in self.body.kernel.loop.body:
            if op.name in self.idle or op.name in self.done:
                continue
            yield from self.form(op)

    def form(self, op: KernelOp) -> Iterator[Node]:
        kind = kind_of(op)
        if kind == "tma_load":
            return self.tma_load(op)
        if kind == "load" and (targets := self.copy_targets(op)):
            return self.async_copy(op, targets)
        if kind in ("tma_store", "tma_reduce"):
            return self.tma_store(op, kind)
        return iter((self.plain(op, kind),))

    def plain(self, op: KernelOp, kind: str) -> Node:
        tiles = [result.type for result in op.results if result.type.shape]
        scalars = [result.type for result in op.results if result.type.space == "scalar"]
        produced = tiles or scalars
        if kind == "mma" and not tiles:
            produced = [self.body.types[op.operands[2]]]
        elif op.opcode == "ttng.tmem_store":
            produced = [self.body.types[op.operands[0]]]
        elif op.opcode == "ttg.local_store":
            produced = [self.body.types[op.operands[1]]]
        return Node(
            name=self.unique(self.loaded_name(op) if kind == "load" else op.name),
            kind=kind,
            members=(op,),
            work=(work_of(op, self.body),),
            result=produced[0] if produced else None,
            defines=tuple(result.name for result in op.results),
            reads=op.operands,
            one_warp=op.opcode.startswith("ttng.tc_gen5_mma"),
        )

    def tma_load(self, op: KernelOp) -> Iterator[Node]:
        loaded = op.results[0]
        copies = [user for user in self.body.users.get(loaded.name, ()) if user.opcode == "ttg.local_alloc"]
        buffer = copies[0].results[0].type if copies else self.buffer_of(loaded.type, op)
        in_registers = len(copies) < len(self.body.users.get(loaded.name, ())) or loaded.name in self.body.kept
        self.done.update(copy.name for copy in copies)
        staged = f"{loaded.name}!"
        yield Node(
            name=self.unique(self.loaded_name(op)),
            kind="tma_load",
            members=(op, *copies),
            work=(Work(opcode=op.opcode, operands=work_of(op, self.body).operands, results=(buffer,)),),
            result=buffer,
            defines=(staged, *(copy.results[0].name for copy in copies)),
            reads=op.operands,
            one_warp=True,
        )
        if in_registers:
            yield self.local_load(op.name, buffer, loaded.type, staged, loaded.name)

    def copy_targets(self, op: KernelOp) -> tuple[tuple[KernelOp, ...], ...]:
        """Return the chains of ops from a load's tile to SMEM, empty unless every use is such a chain."""
        loaded = op.results[0]
        chains: list[tuple[KernelOp, ...]] = []
        users = self.body.users.get(loaded.name, ())
        if loaded.name in self.body.kept or not loaded.type.shape:
            return ()
        for user in users:
            chain = self.chain_to_smem(user)
            if not chain:
                return ()
            chains.append(chain)
        return tuple(chains)

    def chain_to_smem(self, user: KernelOp) -> tuple[KernelOp, ...]:
        if user.opcode == "ttg.local_alloc":
            return (user,)
        if user.opcode != "ttg.convert_layout":
            return ()
        result = user.results[0]
        if "dot_op" in result.type.layout.split("<")[0]:
            return (user,)
        after = self.body.sole_user(result.name)
        return (user, after) if after is not None and after.opcode == "ttg.local_alloc" else ()

    def async_copy(self, op: KernelOp, chains: tuple[tuple[KernelOp, ...], ...]) -> Iterator[Node]:
        loaded = op.results[0]
        ends = [chain[-1] for chain in chains]
        allocs = [end for end in ends if end.opcode == "ttg.local_alloc"]
        buffer = allocs[0].results[0].type if allocs else self.buffer_of(loaded.type, op)
        members = (op, *(member for chain in chains for member in chain if chain[-1] in allocs))
        self.done.update(member.name for chain in chains for member in chain)
        staged = f"{loaded.name}!"
        operands = work_of(op, self.body).operands
        yield Node(
            name=self.unique(self.loaded_name(op)),
            kind="async_copy",
            members=members,
            work=(Work(opcode="ttg.async_copy_global_to_local", operands=operands, results=(buffer,)),),
            result=buffer,
            defines=(staged, *(alloc.results[0].name for alloc in allocs)),
            reads=op.operands,
        )
        for end in ends:
            if end not in allocs:
                result = end.results[0]
                yield self.local_load(end.name, buffer, result.type, staged, result.name, members=(end,))

    def local_load(
        self, base: str, buffer: TileType, tile: TileType, source: str, value: str, members: tuple[KernelOp, ...] = ()
    ) -> Node:
        return Node(
            name=self.unique(base if members else f"{base}_local_load"),
            kind="local_load",
            members=members,
            work=(Work(opcode="ttg.local_load", operands=(buffer,), results=(tile,)),),
            result=tile,
            defines=(value,),
            reads=(source,),
        )

    def tma_store(self, op: KernelOp, kind: str) -> Iterator[Node]:
        source = op.operands[1]
        tile = self.body.types[source]
        buffer = self.buffer_of(tile, op)
        staged = f"{op.name}!"
        yield Node(
            name=self.unique(f"{op.name}_staging"),
            kind="local_store",
            members=(),
            work=(Work(opcode="ttg.local_store", operands=(tile, buffer), results=()),),
            result=buffer,
            defines=(staged,),
            reads=(source,),
        )
        types = tuple(buffer if name == source else self.body.types[name] for name in op.operands)
        yield Node(
            name=self.unique(op.name),
            kind=kind,
            members=(op,),
            work=(Work(opcode=op.opcode, operands=types, results=(), attributes=op.attributes),),
            result=None,
            defines=(),
            reads=(staged, *(name for name in op.operands if name != source)),
            one_warp=True,
        )

    def buffer_of(self, tile: TileType, op: KernelOp) -> TileType:
        """Return the SMEM tile that a register tile passes through; TMA buffers have the descriptor's layout."""
        first = self.body.types[op.operands[0]]
        layout = first.layout if first.space == "descriptor" else ""
        return TileType(space="smem", shape=tile.shape, dtype=tile.dtype, layout=layout, mutable=True)

    def loaded_name(self, op: KernelOp) -> str:
        """Return ``load_k`` for the load of the user's ``k``; other loads keep their name."""
        return op.name if op.name.startswith(_LOADING) or "load" in op.name else f"load_{op.name}"

    def unique(self, wanted: str) -> str:
        name, number = wanted, 0
        taken = self.names
        while name in taken:
            number += 1
            name = f"{wanted}_{number}"
        taken.add(name)
        return name


def data_operands(op: KernelOp) -> tuple[str, ...]:
    """Return the operands of ``op`` that are not addresses or masks."""
    skip = address_operands(op)
    return tuple(operand for at, operand in enumerate(op.operands) if at not in skip)
