"""Ops with a function as their body: reductions, scans, elementwise functions.

A combine function that is one op on its two arguments is known by its opcode alone; any other comes as a ``Region``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from twillgpu.emulate.call import Call, Context, Value
from twillgpu.emulate.numbers import Array
from twillgpu.frontend.kernel import KernelOp, Region, TileType

Evaluate: TypeAlias = Callable[[KernelOp, Sequence[Value], Context], tuple[Value, ...]]
"""``ops.evaluate``, handed in because bodies contain ops."""

Combine: TypeAlias = Callable[[Sequence[Array], Sequence[Array]], tuple[Array, ...]]

_UFUNCS: dict[str, np.ufunc] = {
    "arith.addf": np.add, "arith.mulf": np.multiply, "arith.maxnumf": np.fmax, "arith.minnumf": np.fmin,
    "arith.maximumf": np.maximum, "arith.minimumf": np.minimum, "arith.addi": np.add, "arith.muli": np.multiply,
    "arith.andi": np.bitwise_and, "arith.ori": np.bitwise_or, "arith.xori": np.bitwise_xor,
    "arith.maxsi": np.maximum, "arith.minsi": np.minimum,
}  # fmt: skip
_WIDE = ("f32", "f64", "i32", "i64", "i16", "i8")
"""Types that numpy reduces in themselves; others are combined pair by pair, each result rounded."""


def run_region(region: Region, values: Sequence[Value], context: Context, evaluate: Evaluate) -> tuple[Value, ...]:
    """Return what ``region`` yields for the values of its arguments."""
    known = {argument.name: value for argument, value in zip(region.arguments, values, strict=True)}
    types = {argument.name: argument.type for argument in region.arguments}
    types |= {result.name: result.type for op in region.ops for result in op.results}
    inner = replace(context, types=types)
    for op in region.ops:
        found = evaluate(op, [known[name] for name in op.operands], inner)
        known |= {result.name: value for result, value in zip(op.results, found, strict=True)}
    return tuple(known[name] for name in region.yielded)


def _combine(call: Call, evaluate: Evaluate) -> Combine:
    """Return the combine function, which works on tiles element by element."""
    op = call.op
    if op.regions:
        region = op.regions[0]
        captured = tuple(call.values[place] for place in region.captures)
        return lambda a, b: run_region(region, (*a, *b, *captured), call.context, evaluate)
    if len(op.body) != 1 or len(call.values) != 1:
        raise call.unsupported("its combine function is not recorded")
    kind = TileType(space="scalar", dtype=call.types[0].dtype)
    types = {"a": kind, "b": kind}
    result = replace(call.op.results[0], name="c", type=kind)
    one = KernelOp(name=op.name, opcode=op.body[0], operands=("a", "b"), results=(result,), source=op.source)
    inner = replace(call.context, types=types)
    return lambda a, b: evaluate(one, (a[0], b[0]), inner)


def reduce_tile(call: Call, evaluate: Evaluate) -> Value:
    """``tt.reduce``: fold along ``axis``, neighbours first, so that any associative function is in order."""
    axis = call.integer("axis")
    sources = [np.ascontiguousarray(value) for value in call.values[: len(call.results)]]
    ufunc = _UFUNCS.get(call.op.body[0]) if len(call.op.body) == 1 and not call.op.regions else None
    if ufunc is not None and call.types[0].dtype in _WIDE:
        return ufunc.reduce(sources[0], axis=axis, dtype=sources[0].dtype)
    combine = _combine(call, evaluate)
    tiles = [np.moveaxis(source, axis, 0) for source in sources]
    while len(tiles[0]) > 1:
        pairs = len(tiles[0]) // 2
        joined = combine([tile[: 2 * pairs : 2] for tile in tiles], [tile[1 : 2 * pairs : 2] for tile in tiles])
        tiles = [np.concatenate([new, tile[2 * pairs :]]) for new, tile in zip(joined, tiles, strict=True)]
    found = tuple(tile[0] for tile in tiles)
    return found if len(found) > 1 else found[0]


def scan_tile(call: Call, evaluate: Evaluate) -> Value:
    """``tt.scan``: running combination along ``axis``, from the end where ``reverse`` is set."""
    axis, backwards = call.integer("axis"), call.integer("reverse", 0) == 1
    combine = _combine(call, evaluate)
    tiles = [np.moveaxis(value, axis, 0) for value in call.values[: len(call.results)]]
    if backwards:
        tiles = [tile[::-1] for tile in tiles]
    steps = [tuple(tile[0] for tile in tiles)]
    for at in range(1, len(tiles[0])):
        steps.append(combine(steps[-1], [tile[at] for tile in tiles]))
    found = tuple(np.stack(parts) for parts in zip(*steps, strict=True))
    ordered = tuple(np.moveaxis(part[::-1] if backwards else part, 0, axis) for part in found)
    return ordered if len(ordered) > 1 else ordered[0]


def map_elements(call: Call, evaluate: Evaluate) -> Value:
    """``tt.map_elementwise``: a function of ``pack`` neighbours at a time in the last dimension."""
    if not call.op.regions:
        raise call.unsupported("its function is not recorded")
    pack, region = call.integer("pack", 1), call.op.regions[0]
    count = (len(region.arguments) - len(region.captures)) // pack
    arguments = [value.reshape(-1, pack)[:, part] for value in call.values[:count] for part in range(pack)]
    captured = (call.values[place] for place in region.captures)
    found = run_region(region, (*arguments, *captured), call.context, evaluate)
    shape = call.result.shape
    groups = [found[at : at + pack] for at in range(0, len(found), pack)]
    tiles = tuple(np.stack(group, axis=-1).reshape(shape) for group in groups)
    return tiles if len(tiles) > 1 else tiles[0]


REGION_RULES: dict[str, Callable[[Call, Evaluate], Value]] = {
    "tt.reduce": reduce_tile,
    "tt.scan": scan_tile,
    "tt.map_elementwise": map_elements,
}
