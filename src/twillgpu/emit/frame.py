"""What all parts of one emitted file share: names, layouts, rings, barriers, and the ops that make each value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from twillgpu.emit.counting import place
from twillgpu.emit.direct import direct
from twillgpu.emit.expressions import INLINE
from twillgpu.emit.folding import folded
from twillgpu.emit.terms import LayoutNames, Names
from twillgpu.frontend.kernel import Kernel, KernelOp, KernelValue, TileType
from twillgpu.lower.record import Access, Barrier, BarrierUse, Instance, Ring, WarpProgram

BARRIERS = "barriers"
"""Name of the array of all barriers."""

FIRST = "first\N{NO-BREAK SPACE}storage"
"""Key of the variable that is the first copy of every ring in a loop that computes its addresses anew."""


@dataclass(slots=True, kw_only=True)
class Frame:
    """The file being written.

    Attributes:
        program: what is emitted.
        names, layouts: names in use.
        types: type of every value of the kernel.
        makers: the op that makes each value.
        ops: the ops of the kernel by name.
        rings, barriers: by name.
        ring_of: ring that holds each memory tile or handed-over value.
        descriptors: (argument, block shape, layout) of each TMA descriptor in use, with its name.
        bases: descriptor arguments whose pointer is passed as well, with its name.
        skipped: copies in front of the first one of a ring, in what it is a piece of (``twillgpu.emit.storage``).
        dropped: layout conversions that are not written (``twillgpu.emit.direct``).
        folded: ops that are written where their only reader is (``twillgpu.emit.folding``).
        first: the first copy of a ring as an expression: a variable where the compiler is not to know that it is 0.
    """

    program: WarpProgram
    names: Names = field(default_factory=Names)
    layouts: LayoutNames = field(default_factory=LayoutNames)
    types: dict[str, TileType] = field(default_factory=dict)
    makers: dict[str, KernelOp] = field(default_factory=dict)
    ops: dict[str, KernelOp] = field(default_factory=dict)
    rings: dict[str, Ring] = field(default_factory=dict)
    barriers: dict[str, Barrier] = field(default_factory=dict)
    ring_of: dict[str, Ring] = field(default_factory=dict)
    descriptors: dict[tuple[str, tuple[int, ...], str], str] = field(default_factory=dict)
    bases: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)
    dropped: frozenset[str] = frozenset()
    folded: frozenset[str] = frozenset()
    first: str = "0"

    def __post_init__(self) -> None:
        self.program, self.dropped = direct(self.program)
        self.folded = folded(self.program)
        kernel = self.program.kernel
        self.types = {value.name: value.type for value in values_of(kernel)}
        self.makers = {value.name: op for op in ops_of(kernel) for value in op.results}
        self.ops = {op.name: op for op in ops_of(kernel)}
        self.rings = {ring.name: ring for ring in self.program.rings}
        self.barriers = {barrier.name: barrier for barrier in self.program.barriers}
        self.ring_of = {value: ring for ring in self.program.rings for value in ring.values}
        for name in self.rings:
            self.names.name(storage_key(name))
        for name in self.barriers:
            self.barrier_name(name)

    def inline(self, op: KernelOp) -> bool:
        """Return whether an op is written where its result is read."""
        return op.opcode in INLINE or op.name in self.dropped or op.name in self.folded

    def op_named(self, name: str) -> KernelOp:
        """Return the op of this name."""
        return self.ops[name]

    def ring_name(self, ring: Ring) -> str:
        """Return the Python name of a ring."""
        return self.names.name(storage_key(ring.name))

    def barrier_name(self, name: str) -> str:
        """Return the name of the constant that says where a barrier is."""
        return self.names.name(storage_key(name).upper())

    def copy(self, access: Access, least: int) -> str:
        """Return the expression of the copy of a ring that an access touches."""
        ring = self.rings[access.ring]
        at = self.placed(access.instance, ring.depth, least)[0]
        at = self.first if at == "0" else at
        before = self.skipped.get(ring.name, 0)
        return f"{self.ring_name(ring)}.index({f'{before} + {at}' if before else at})"

    def phase(self, use: BarrierUse, least: int) -> tuple[str, str]:
        """Return the expressions of a barrier's copy, and of the phase parity of one of its instances."""
        barrier = self.barriers[use.barrier]
        copy, phase = self.placed(use.instance, barrier.copies, least)
        place = self.barrier_name(use.barrier)
        return f"{BARRIERS}.index({place if copy == '0' else f'{place} + {copy}'})", phase

    def placed(self, instance: Instance, copies: int, least: int) -> tuple[str, str]:
        """Return copy and phase parity of an instance as expressions."""
        found = place(instance, copies, least, persistent=self.program.persistent)
        return found.copy, found.phase

    def descriptor(self, argument: str, shape: tuple[int, ...], layout: str) -> str:
        """Return the name of the TMA descriptor of an argument for one block shape and layout."""
        key = (argument, shape, layout)
        if key not in self.descriptors:
            same = [name for (other, _, _), name in self.descriptors.items() if other == argument]
            suffix = "_" + "x".join(map(str, shape)) if same else ""
            self.descriptors[key] = self.names.name(f"{argument}{suffix}")
        return self.descriptors[key]

    def base(self, argument: str) -> str:
        """Return the name of the pointer of a descriptor argument."""
        return self.bases.setdefault(argument, self.names.name(f"{argument}_base"))


def storage_key(name: str) -> str:
    """Return the key under which a ring or barrier is named, apart from the kernel's values."""
    return f"{name}\N{NO-BREAK SPACE}storage"


def ops_of(kernel: Kernel) -> Iterator[KernelOp]:
    """Yield every op of a kernel in program order."""
    yield from kernel.before
    yield from kernel.loop.body
    yield from kernel.after


def values_of(kernel: Kernel) -> Iterator[KernelValue]:
    """Yield every value of a kernel: arguments, results, block arguments and results of the loop."""
    yield from kernel.arguments
    yield kernel.loop.induction
    for carried in kernel.loop.carried:
        yield carried.argument
        yield KernelValue(name=carried.result, type=carried.argument.type)
    for op in ops_of(kernel):
        yield from op.results
