"""What every op of a kernel must find in memory: the kernel run in program order, with a version in every buffer.

Written from the meaning of the kernel alone. A version is the op that wrote it, and its iteration (``None`` outside
the loop).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from twillgpu.frontend.kernel import Kernel, KernelOp

Version: TypeAlias = tuple[str, int | None]
Found: TypeAlias = dict[str, Version | None]
"""Buffer to the version in it; ``None``: nothing was written yet."""

VIEWS = frozenset(
    {
        "ttg.memdesc_index",
        "ttg.memdesc_reinterpret",
        "ttg.memdesc_reshape",
        "ttg.memdesc_subslice",
        "ttg.memdesc_subview",
        "ttg.memdesc_trans",
        "ttng.tmem_subslice",
    }
)
ALLOCATIONS = frozenset({"ttg.local_alloc", "ttng.tmem_alloc"})
EFFECTS = frozenset({"tt.store", "tt.descriptor_store", "tt.descriptor_scatter", "tt.descriptor_reduce"})
ONCE = frozenset({"tt.descriptor_reduce", "tt.atomic_rmw", "tt.atomic_cas"})
"""Effects that may not be repeated."""


class Meaning:
    """A kernel with what its names stand for."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.ops = {op.name: op for op in self.all_ops()}
        self.types = {value.name: value.type for op in self.all_ops() for value in op.results}
        self.types |= {value.name: value.type for value in kernel.arguments}
        self.inside = {value.name for op in kernel.loop.body for value in op.results}
        self.carried = {one.argument.name: one for one in kernel.loop.carried}
        self.types |= {one.argument.name: one.argument.type for one in kernel.loop.carried}
        self.results = {one.result: one for one in kernel.loop.carried}
        self.types |= {one.result: one.argument.type for one in kernel.loop.carried}
        self.given = {value.name for value in kernel.arguments} | {kernel.loop.induction.name}
        self.roots: dict[str, str] = {}
        for op in self.all_ops():
            if op.opcode in VIEWS:
                self.roots[op.results[0].name] = self.root(op.operands[0])

    def all_ops(self) -> Iterator[KernelOp]:
        """Yield the ops before the loop, in it and after it."""
        yield from self.kernel.before
        yield from self.kernel.loop.body
        yield from self.kernel.after

    def root(self, name: str) -> str:
        """Return the buffer that a view is of."""
        return self.roots.get(name, name)

    def space(self, name: str) -> str:
        """Return where a value is."""
        kind = self.types.get(name)
        return kind.space if kind is not None else "scalar"

    def resolve(self, name: str, at: int | None, trips: int) -> Version | None:
        """Return the value that a name stands for in iteration ``at``; ``None`` for what every group is given."""
        while True:
            if name in self.given:
                return None
            if name in self.carried and at is not None:
                one = self.carried[name]
                name, at = (one.initial, None) if at == 0 else (one.yielded, at - 1)
            elif name in self.results:
                one = self.results[name]
                name, at = (one.initial, None) if trips == 0 else (one.yielded, trips - 1)
            else:
                return (name, at if name in self.inside else None)

    def flag(self, name: str, at: int | None, trips: int) -> bool:
        """Return whether a predicate is true, as far as constants tell; otherwise ``True``."""
        found = self.resolve(name, at, trips)
        op = self.ops.get(found[0]) if found is not None else None
        return op is None or op.attribute("value") != "false"

    def reads(self, op: KernelOp, at: int | None, trips: int) -> list[str]:
        """Return the buffers that an op reads."""
        if op.opcode in VIEWS or op.opcode in ALLOCATIONS:
            return []
        if op.opcode == "ttng.tmem_store":
            return []
        operands = list(op.operands)
        if op.opcode == "ttg.local_store":
            operands = operands[:1]
        if op.opcode.startswith("ttng.tc_gen5_mma") and not self.flag(op.operands[-2], at, trips):
            operands.remove(op.operands[2])
        return [self.root(name) for name in operands if self.space(name) in ("smem", "tmem")]

    def writes(self, op: KernelOp) -> list[str]:
        """Return the buffers that an op writes."""
        if op.opcode in ALLOCATIONS:
            return [op.results[0].name] if op.operands else []
        if op.opcode == "ttng.tmem_store":
            return [self.root(op.operands[0])]
        if op.opcode == "ttg.local_store":
            return [self.root(op.operands[1])]
        if op.opcode.startswith("ttng.tc_gen5_mma"):
            return [self.root(op.operands[2])]
        return []

    def registers(self, op: KernelOp) -> list[str]:
        """Return the operands that a group must have computed."""
        return [name for name in op.operands if self.space(name) in ("registers", "scalar", "global")]


class Sequence:
    """The kernel run in program order for one tile."""

    def __init__(self, meaning: Meaning, trips: int) -> None:
        self.meaning, self.trips = meaning, trips
        self.expected: dict[tuple[str, int | None], Found] = {}
        self._memory: Found = {}
        for op in meaning.kernel.before:
            self._run(op, None)
        for at in range(trips):
            for op in meaning.kernel.loop.body:
                self._run(op, at)
        for op in meaning.kernel.after:
            self._run(op, None)

    def _run(self, op: KernelOp, at: int | None) -> None:
        meaning, memory = self.meaning, self._memory
        self.expected[op.name, at] = {root: memory.get(root) for root in meaning.reads(op, at, self.trips)}
        if op.opcode in ALLOCATIONS:
            memory[op.results[0].name] = None
        for root in meaning.writes(op):
            memory[root] = (op.name, at)


class Versions:
    """Meanings and sequences of kernels, each worked out once. Kernels are compared by identity."""

    def __init__(self) -> None:
        self._meanings: dict[int, tuple[Kernel, Meaning]] = {}
        self._sequences: dict[tuple[int, int], Sequence] = {}

    def meaning(self, kernel: Kernel) -> Meaning:
        """Return the meaning of a kernel."""
        if id(kernel) not in self._meanings:
            self._meanings[id(kernel)] = (kernel, Meaning(kernel))
        return self._meanings[id(kernel)][1]

    def sequence(self, kernel: Kernel, trips: int) -> Sequence:
        """Return a kernel run in program order."""
        key = (id(kernel), trips)
        if key not in self._sequences:
            self._sequences[key] = Sequence(self.meaning(kernel), trips)
        return self._sequences[key]


VERSIONS = Versions()
