"""Rewriting the ops of a kernel for sub-tiles."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from twillgpu.errors import UnsupportedError
from twillgpu.frontend.check import all_ops
from twillgpu.frontend.kernel import Carried, Kernel, KernelOp, KernelValue, SubTile, TileType
from twillgpu.frontend.layouts import integers
from twillgpu.frontend.subtile_dims import TMA_STORES, tied_axes
from twillgpu.frontend.subtile_layout import Cut, cut_type
from twillgpu.frontend.subtile_plan import Form, Plan

Origin = tuple[str, int | None]
"""The op that an op comes from, and the part that it is (``None``: the op as it was)."""

_DENSE = re.compile(r"dense<([^\[\]<>]*)> : tensor<.*>", re.DOTALL)
_REDUCED = 2
"""``SubTile.dimension`` of a part of a product that reduces over the dimension: K after M and N."""


class PartNames:
    """Allots names of parts: ``qk_0``, ``qk_1``; ``qk_part_0`` and so on where one of those is taken."""

    def __init__(self, taken: Iterable[str], parts: int) -> None:
        self.taken = set(taken)
        self.parts = parts
        self.known: dict[tuple[str, Form], tuple[str, ...]] = {}

    def of(self, name: str, form: Form) -> tuple[str, ...]:
        """Return the names of the parts of ``name`` cut along ``form``."""
        key = (name, form)
        if key not in self.known:
            styles = (name, f"{name}_part", f"{name}_axis{form}_part")
            options = (tuple(f"{style}_{part}" for part in range(self.parts)) for style in styles)
            self.known[key] = next(names for names in options if self.taken.isdisjoint(names))
            self.taken.update(self.known[key])
        return self.known[key]

    def one(self, wanted: str) -> str:
        """Return a new name for a helper op."""
        name = next(name for name in _numbered(wanted) if name not in self.taken)
        self.taken.add(name)
        return name


def _numbered(wanted: str) -> Iterator[str]:
    yield wanted
    number = 1
    while True:
        yield f"{wanted}_{number}"
        number += 1


class Rewriter:
    """Builds the sub-tiled kernel. ``origins`` is the inverse map by op name, ``unknown`` lists the layouts that
    could not be rewritten and stay those of the whole tile.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.names = PartNames(_surviving(plan), plan.parts)
        self.origins: dict[str, Origin] = {}
        self.unknown: dict[str, None] = {}

    def kernel(self) -> Kernel:
        """Return the kernel with every op of the plan cut."""
        kernel = self.plan.kernel
        before, body, after = (self.section(ops) for ops in (kernel.before, kernel.loop.body, kernel.after))
        carried = tuple(new for old in kernel.loop.carried for new in self.carried(old))
        return replace(
            kernel,
            num_warps=self.plan.warps,
            before=before,
            loop=replace(kernel.loop, carried=carried, body=body),
            after=after,
        )

    def section(self, ops: Iterable[KernelOp]) -> tuple[KernelOp, ...]:
        """Return what the ops of one section become, in order."""
        return tuple(new for op in ops for new in self.rewritten(op))

    def rewritten(self, op: KernelOp) -> Iterator[KernelOp]:
        """Yield what ``op`` becomes."""
        plan = self.plan
        result = op.results[0].name if op.results else ""
        if result in plan.forms:
            for form in sorted(plan.forms[result], key=lambda form: -1 if form is None else form):
                yield from self.whole(op) if form is None else self.split(op, {result: form})
        elif op.name in plan.chained:
            yield from self.chain(op)
        elif op.name in plan.split:
            yield from self.split(op, plan.axes)
        else:
            yield from self.whole(op)
            if result in plan.staged:
                yield from self.slices(op)

    def whole(self, op: KernelOp) -> Iterator[KernelOp]:
        """Yield the op as it is, with its register tiles held by the warps of one sub-tile."""
        results = tuple(replace(result, type=self.cut(result.type, None)) for result in op.results)
        yield self.recorded(op, None, replace(op, results=results, attributes=_attributes(op, results, 0, None)))

    def slices(self, op: KernelOp) -> Iterator[KernelOp]:
        """Yield the parts of an SMEM tile that a load fills whole."""
        value, size = op.results[0], self.plan.size
        axis = self.plan.axes[value.name]
        shape = tuple(size if place == axis else old for place, old in enumerate(value.type.shape))
        for part, name in enumerate(self.names.of(value.name, axis)):
            start = (part * size if place == axis else 0 for place in range(len(shape)))
            piece = KernelOp(
                name=name,
                opcode="ttg.memdesc_subslice",
                operands=(value.name,),
                results=(KernelValue(name=name, type=replace(value.type, shape=shape)),),
                attributes=(("offsets", f"array<i32: {', '.join(map(str, start))}>"),),
                source=op.source,
                subtile=self.mark(op, axis, part),
            )
            yield self.recorded(op, part, piece)

    def split(self, op: KernelOp, known: Mapping[str, int]) -> Iterator[KernelOp]:
        """Yield one op for each part."""
        names = (*(result.name for result in op.results), *op.operands)
        axes = tied_axes(op, self.plan.types, {name: known[name] for name in names if name in known})
        dimension = next((axes[name] for name in names if name in axes), 0)
        form = None if op.name in self.plan.tokens else dimension
        for part, name in enumerate(self.names.of(op.name, form)):
            operands = [self.operand(operand, axes, part) for operand in op.operands]
            yield from self.shifted(op, operands, dimension, part)
            results = tuple(
                KernelValue(
                    name=name if old.name == op.name else self.operand(old.name, axes, part),
                    type=self.cut(old.type, axes.get(old.name)),
                )
                for old in op.results
            )
            new = replace(
                op,
                name=name,
                operands=tuple(operands),
                results=results,
                attributes=_attributes(op, results, part, self.plan.size),
                subtile=self.mark(op, dimension, part),
            )
            yield self.recorded(op, part, new)

    def shifted(self, op: KernelOp, operands: list[str], dimension: int, part: int) -> Iterator[KernelOp]:
        """Yield the ops that move the coordinate of a TMA op to its part; puts it in ``operands``."""
        first = {**dict.fromkeys(TMA_STORES, 2), "tt.descriptor_load": 1}.get(op.opcode)
        if first is None or part == 0:
            return
        position = first + dimension
        kind = self.plan.types[op.operands[position]]
        start = self.constant(op, part, f"{part * self.plan.size} : {kind.dtype}", kind)
        yield start
        name = self.names.one(f"{op.name}_coordinate")
        coordinate = KernelOp(
            name=name,
            opcode="arith.addi",
            operands=(operands[position], start.name),
            results=(KernelValue(name=name, type=kind),),
            attributes=(("overflowFlags", "#arith.overflow<none>"),),
            source=op.source,
            subtile=self.mark(op, dimension, part),
        )
        operands[position] = name
        yield self.recorded(op, part, coordinate)

    def chain(self, op: KernelOp) -> Iterator[KernelOp]:
        """Yield one product for each part of the reduced dimension, each adding to the result of the one before."""
        axes = {name: self.plan.axes[name] for name in op.operands[:2]}
        previous: tuple[KernelValue, ...] = ()
        for part, name in enumerate(self.names.of(op.name, _REDUCED)):
            operands = [self.operand(operand, axes, part) for operand in op.operands]
            if part > 0:
                yield from self.accumulating(op, operands, previous, part)
            last = part == self.plan.parts - 1
            results = tuple(
                KernelValue(
                    name=old.name if last else self.names.of(old.name, _REDUCED)[part],
                    type=self.cut(old.type, None),
                )
                for old in op.results
            )
            previous = results
            new = replace(
                op,
                name=name,
                operands=tuple(operands),
                results=results,
                subtile=self.mark(op, _REDUCED, part),
            )
            yield self.recorded(op, part, new)

    def accumulating(
        self, op: KernelOp, operands: list[str], previous: tuple[KernelValue, ...], part: int
    ) -> Iterator[KernelOp]:
        """Make a product add to the one before: its accumulator or token, and its flag. Changes ``operands``."""
        for position, operand in enumerate(op.operands):
            kind = self.plan.types[operand]
            if position == 2 and kind.space == "registers":
                operands[position] = previous[0].name
            elif kind.space == "token" and previous:
                operands[position] = previous[-1].name
        flags = [at for at in range(3, len(operands)) if self.plan.types[op.operands[at]].dtype == "i1"]
        if flags:
            true = self.constant(op, part, "true", self.plan.types[op.operands[flags[0]]])
            operands[flags[0]] = true.name
            yield true

    def constant(self, op: KernelOp, part: int, text: str, kind: TileType) -> KernelOp:
        """Return a new scalar constant for one part of ``op``."""
        name = self.names.one(f"{op.name}_constant")
        new = KernelOp(
            name=name,
            opcode="arith.constant",
            results=(KernelValue(name=name, type=kind),),
            attributes=(("value", text),),
            source=op.source,
        )
        return self.recorded(op, part, new)

    def carried(self, old: Carried) -> Iterator[Carried]:
        """Yield the carried value, or one for each part."""
        argument = old.argument
        axis = self.plan.axes.get(argument.name)
        if axis is None and argument.name not in self.plan.tokens:
            yield replace(old, argument=replace(argument, type=self.cut(argument.type, None)))
            return
        axes = {} if axis is None else dict.fromkeys((old.initial, old.yielded, old.result, argument.name), axis)
        for part in range(self.plan.parts):
            yield Carried(
                argument=KernelValue(
                    name=self.operand(argument.name, axes, part), type=self.cut(argument.type, axis)
                ),
                initial=self.operand(old.initial, axes, part),
                yielded=self.operand(old.yielded, axes, part),
                result=self.operand(old.result, axes, part),
            )

    def operand(self, value: str, axes: Mapping[str, int], part: int) -> str:
        """Return the name of one part of ``value``, or of the value itself where it is not cut."""
        if value in self.plan.tokens:
            return self.names.of(value, None)[part]
        return self.names.of(value, axes[value])[part] if value in axes else value

    def cut(self, kind: TileType, axis: int | None) -> TileType:
        """Return the type of a part, or of a whole tile in the hands of fewer warps."""
        found, known = cut_type(kind, Cut(axis=axis, size=self.plan.size, warps=self.plan.warps))
        if not known:
            self.unknown[kind.layout] = None
        return found

    def mark(self, op: KernelOp, dimension: int, part: int) -> SubTile:
        """Return the record of which part of ``op`` a new op is."""
        return SubTile(dimension=dimension, index=part, count=self.plan.parts, origin=op.name)

    def recorded(self, op: KernelOp, part: int | None, new: KernelOp) -> KernelOp:
        """Note where ``new`` comes from, and return it."""
        self.origins[new.name] = (op.name, part)
        return new


def _surviving(plan: Plan) -> Iterator[str]:
    """Yield the names of the captured kernel that the sub-tiled one keeps."""
    kernel = plan.kernel
    yield from (value.name for value in (*kernel.arguments, kernel.loop.induction))
    for carried in kernel.loop.carried:
        yield from {carried.argument.name, carried.result} - plan.axes.keys() - plan.tokens
    for op in all_ops(kernel):
        results = [result.name for result in op.results]
        if op.name in plan.chained:
            yield from results
        elif op.name not in plan.split and all(None in plan.forms.get(name, (None,)) for name in results):
            yield from (op.name, *results)


def _attributes(
    op: KernelOp, results: tuple[KernelValue, ...], part: int, size: int | None
) -> tuple[tuple[str, str], ...]:
    """Return the attributes of part ``part`` of ``size`` elements (``None``: the whole) of an op."""
    if op.opcode == "arith.constant" and results[0].type.shape:
        return tuple((key, _constant(op, text, results[0].type)) for key, text in op.attributes)
    if op.opcode == "tt.make_range" and size is not None:
        start = integers(op.attribute("start") or "0")[0] + part * size
        bounds = {"start": f"{start} : i32", "end": f"{start + size} : i32"}
        return tuple((key, bounds.get(key, text)) for key, text in op.attributes)
    return op.attributes


def _constant(op: KernelOp, text: str, kind: TileType) -> str:
    match = _DENSE.fullmatch(text)
    if match is None:
        raise UnsupportedError(
            op.source or f"op {op.name}",
            "a constant tile with different elements cannot be cut into sub-tiles",
            "use --subtile none, or compute the tile",
        )
    shape = "".join(f"{size}x" for size in kind.shape)
    layout = f", {kind.layout}" if kind.layout else ""
    return f"dense<{match.group(1)}> : tensor<{shape}{kind.dtype}{layout}>"
