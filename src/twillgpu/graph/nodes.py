"""From the ops of a loop body to the nodes of a graph, before fusing: which ops do work together, and as what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from twillgpu.frontend.kernel import KernelOp, TileType
from twillgpu.graph.body import Body
from twillgpu.graph.kinds import SMEM_WRITES, address_operands, idle_ops, kind_of
from twillgpu.graph.record import Work


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
        source: ``file.py:line`` or empty.
        one_warp: whether one warp issues it (TMA, tcgen05).
    """

    name: str
    kind: str
    members: tuple[KernelOp, ...]
    work: tuple[Work, ...]
    result: TileType | None
    defines: tuple[str, ...]
    reads: tuple[str, ...]
    source: str
    one_warp: bool = False

    @property
    def asynchronous_mma(self) -> bool:
        """Whether this is a tensor core op that runs on after it was issued (``tt.dot`` does not)."""
        return self.kind == "mma" and not self.work[-1].opcode.startswith("tt.dot")


def nodes_of(body: Body) -> tuple[Node, ...]:
    """Return the nodes of the loop body in program order: one for each op that does work, with these exceptions.

    - A TMA load and the allocation that it fills are one ``tma_load``; a reader in registers gets a ``local_load``.
    - A load whose tile only goes to SMEM is one ``async_copy`` (``cp.async``) with the allocations that it fills. On
      a target without TMA so is a load that only feeds the tensor core: ``tt.dot`` then reads its operand from SMEM.
    - A TMA store or reduction is a ``local_store`` into its staging buffer and the TMA op.
    """
    return tuple(_Former(body).nodes())


class _Former:
    """Forms nodes; ``done`` holds the ops that an earlier node already stands for, ``staged`` the SMEM tiles that
    operands of ``tt.dot`` are read from.
    """

    def __init__(self, body: Body) -> None:
        self.body = body
        self.idle = idle_ops(body)
        self.done: set[str] = set()
        self.names: set[str] = set()
        self.staged: dict[str, TileType] = {}

    def nodes(self) -> Iterator[Node]:
        for op in self.body.kernel.loop.body:
            if op.name not in self.idle and op.name not in self.done:
                yield from self.form(op)

    def form(self, op: KernelOp) -> Iterator[Node]:
        kind = kind_of(op)
        if kind == "tma_load":
            return self.tma_load(op)
        if kind == "load" and (chains := self.chains_to_smem(op)):
            return iter((self.async_copy(op, chains),))
        if kind in ("tma_store", "tma_reduce"):
            return self.tma_store(op, kind)
        return iter((self.plain(op, kind),))

    def plain(self, op: KernelOp, kind: str) -> Node:
        reads = [Work(opcode="ttg.local_load", operands=(self.staged[name],), results=(self.body.types[name],))
                 for name in op.operands if kind == "mma" and name in self.staged]  # fmt: skip
        return Node(
            name=self.unique(_load_name(op) if kind == "load" else op.name),
            kind=kind,
            members=(op,),
            work=(*reads, self.work(op)),
            result=self.produced(op),
            defines=tuple(result.name for result in op.results),
            reads=op.operands,
            source=op.source,
            one_warp=op.opcode.startswith("ttng.tc_gen5_mma"),
        )

    def produced(self, op: KernelOp) -> TileType | None:
        """Return the type of what ``op`` makes: a tile, else a scalar; for a write in place, the tile written."""
        written = _WRITTEN.get(op.opcode)
        if written is not None:
            return self.body.types[op.operands[written]]
        tiles = [result.type for result in op.results if result.type.shape]
        scalars = [result.type for result in op.results if result.type.space == "scalar"]
        return next(iter((*tiles, *scalars)), None)

    def work(self, op: KernelOp) -> Work:
        operands = [self.body.types[operand] for operand in op.operands]
        if op.opcode in SMEM_WRITES and operands:
            operands[0] = self.body.types[self.unconverted(op.operands[0])]
        return Work(
            opcode=op.opcode,
            operands=tuple(operands),
            results=tuple(result.type for result in op.results),
            attributes=op.attributes,
            body=op.body,
        )

    def unconverted(self, value: str) -> str:
        """Return the value before changes of layout that cost nothing."""
        op = self.body.inner.get(value)
        while op is not None and op.opcode == "ttg.convert_layout" and op.name in self.idle:
            value = op.operands[0]
            op = self.body.inner.get(value)
        return value

    def tma_load(self, op: KernelOp) -> Iterator[Node]:
        loaded = op.results[0]
        users = self.body.users.get(loaded.name, ())
        copies = [user for user in users if user.opcode == "ttg.local_alloc"]
        buffer = copies[0].results[0].type if copies else self.buffer(loaded.type, op)
        staged = f"{loaded.name}!"
        self.done.update(copy.name for copy in copies)
        yield Node(
            name=self.unique(_load_name(op)),
            kind="tma_load",
            members=(op, *copies),
            work=(Work(opcode=op.opcode, operands=self.work(op).operands, results=(buffer,)),),
            result=buffer,
            defines=(staged, *(copy.results[0].name for copy in copies)),
            reads=op.operands,
            source=op.source,
            one_warp=True,
        )
        if len(copies) < len(users) or loaded.name in self.body.kept:
            yield Node(
                name=self.unique(f"{op.name}_local_load"),
                kind="local_load",
                members=(),
                work=(Work(opcode="ttg.local_load", operands=(buffer,), results=(loaded.type,)),),
                result=loaded.type,
                defines=(loaded.name,),
                reads=(staged,),
                source=op.source,
            )

    def chains_to_smem(self, op: KernelOp) -> tuple[tuple[KernelOp, ...], ...]:
        """Return the chains of ops that take a load's tile to SMEM; none unless every use is such a chain."""
        loaded = op.results[0]
        if loaded.name in self.body.kept or not loaded.type.shape:
            return ()
        chains = tuple(self.chain_to_smem(user) for user in self.body.users.get(loaded.name, ()))
        return chains if all(chains) else ()

    def chain_to_smem(self, user: KernelOp) -> tuple[KernelOp, ...]:
        """Return the ops from ``user`` to an allocation, or to an operand in the layout of ``tt.dot``."""
        if user.opcode == "ttg.local_alloc":
            return (user,)
        if user.opcode not in ("ttg.convert_layout", "tt.trans"):
            return ()
        result = user.results[0]
        after = self.body.sole_user(result.name)
        if after is None:
            return ()
        if after.opcode.startswith("tt.dot"):
            return (user,) if result.type.layout.startswith("#ttg.dot_op") else ()
        rest = self.chain_to_smem(after)
        return (user, *rest) if rest else ()

    def async_copy(self, op: KernelOp, chains: tuple[tuple[KernelOp, ...], ...]) -> Node:
        ends = [chain[-1] for chain in chains]
        allocs = [end for end in ends if end.opcode == "ttg.local_alloc"]
        buffer = allocs[0].results[0].type if allocs else self.buffer(op.results[0].type, op)
        self.done.update(member.name for chain in chains for member in chain)
        self.staged |= {end.results[0].name: buffer for end in ends if end not in allocs}
        copy = Work(opcode="ttg.async_copy_global_to_local", operands=self.work(op).operands, results=(buffer,))
        return Node(
            name=self.unique(_load_name(op)),
            kind="async_copy",
            members=(op, *(member for chain in chains for member in chain)),
            work=(copy,),
            result=buffer,
            defines=tuple(end.results[0].name for end in ends),
            reads=op.operands,
            source=op.source,
        )

    def tma_store(self, op: KernelOp, kind: str) -> Iterator[Node]:
        source = op.operands[1]
        tile = self.body.types[self.unconverted(source)]
        buffer = self.buffer(tile, op)
        staged = f"{op.name}!"
        yield Node(
            name=self.unique(f"{op.name}_staging"),
            kind="local_store",
            members=(),
            work=(Work(opcode="ttg.local_store", operands=(tile, buffer), results=()),),
            result=buffer,
            defines=(staged,),
            reads=(source,),
            source=op.source,
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
            source=op.source,
            one_warp=True,
        )

    def buffer(self, tile: TileType, op: KernelOp) -> TileType:
        """Return the SMEM tile that a register tile passes through; TMA buffers have the descriptor's layout."""
        first = self.body.types[op.operands[0]]
        layout = first.layout if first.space == "descriptor" else ""
        return TileType(space="smem", shape=tile.shape, dtype=tile.dtype, layout=layout, mutable=True)

    def unique(self, wanted: str) -> str:
        name, number = wanted, 0
        while name in self.names:
            number += 1
            name = f"{wanted}_{number}"
        self.names.add(name)
        return name


_WRITTEN = {
    "ttng.tc_gen5_mma": 2,
    "ttng.tc_gen5_mma_scaled": 2,
    "ttng.tmem_store": 0,
    "ttg.local_store": 1,
}
"""Position of the memory tile that an op writes in place."""


def _load_name(op: KernelOp) -> str:
    """Return ``load_k`` for the load of the user's ``k``; a load without a variable keeps its name."""
    return op.name if "load" in op.name else f"load_{op.name}"


def data_operands(op: KernelOp) -> tuple[str, ...]:
    """Return the operands of ``op`` that are not addresses or masks."""
    skip = address_operands(op)
    return tuple(operand for at, operand in enumerate(op.operands) if at not in skip)
