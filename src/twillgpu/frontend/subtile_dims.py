"""Which axis of which value is one and the same dimension of the computation.

Every op ties axes of its operands and results: an elementwise op those at the same place, a matrix product the rows
of A to the rows of the result, the columns of B to its columns, the columns of A to the rows of B. Classes of tied
axes are the dimensions along which a kernel can be cut. Ops that cannot be cut along a dimension block it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from twillgpu.frontend.check import all_ops
from twillgpu.frontend.kernel import Kernel, KernelOp, TileType
from twillgpu.frontend.layouts import integers

Axis = tuple[str, int]
"""A value and the place of one of its dimensions."""

Types = Mapping[str, TileType]

PRODUCTS = ("tt.dot", "ttng.warp_group_dot", "ttng.tc_gen5_mma")
"""Ops of the tensor core that can be cut: A [M, K], B [K, N], accumulator [M, N]."""

LOADS = ("tt.load", "tt.descriptor_load")
TMA_STORES = ("tt.descriptor_store", "tt.descriptor_reduce")

_SAME_SHAPE = frozenset(
    {
        "tt.addptr", "tt.atomic_cas", "tt.atomic_rmw", "tt.bitcast", "tt.clampf", "tt.elementwise_inline_asm",
        "tt.extern_elementwise", "tt.fp_to_fp", "tt.int_to_ptr", "tt.load", "tt.mulhiui", "tt.precise_divf",
        "tt.precise_sqrt", "tt.ptr_to_int", "tt.store", "ttg.convert_layout", "ttg.local_alloc", "ttg.local_load",
        "ttg.local_store", "ttng.tmem_alloc", "ttng.tmem_load", "ttng.tmem_store",
    }
)  # fmt: skip
_LEAVES = frozenset({"arith.constant", "tt.make_range", "tt.splat"})
_PURE = _LEAVES | {
    "tt.addptr", "tt.bitcast", "tt.broadcast", "tt.expand_dims", "tt.fp_to_fp", "tt.trans", "ttg.convert_layout",
}  # fmt: skip
_FREE = frozenset({*_LEAVES, "tt.descriptor_load", *TMA_STORES})


@dataclass(slots=True)
class Dimensions:
    """Classes of tied axes (a disjoint-set forest), and what blocks a class: the op and the reason."""

    parent: dict[Axis, Axis] = field(default_factory=dict)
    blocked: dict[Axis, str] = field(default_factory=dict)

    def find(self, axis: Axis) -> Axis:
        """Return the representative of the class of ``axis``."""
        while (up := self.parent.get(axis, axis)) != axis:
            self.parent[axis] = self.parent.get(up, up)
            axis = up
        return axis

    def tie(self, first: Axis, second: Axis) -> None:
        """Make two axes one dimension."""
        self.parent[self.find(first)] = self.find(second)

    def block(self, axis: Axis, reason: str) -> None:
        """Remember that the dimension of ``axis`` cannot be cut."""
        self.blocked.setdefault(axis, reason)

    def obstacle(self, axis: Axis) -> str | None:
        """Return why the dimension of ``axis`` cannot be cut, ``None`` where it can."""
        root = self.find(axis)
        return next((reason for other, reason in self.blocked.items() if self.find(other) == root), None)

    def members(self, axis: Axis) -> tuple[Axis, ...]:
        """Return every axis of the dimension."""
        root = self.find(axis)
        axes = dict.fromkeys((*self.parent, *self.parent.values(), axis))
        return tuple(other for other in axes if self.find(other) == root)


def value_types(kernel: Kernel) -> dict[str, TileType]:
    """Return the type of every value of the kernel."""
    types = {value.name: value.type for value in (*kernel.arguments, kernel.loop.induction)}
    types |= {result.name: result.type for op in all_ops(kernel) for result in op.results}
    for carried in kernel.loop.carried:
        types |= dict.fromkeys((carried.argument.name, carried.result), carried.argument.type)
    return types


def replicable_values(kernel: Kernel, types: Types) -> frozenset[str]:
    """Return the tiles that each user may compute for itself in the shape that it needs: constants, ranges, scalars
    spread over a tile, and arithmetic on those. They tie nothing.
    """
    found: set[str] = set()
    for op in all_ops(kernel):
        if op.opcode not in _PURE and op.opcode.split(".")[0] not in ("arith", "math"):
            continue
        if all(name in found for name in op.operands if types[name].shape):
            found.update(result.name for result in op.results if result.type.shape)
    return frozenset(found)


def staged_loads(kernel: Kernel, types: Types) -> frozenset[str]:
    """Return the SMEM tiles that a load fills. They stay whole, and so does the load; parts are slices of them."""
    ops = all_ops(kernel)
    maker = {result.name: op for op in ops for result in op.results}
    readers: dict[str, int] = {}
    for op in ops:
        for operand in dict.fromkeys(op.operands):
            readers[operand] = readers.get(operand, 0) + 1

    def loaded(name: str) -> bool:
        op = maker.get(name)
        if op is None or readers[name] > 1:
            return False
        return op.opcode in LOADS or (op.opcode == "ttg.convert_layout" and loaded(op.operands[0]))

    allocs = [op for op in ops if op.opcode == "ttg.local_alloc" and op.operands]
    return frozenset(
        op.results[0].name for op in allocs if loaded(op.operands[0]) and not types[op.results[0].name].mutable
    )


def dimensions_of(kernel: Kernel, types: Types, apart: frozenset[str], whole: frozenset[str]) -> Dimensions:
    """Return the dimensions of the kernel; values in ``apart`` tie nothing, and a tile in ``whole`` is not tied to
    what fills it.
    """
    dimensions = Dimensions()
    for op in all_ops(kernel):
        if any(result.name in whole for result in op.results):
            continue
        for first, second in _ties_without(op, types, apart):
            dimensions.tie(first, second)
        for axis, reason in obstacles(op, types):
            if axis[0] not in apart:
                dimensions.block(axis, reason)
    for carried in kernel.loop.carried:
        for name in (carried.initial, carried.yielded, carried.result):
            for place in range(len(carried.argument.type.shape)):
                if name not in apart:
                    dimensions.tie((carried.argument.name, place), (name, place))
    return dimensions


def _ties_without(op: KernelOp, types: Types, apart: frozenset[str]) -> Iterator[tuple[Axis, Axis]]:
    """Yield the ties of ``op`` between values that are not ``apart``, also those that go through one that is."""
    local = Dimensions()
    for first, second in ties(op, types):
        local.tie(first, second)
    classes: dict[Axis, Axis] = {}
    for axis in dict.fromkeys((*local.parent, *local.parent.values())):
        if axis[0] not in apart:
            yield classes.setdefault(local.find(axis), axis), axis


def tied_axes(op: KernelOp, types: Types, known: Mapping[str, int]) -> dict[str, int]:
    """Return the axis of every value of ``op`` that is tied, inside this op, to one of the ``known`` axes."""
    found = dict(known)
    pairs = tuple(ties(op, types))
    changed = True
    while changed:
        changed = False
        for first, second in (*pairs, *((two, one) for one, two in pairs)):
            if found.get(first[0]) == first[1] and second[0] not in found:
                found[second[0]] = second[1]
                changed = True
    return found


def ties(op: KernelOp, types: Types) -> Iterator[tuple[Axis, Axis]]:
    """Yield the pairs of axes that ``op`` makes one dimension."""
    rule = _TIES.get(op.opcode)
    if rule is not None:
        yield from rule(op, types)
    elif _same_shape(op):
        yield from _equal_places(tiles_of(op, types))


def obstacles(op: KernelOp, types: Types) -> Iterator[tuple[Axis, str]]:
    """Yield the axes along which ``op`` cannot be cut, and why."""
    place = f"{op.name} ({op.source})" if op.source else op.name
    if op.opcode in ("tt.reduce", "tt.scan"):
        axis = _axis(op)
        for operand in op.operands:
            yield (operand, axis), f"{op.opcode} at {place} reduces over it"
    if op.opcode in _FREE or op.opcode in _TIES or (_same_shape(op) and _fit(tiles_of(op, types))):
        return
    for name, kind in tiles_of(op, types):
        for axis in range(len(kind.shape)):
            yield (name, axis), f"{op.opcode} at {place} cannot be cut"


def tiles_of(op: KernelOp, types: Types) -> tuple[tuple[str, TileType], ...]:
    """Return the names and types of the tiles that ``op`` reads and makes."""
    names = (*op.operands, *(result.name for result in op.results))
    return tuple((name, types[name]) for name in dict.fromkeys(names) if _is_tile(types[name]))


def _is_tile(kind: TileType) -> bool:
    return bool(kind.shape) and kind.space != "descriptor"


def _same_shape(op: KernelOp) -> bool:
    return op.opcode in _SAME_SHAPE or op.opcode.split(".")[0] in ("arith", "math")


def _fit(tiles: tuple[tuple[str, TileType], ...]) -> bool:
    return len({kind.shape for _, kind in tiles}) <= 1


def _equal_places(tiles: tuple[tuple[str, TileType], ...]) -> Iterator[tuple[Axis, Axis]]:
    if not tiles or not _fit(tiles):
        return
    (first, kind), *others = tiles
    for name, _ in others:
        for axis in range(len(kind.shape)):
            yield (first, axis), (name, axis)


def _axis(op: KernelOp) -> int:
    return integers(op.attribute("axis") or "0")[0]


def _expand_dims(op: KernelOp, types: Types) -> Iterator[tuple[Axis, Axis]]:
    operand, result, new = op.operands[0], op.results[0].name, _axis(op)
    for axis in range(len(types[operand].shape)):
        yield (operand, axis), (result, axis if axis < new else axis + 1)


def _broadcast(op: KernelOp, types: Types) -> Iterator[tuple[Axis, Axis]]:
    operand, result = op.operands[0], op.results[0]
    for axis, size in enumerate(types[operand].shape):
        if size == result.type.shape[axis]:
            yield (operand, axis), (result.name, axis)


def _reduce(op: KernelOp, types: Types) -> Iterator[tuple[Axis, Axis]]:
    gone = _axis(op)
    for operand, result in zip(op.operands, op.results, strict=False):
        for axis in range(len(types[operand].shape)):
            if axis != gone:
                yield (operand, axis), (result.name, axis if axis < gone else axis - 1)
                yield (operand, axis), (op.operands[0], axis)


def _scan(op: KernelOp, types: Types) -> Iterator[tuple[Axis, Axis]]:
    yield from _equal_places(tiles_of(op, types))


def _transpose(op: KernelOp, types: Types) -> Iterator[tuple[Axis, Axis]]:
    operand, result = op.operands[0], op.results[0].name
    order = integers((op.attribute("order") or "").partition(":")[2] or op.attribute("order") or "")
    for axis, source in enumerate(order[-len(types[operand].shape) :]):
        yield (operand, source), (result, axis)


def _product(op: KernelOp, _types: Types) -> Iterator[tuple[Axis, Axis]]:
    a, b, c = op.operands[:3]
    yield (a, 0), (c, 0)
    yield (b, 1), (c, 1)
    yield (a, 1), (b, 0)
    for result in op.results:
        if result.type.shape:
            yield (c, 0), (result.name, 0)
            yield (c, 1), (result.name, 1)


_TIES: dict[str, Callable[[KernelOp, Types], Iterator[tuple[Axis, Axis]]]] = {
    "tt.expand_dims": _expand_dims,
    "tt.broadcast": _broadcast,
    "tt.reduce": _reduce,
    "tt.scan": _scan,
    "tt.trans": _transpose,
    "ttg.memdesc_trans": _transpose,
    **dict.fromkeys(PRODUCTS, _product),
}


def reduces_over(op: KernelOp, axes: Mapping[str, int]) -> bool:
    """Return whether a matrix product reduces over the dimension with the given axes."""
    return op.opcode in PRODUCTS and axes.get(op.operands[0]) == 1


def names_of(values: Iterable[Axis]) -> frozenset[str]:
    """Return the values of a set of axes."""
    return frozenset(name for name, _ in values)
