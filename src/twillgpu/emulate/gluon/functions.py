"""Gluon's functions on tiles that touch no memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from twillgpu.emulate.gluon.dtypes import F32, I32
from twillgpu.emulate.gluon.given import Given, numbers, plain
from twillgpu.emulate.gluon.tile import Operand, Tile, apply, binary, cast, combined, divide, tile_of
from twillgpu.emulate.numbers import format_of
from twillgpu.errors import InputError, UnsupportedError

MOVE = "mov.b32 $0, $1;"
"""The assembly that is known: a copy that the compiler cannot see through."""


def full(shape: Given, value: Given, dtype: Given, layout: Given = None) -> Tile:  # noqa: ARG001  # part of Gluon's signature
    """Return a tile that is full of one value."""
    kind, extents = plain(dtype), tuple(numbers(shape))
    element = cast(plain(value), kind)
    return Tile(np.full(extents, element.values, format_of(kind.name).carrier), kind)


def zeros(shape: Given, dtype: Given, layout: Given = None) -> Tile:
    """Return a tile of zeros."""
    return full(shape, 0, dtype, layout)


def full_like(tile: Tile, value: Given, **options: Given) -> Tile:
    """Return a tile of the same shape, full of one value."""
    return full(options.get("shape") or tile.shape, value, options.get("dtype") or tile.dtype)


def zeros_like(tile: Tile, **options: Given) -> Tile:
    """Return a tile of the same shape, full of zeros."""
    return full_like(tile, 0, **options)


def arange(start: Given, end: Given, layout: Given = None) -> Tile:  # noqa: ARG001  # part of Gluon's signature
    """Return the integers from ``start`` to ``end - 1``."""
    return Tile(np.arange(int(plain(start)), int(plain(end)), dtype=np.int32), I32)


def convert_layout(value: Tile, layout: Given = None, assert_trivial: Given = False) -> Tile:  # noqa: ARG001  # part of Gluon's signature
    """Return the tile: a layout says which thread holds what."""
    return value


def to_tensor(value: Given) -> Tile:
    """Return a value as a scalar or tile."""
    return tile_of(plain(value))


def expand_dims(value: Tile, axis: Given) -> Tile:
    """Return the tile with a further dimension of one element."""
    return Tile(np.expand_dims(value.values, int(plain(axis))), value.dtype)


def broadcast(one: Tile, two: Given) -> Given:
    """Return a tile in a larger shape, or two tiles in their common shape."""
    if not isinstance(two, Tile):
        return Tile(np.broadcast_to(one.values, tuple(numbers(two))), one.dtype)
    shape = np.broadcast_shapes(one.shape, two.shape)
    return tuple(Tile(np.broadcast_to(tile.values, shape), tile.dtype) for tile in (one, two))


def join(one: Tile, two: Tile) -> Tile:
    """Return two tiles as the last dimension of one."""
    return Tile(np.stack([one.values, two.values], axis=-1), one.dtype)


def where(condition: Given, one: Operand, two: Operand) -> Tile:
    """Return elements of one tile where a condition holds, of another elsewhere."""
    kind = combined(one, two)
    return apply("arith.select", [tile_of(condition), cast(one, kind), cast(two, kind)], kind)


def inline_asm(asm: Given, _constraints: Given, args: Given, **_options: Given) -> Given:
    """Return what a move moves. Raises ``UnsupportedError`` for any other assembly."""
    if " ".join(str(plain(asm)).split()) != MOVE:
        raise UnsupportedError("the kernel", f"inline assembly {str(plain(asm))!r}", "run it on a GPU")
    return plain(args)[0]


def maximum(one: Operand, two: Operand, propagate_nan: Given = None) -> Given:
    """Return the larger of each pair; a number stands against a NaN."""
    return _extreme("max", one, two, propagate_nan)


def minimum(one: Operand, two: Operand, propagate_nan: Given = None) -> Given:
    """Return the smaller of each pair; a number stands against a NaN."""
    return _extreme("min", one, two, propagate_nan)


def clamp(value: Tile, low: Operand, high: Operand, propagate_nan: Given = None) -> Tile:
    """Return the value moved into a range."""
    found: Tile = minimum(maximum(value, low, propagate_nan), high, propagate_nan)
    return found


def cdiv(one: Given, two: Given) -> Given:
    """Return a quotient rounded up; of constants, a constant."""
    left, right = plain(one), plain(two)
    if isinstance(left, int) and isinstance(right, int):
        return -(-left // right)
    return (left + (right - 1)) // right


def dot_fma(a: Tile, b: Tile, acc: Tile) -> Tile:
    """Return ``a b + acc`` in f32."""
    product = np.matmul(np.ascontiguousarray(a.values, np.float32), np.ascontiguousarray(b.values, np.float32))
    return cast(Tile(product, F32), acc.dtype) + acc


def map_elementwise(function: Given, *tiles: Tile, pack: Given = 1) -> Given:
    """Return what a function of the kernel makes of the elements, at all places at once: it may not branch."""
    if int(plain(pack)) != 1:
        raise UnsupportedError("the kernel", "map_elementwise with several elements at a time", "leave out pack")
    shape = np.broadcast_shapes(*(tile.shape for tile in tiles))
    return function(*(Tile(np.broadcast_to(tile.values, shape), tile.dtype) for tile in tiles))


def reduce(value: Given, axis: Given, combine_fn: Given, keep_dims: Given = False) -> Given:
    """Return a tile, or several together, folded along an axis by a function of the kernel."""
    if isinstance(value, tuple):
        return _reduce_together(value, int(plain(axis)), combine_fn, keep_dims)
    at, combine = int(plain(axis)), combine_fn
    parts = [Tile(part, value.dtype) for part in np.moveaxis(value.values, at, 0)]
    while len(parts) > 1:
        pairs = [combine(one, two) for one, two in zip(parts[::2], parts[1::2], strict=False)]
        parts = pairs + parts[2 * len(pairs) :]
    return expand_dims(parts[0], at) if plain(keep_dims) else parts[0]


def _reduce_together(tiles: tuple[Tile, ...], at: int, combine: Given, keep_dims: Given) -> tuple[Tile, ...]:
    """Fold several tiles at once: the function sees an element of each, and those of its other side."""
    rows = [np.moveaxis(tile.values, at, -1).reshape(-1, tile.shape[at]) for tile in tiles]
    shape = np.delete(tiles[0].shape, at)
    found = [_folded([list(lane) for lane in lanes], tiles, combine) for lanes in zip(*rows, strict=True)]
    results = tuple(
        Tile(np.array(values, tile.values.dtype).reshape(shape), tile.dtype)
        for values, tile in zip(zip(*found, strict=True), tiles, strict=True)
    )
    return tuple(expand_dims(one, at) for one in results) if plain(keep_dims) else results


def _folded(lanes: list[list[Given]], tiles: tuple[Tile, ...], combine: Given) -> list[Given]:
    """Return the value that one row of each tile is folded to, in a tree of neighbours."""
    parts = [
        tuple(Tile(value, tile.dtype) for value, tile in zip(values, tiles, strict=True))
        for values in zip(*lanes, strict=True)
    ]
    while len(parts) > 1:
        pairs = [tuple(combine(*one, *two)) for one, two in zip(parts[::2], parts[1::2], strict=False)]
        parts = pairs + parts[2 * len(pairs) :]
    return [tile.values for tile in parts[0]]


def total(value: Tile, axis: Given = None, keep_dims: Given = False, dtype: Given = None) -> Tile:
    """Return a sum; 8- and 16-bit integers, and i1, are summed as i32."""
    wanted = plain(dtype)
    if wanted is None and not value.dtype.is_float and value.dtype.size_bytes < I32.size_bytes:
        wanted = I32
    return _fold("add", value if wanted is None else cast(value, wanted), axis, keep_dims)


def largest(
    value: Tile, axis: Given = None, return_indices: Given = False, keep_dims: Given = False, **_options: object
) -> Tile:  # as given
    """Return the largest elements; 16-bit floats are compared as f32."""
    _no_indices(return_indices)
    return _fold("max", value, axis, keep_dims)


def smallest(
    value: Tile, axis: Given = None, return_indices: Given = False, keep_dims: Given = False, **_options: object
) -> Tile:  # as given
    """Return the smallest elements."""
    _no_indices(return_indices)
    return _fold("min", value, axis, keep_dims)


def xor_sum(value: Tile, axis: Given = None, keep_dims: Given = False) -> Tile:
    """Return the bits that are set in an odd number of elements."""
    return _fold("xor", value, axis, keep_dims)


def fma(one: Operand, two: Operand, three: Operand) -> Tile:
    """Return ``one * two + three``, rounded once."""
    tiles = [tile_of(value) for value in (one, two, three)]
    return apply("math.fma", tiles, tiles[0].dtype)


def _fused(*operands: Given) -> Tile:
    """Return ``one * two + three`` in the type of the tiles among them, rounded once."""
    kind = next(value.dtype for value in operands if isinstance(value, Tile) and value.shape)
    return fma(*(cast(value, kind) for value in operands))


def _typed(value: Tile, dtype: Given) -> Tile:
    return value if plain(dtype) is None else cast(value, plain(dtype))


def absolute(value: Tile) -> Tile:
    """Return the absolute values."""
    return apply("math.absf" if value.dtype.is_float else "math.absi", [value], value.dtype)


def umulhi(one: Operand, two: Operand) -> Tile:
    """Return the upper half of a product of unsigned integers."""
    kind = combined(one, two)
    return apply("tt.mulhiui", [cast(one, kind), cast(two, kind)], kind)


def check(condition: Given, message: Given = "", **_options: object) -> None:
    """``static_assert`` and ``device_assert``."""
    if not np.all(tile_of(plain(condition)).values):
        raise InputError(
            "the kernel", f"an assertion fails: {plain(message) or 'it says no more'}", "check the inputs"
        )


def same(value: Given, *_given: object, **_options: object) -> Given:
    """Return what is given: a hint to the compiler."""
    return value


def nothing(*_given: object, **_options: object) -> None:
    """Do nothing."""


def unary(name: str) -> Callable[[Operand], Tile]:
    """Return a function of the ``math`` dialect."""

    def function(value: Operand) -> Tile:
        tile = tile_of(value)
        return apply(name, [tile], tile.dtype)

    return function


def _extreme(name: str, one: Operand, two: Operand, propagate_nan: Given) -> Given:
    left, right = plain(one), plain(two)
    if not isinstance(left, Tile) and not isinstance(right, Tile):
        return max(left, right) if name == "max" else min(left, right)
    kind = combined(left, right)
    if not kind.is_float:
        return binary(name, left, right)
    moved = str(plain(propagate_nan)).endswith("ALL")
    opcode = f"arith.{name}imumf" if moved else f"arith.{name}numf"
    return apply(opcode, [cast(left, kind), cast(right, kind)], kind)


def _fold(name: str, value: Tile, axis: Given, keep_dims: Given) -> Tile:
    at = None if plain(axis) is None else int(plain(axis)) % len(value.shape)
    tile = value.reshape([value.numel]) if at is None else value
    at = at or 0
    kind = tile.dtype
    suffix = ("f" if name == "add" else "numf") if kind.is_float else "i" if name in ("add", "xor") else "si"
    shape = (*tile.shape[:at], *tile.shape[at + 1 :])
    found = apply("tt.reduce", [tile], kind, shape, [("axis", f"{at} : i32")], [f"arith.{name}{suffix}"])
    return expand_dims(found, at) if plain(keep_dims) else found


def _no_indices(wanted: Given) -> None:
    if plain(wanted):
        raise UnsupportedError("the kernel", "indices of extremes", "compute them by comparisons")


PACKED: Mapping[str, Callable[..., Given]] = MappingProxyType(
    {
        "add2": lambda one, two, dtype=None: _typed(one + two, dtype),
        "sub2": lambda one, two, dtype=None: _typed(one - two, dtype),
        "mul2": lambda one, two, dtype=None: _typed(one * two, dtype),
        "fma2": lambda one, two, three, dtype=None: _typed(_fused(one, two, three), dtype),
        "max2": lambda one, two, dtype=None: _typed(maximum(one, two), dtype),
        "min2": lambda one, two, dtype=None: _typed(minimum(one, two), dtype),
    }
)
"""Blackwell's arithmetic on pairs of neighbours: on each element it is what its name says."""

FUNCTIONS: Mapping[str, Callable[..., Given]] = MappingProxyType(
    {
        "full": full, "zeros": zeros, "full_like": full_like, "zeros_like": zeros_like, "arange": arange,
        "convert_layout": convert_layout, "set_auto_layout": convert_layout, "to_tensor": to_tensor,
        "inline_asm_elementwise": inline_asm,
        "expand_dims": expand_dims, "broadcast": broadcast, "join": join, "where": where, "maximum": maximum,
        "minimum": minimum, "clamp": clamp, "cdiv": cdiv, "dot_fma": dot_fma, "reduce": reduce,
        "map_elementwise": map_elementwise, "sum": total,
        "max": largest, "min": smallest, "xor_sum": xor_sum, "fma": fma, "abs": absolute, "umulhi": umulhi,
        "fdiv": divide, "div_rn": divide, "add": lambda one, two, **_: one + two,
        "sub": lambda one, two, **_: one - two,
        "mul": lambda one, two, **_: one * two, "static_assert": check, "device_assert": check,
        "static_print": nothing, "device_print": nothing, "assume": nothing, "multiple_of": same,
        "max_contiguous": same, "max_constancy": same, "permute": lambda tile, *order: tile.permute(*order),
        "reshape": lambda tile, *shape: tile.reshape(*shape), "split": lambda tile: tile.split(),
        "ravel": lambda tile: tile.reshape([tile.numel]),
        "cast": lambda tile, dtype, bitcast=False, **_: cast(tile, dtype, bitcast=bitcast),
        **{name: unary(f"math.{name}") for name in (
            "exp", "exp2", "log", "log2", "cos", "sin", "sqrt", "rsqrt", "erf", "floor", "ceil",
        )},
        "sqrt_rn": unary("tt.precise_sqrt"),
    }
)  # fmt: skip
"""By Gluon's names."""
