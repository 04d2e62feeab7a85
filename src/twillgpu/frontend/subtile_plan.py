"""What sub-tiling does to each op: choosing the dimension, and which values are cut where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from twillgpu.frontend.check import all_ops
from twillgpu.frontend.kernel import Kernel, KernelOp, TileType
from twillgpu.frontend.subtile_dims import (
    PRODUCTS,
    Axis,
    Dimensions,
    dimensions_of,
    reduces_over,
    replicable_values,
    staged_loads,
    tied_axes,
)

Form = int | None
"""The axis along which a value is cut, ``None`` where it is whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to cut.

    Attributes:
        kernel, types: the kernel and the types of its values.
        parts: number of sub-tiles; ``size``: elements of each along the dimension; ``warps``: warps that hold each.
        axes: the axis of each value that carries the dimension.
        staged: SMEM tiles of ``axes`` that stay whole; their parts are slices.
        split: ops that become one op for each part.
        chained: products that reduce over the dimension: one for each part, adding to one accumulator.
        tokens: tokens that become one for each part.
        forms: the forms in which each replicable value is needed.
    """

    kernel: Kernel
    types: Mapping[str, TileType]
    parts: int
    size: int
    warps: int
    axes: Mapping[str, int]
    staged: frozenset[str]
    split: frozenset[str]
    chained: frozenset[str]
    tokens: frozenset[str]
    forms: Mapping[str, frozenset[Form]]

    def local_axes(self, op: KernelOp) -> dict[str, int]:
        """Return the axis of every value of ``op`` in this op, replicable ones included."""
        names = (*op.operands, *(result.name for result in op.results))
        return tied_axes(op, self.types, {name: self.axes[name] for name in names if name in self.axes})


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The dimension to cut: its size, the axes, and why it cannot be cut (``None`` where it can)."""

    op: KernelOp
    size: int
    axes: Mapping[str, int]
    obstacle: str | None
    replicable: frozenset[str]
    staged: frozenset[str]


def choose(kernel: Kernel, types: Mapping[str, TileType]) -> Choice | None:
    """Return the dimension that the rows of most accumulators carry, ``None`` for a loop without matrix product.

    Products that add to a carried accumulator decide; only where there are none do the others.
    """
    products = [op for op in kernel.loop.body if op.opcode in PRODUCTS]
    if not products:
        return None
    replicable, staged = replicable_values(kernel, types), staged_loads(kernel, types)
    dimensions = dimensions_of(kernel, types, replicable, staged)
    adding = [op for op in products if _adds(op, kernel, replicable)] or products
    rows = [(op, _rows(op, replicable)) for op in adding]
    roots = [dimensions.find(axis) for _, axis in rows]
    op, axis = rows[max(range(len(rows)), key=lambda at: (roots.count(roots[at]), -at))]
    axes, twice = _axes(dimensions, axis)
    return Choice(
        op=op,
        size=types[axis[0]].shape[axis[1]],
        axes=axes,
        obstacle=dimensions.obstacle(axis) or twice,
        replicable=replicable,
        staged=staged & axes.keys(),
    )


def plan(kernel: Kernel, types: Mapping[str, TileType], choice: Choice, parts: int) -> Plan:
    """Return what to cut for ``parts`` sub-tiles along the chosen dimension."""
    chained = {op.name for op in all_ops(kernel) if reduces_over(op, choice.axes)}
    split = {
        op.name
        for op in all_ops(kernel)
        if op.name not in chained
        and not any(result.name in choice.staged for result in op.results)
        and any(name in choice.axes for name in (*op.operands, *(result.name for result in op.results)))
    }
    tokens = _split_tokens(kernel, types, split)
    found = Plan(
        kernel=kernel,
        types=types,
        parts=parts,
        size=choice.size // parts,
        warps=max(min(4, kernel.num_warps), kernel.num_warps // parts),
        axes=choice.axes,
        staged=choice.staged,
        split=frozenset(split),
        chained=frozenset(chained),
        tokens=tokens,
        forms={},
    )
    return _with_forms(found, choice.replicable)


def _adds(op: KernelOp, kernel: Kernel, replicable: frozenset[str]) -> bool:
    """Return whether a product adds to an accumulator instead of starting a new one."""
    constants = {made.results[0].name: made.attribute("value") for made in kernel.before if made.results}
    flags = [constants.get(name) for name in op.operands[3:]]
    if op.opcode == "ttng.tc_gen5_mma":
        return "false" not in flags
    return op.operands[2] not in replicable and "false" not in flags


def _rows(op: KernelOp, replicable: frozenset[str]) -> Axis:
    """Return the rows of a product's result; the result itself where the accumulator is a constant."""
    results = [result.name for result in op.results if result.type.shape]
    return (results[0] if op.operands[2] in replicable or results else op.operands[2], 0)


def _axes(dimensions: Dimensions, axis: Axis) -> tuple[dict[str, int], str | None]:
    axes: dict[str, int] = {}
    twice = None
    for name, place in dimensions.members(axis):
        if axes.setdefault(name, place) != place:
            twice = f"{name} has it twice, as rows and as columns"
    return axes, twice


def _split_tokens(kernel: Kernel, types: Mapping[str, TileType], split: set[str]) -> frozenset[str]:
    """Return the tokens made by ops that are split, and the carried tokens that hold them."""
    found = {
        result.name
        for op in all_ops(kernel)
        if op.name in split
        for result in op.results
        if types[result.name].space == "token"
    }
    for carried in kernel.loop.carried:
        if carried.initial in found or carried.yielded in found:
            found |= {carried.argument.name, carried.result}
    return frozenset(found)


def _with_forms(found: Plan, replicable: frozenset[str]) -> Plan:
    """Add the forms of replicable values, readers before makers."""
    forms: dict[str, set[Form]] = {name: set() for name in replicable}
    loop = found.kernel.loop
    for carried in loop.carried:
        axis = found.axes.get(carried.argument.name)
        for name in (carried.initial, carried.yielded):
            if name in forms:
                forms[name].add(axis)
    for op in reversed(all_ops(found.kernel)):
        _add_forms(op, found, forms)
    for bound in (loop.lower, loop.upper, loop.step):
        forms.get(bound, set()).add(None)
    return replace(found, forms={name: frozenset(needed) for name, needed in forms.items()})


def _add_forms(op: KernelOp, found: Plan, forms: dict[str, set[Form]]) -> None:
    """Add the forms in which ``op`` reads replicable values."""
    for form in _forms_of(op, forms):
        axes = found.local_axes(op) if form is None else tied_axes(op, found.types, {op.results[0].name: form})
        for operand in op.operands:
            if operand in forms:
                forms[operand].add(axes.get(operand))


def _forms_of(op: KernelOp, forms: Mapping[str, Iterable[Form]]) -> tuple[Form, ...]:
    """Return the forms in which ``op`` itself is made; ``None`` also stands for an op that is not replicable."""
    results = [result.name for result in op.results]
    if results and results[0] in forms:
        return tuple(forms[results[0]])
    return (None,)
