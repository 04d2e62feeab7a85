"""Kernel ops that touch memory or another unit, as Gluon statements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from twillgpu.emit.expressions import Writing
from twillgpu.emit.frame import Frame
from twillgpu.emit.terms import Term
from twillgpu.errors import UnsupportedError
from twillgpu.frontend.kernel import KernelOp
from twillgpu.lower.record import Access, Execute, Ring


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """An op in its place: the instruction that it is part of, and what resolves its operands."""

    op: KernelOp
    instruction: Execute
    frame: Frame
    writing: Writing
    least: int

    def operand(self, at: int) -> str:
        """Return the expression of an operand."""
        return self.writing.term(self.op.operands[at]).text

    def tile(self, at: int) -> str:
        """Return the expression of an operand with its whole shape."""
        return self.writing.tile(self.op.operands[at], self.op.source)

    def layout(self) -> str:
        """Return the name of the layout of the first result."""
        return self.frame.layouts.name(self.op.results[0].type.layout, self.op.source)

    def memory(self, value: str) -> str:
        """Return the expression of a memory tile: a copy of a ring, or a view of one.

        Raises:
            UnsupportedError: a view that Gluon cannot write.
        """
        ring = self.frame.ring_of.get(value)
        if ring is not None:
            return self.frame.copy(self.access(ring.name), self.least)
        maker = self.frame.makers.get(value)
        view = None if maker is None else _VIEWS.get(maker.opcode)
        if maker is None or view is None:
            raise UnsupportedError(self.op.source, f"memory tile {value} is in no buffer", "report it")
        return view(self, maker)

    def access(self, ring: str) -> Access:
        """Return the instance of a ring that the instruction touches."""
        found = (one for one in (*self.instruction.reads, *self.instruction.writes) if one.ring == ring)
        return next(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """Statements, and the expression of the op's result, ``None`` where it has none in registers."""

    lines: tuple[str, ...] = ()
    term: Term | None = None


def _transposed(action: Action, maker: KernelOp) -> str:
    order = (maker.attribute("order") or "").partition(":")[2].strip(" >")
    return f"{action.memory(maker.operands[0])}.permute([{order}])"


def _sliced(action: Action, maker: KernelOp) -> str:
    offsets = [int(one) for one in (maker.attribute("offsets") or "").partition(":")[2].strip(" >").split(",")]
    source, shape = action.frame.types[maker.operands[0]].shape, maker.results[0].type.shape
    text = action.memory(maker.operands[0])
    for dimension, (offset, size, whole) in enumerate(zip(offsets, shape, source, strict=True)):
        if size != whole:
            text += f".slice({offset}, {size}, {dimension})"
    return text


_VIEWS: Mapping[str, Callable[[Action, KernelOp], str]] = MappingProxyType(
    {"ttg.memdesc_trans": _transposed, "ttg.memdesc_subslice": _sliced}
)


def _nothing(_action: Action) -> Done:
    return Done()


def _tma_load(action: Action) -> Done:
    use, target = action.instruction.completes, action.instruction.writes[0]
    if use is None:
        raise UnsupportedError(action.op.source, "a TMA load without a barrier", "report it")
    ring = action.frame.rings[target.ring]
    descriptor = action.frame.descriptor(action.op.operands[0], ring.tile.shape, ring.tile.layout)
    coordinates = ", ".join(action.operand(at) for at in range(1, len(action.op.operands)))
    bar, _ = action.frame.phase(use, action.least)
    copy = action.frame.copy(target, action.least)
    return Done(lines=(f"tma_load({descriptor}, [{coordinates}], {bar}, {copy})",))


def _tma_store(action: Action) -> Done:
    source = action.instruction.reads[0]
    ring = action.frame.rings[source.ring]
    descriptor = action.frame.descriptor(action.op.operands[0], ring.tile.shape, ring.tile.layout)
    coordinates = ", ".join(action.operand(at) for at in range(2, len(action.op.operands)))
    copy = action.frame.copy(source, action.least)
    if action.op.opcode == "tt.descriptor_store":
        return Done(lines=(f"tma_store({descriptor}, [{coordinates}], {copy})",))
    return _tma_add(action, ring, f"{descriptor}, ", f"{coordinates}, {copy}")


def _tma_add(action: Action, ring: Ring, first: str, last: str) -> Done:
    """A sum in global memory: by TMA, or by atomics through the pointer where Gluon cannot write it (Triton 3.6)."""
    argument = action.op.operands[0]
    if (action.op.attribute("kind") or "").split()[0] != "1" or len(ring.tile.shape) != 2:
        raise UnsupportedError(action.op.source, "a TMA reduction other than a sum of matrices", "add, or store")
    stride = action.frame.names.name(f"{argument}.stride.0")
    rows, columns = ring.tile.shape
    return Done(lines=(f"tma_add({first}{action.frame.base(argument)}, {stride}, {last}, {rows}, {columns})",))


def _alloc(action: Action) -> Done:
    if not action.op.operands or action.instruction.engine != "simt":
        return Done()
    target = action.memory(action.op.results[0].name)
    return Done(lines=(f"{target}.store({action.tile(0)})",))


def _local_store(action: Action) -> Done:
    return Done(lines=(f"{action.memory(action.op.operands[1])}.store({action.tile(0)})",))


def _load_tile(action: Action) -> Done:
    text = f"{action.memory(action.op.operands[0])}.load({action.layout()})"
    return Done(term=Term(text=text, shape=action.op.results[0].type.shape))


def _tmem_store(action: Action) -> Done:
    stored = [at for at, name in enumerate(action.op.operands) if action.frame.types[name].space == "registers"]
    return Done(lines=(f"{action.memory(action.op.operands[0])}.store({action.tile(stored[0])})",))


def _wgmma(action: Action) -> Done:
    first, second, accumulator = action.op.operands[:3]
    left = action.tile(0) if action.frame.types[first].space == "registers" else action.memory(first)
    fresh = _is_zero(action.writing.term(accumulator))
    use = ", use_acc=False" if fresh else ""
    text = f"warpgroup_mma({left}, {action.memory(second)}, {action.tile(2)}{use}, is_async=True)"
    return Done(term=Term(text=text, shape=action.op.results[0].type.shape))


def _is_zero(term: Term) -> bool:
    return term.text in ("0.0", "-0.0")


def _tcgen05(action: Action) -> Done:
    first, second, accumulator = (action.memory(name) for name in action.op.operands[:3])
    scalars = [at for at, name in enumerate(action.op.operands) if action.frame.types[name].space == "scalar"]
    use, predicate = (action.operand(at) for at in scalars[:2])
    extra = "" if predicate == "True" else f", pred={predicate}"
    return Done(lines=(f"tcgen05_mma({first}, {second}, {accumulator}, use_acc={use}{extra})",))


def _load(action: Action) -> Done:
    if action.instruction.engine == "cp_async":
        return _async_copy(action)
    given = [f"mask={action.operand(1)}"] if len(action.op.operands) > 1 else []
    given += [f"other={action.operand(2)}"] if len(action.op.operands) > 2 else []
    text = f"gl.load({', '.join([action.operand(0), *given])})"
    return Done(term=Term(text=text, shape=action.op.results[0].type.shape))


def _async_copy(action: Action) -> Done:
    """A copy to SMEM that the group waits for later; what its mask leaves out is zero."""
    target = action.frame.copy(action.instruction.writes[0], action.least)
    if len(action.op.operands) > 2 and action.operand(2) not in ("0", "0.0"):
        raise UnsupportedError(
            action.op.source, "a copy to SMEM that fills in what it does not load", "use other=0.0"
        )
    mask = f", mask={action.tile(1)}" if len(action.op.operands) > 1 else ""
    return Done(lines=(f"cp_async({target}, {action.tile(0)}{mask})", "async_copy.commit_group()"))


def _store(action: Action) -> Done:
    mask = f", mask={action.operand(2)}" if len(action.op.operands) > 2 else ""
    return Done(lines=(f"gl.store({action.operand(0)}, {action.tile(1)}{mask})",))


ACTIONS: Mapping[str, Callable[[Action], Done]] = MappingProxyType(
    {
        "tt.descriptor_load": _tma_load,
        "tt.descriptor_store": _tma_store,
        "tt.descriptor_reduce": _tma_store,
        "tt.load": _load,
        "tt.store": _store,
        "ttg.local_alloc": _alloc,
        "ttg.local_store": _local_store,
        "ttg.local_load": _load_tile,
        "ttng.tmem_alloc": _alloc,
        "ttng.tmem_load": _load_tile,
        "ttng.tmem_store": _tmem_store,
        "ttng.warp_group_dot": _wgmma,
        "ttng.tc_gen5_mma": _tcgen05,
    }
)
"""How each opcode is written."""
