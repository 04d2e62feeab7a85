"""Tiles and scalars of a running Gluon kernel: values with an element type, and Python's operators on them.

Every operation is one op of the tile IR, evaluated as the reference evaluates it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from twillgpu.emulate.call import Context, Value
from twillgpu.emulate.gluon.dtypes import F32, I1, I32, I64, DType, common, with_number
from twillgpu.emulate.gluon.given import Given, plain
from twillgpu.emulate.gluon.layouts import UNKNOWN
from twillgpu.emulate.memory import GlobalMemory
from twillgpu.emulate.numbers import Array, format_of
from twillgpu.emulate.ops import evaluate
from twillgpu.errors import InputError
from twillgpu.frontend.kernel import KernelOp, KernelValue, TileType

Operand: TypeAlias = "Tile | float"
"""A tile, or a number of the source text, which takes the tile's type."""

_TESTS = {"==": (0, 1), "!=": (1, 13), "<": (2, 4), "<=": (3, 5), ">": (4, 2), ">=": (5, 3)}
"""Predicates of ``arith.cmpi`` and ``arith.cmpf``; those of unsigned integers with an order are 4 higher."""

_ORDERED = 2
_LARGEST_I32 = (1 << 31) - 1


class TypeOf:
    """The type of a tile: what it does not know itself its element type answers."""

    layout = UNKNOWN

    def __init__(self, tile: Tile) -> None:
        self.shape, self.element_ty, self.scalar = list(tile.shape), tile.dtype, tile.dtype

    def __getattr__(self, name: str) -> Given:
        return getattr(self.element_ty, name)

    def __str__(self) -> str:
        return str(self.element_ty)


class Tile:
    """A tile in registers, or a scalar (shape ``()``): values in the carrier of the element type."""

    __array_ufunc__ = None

    def __init__(self, values: Value, dtype: DType) -> None:
        self._values: Array = values
        self.dtype = dtype

    @property
    def values(self) -> Array:
        """The values; a result that is still in flight overrides this."""
        return self._values

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents in elements."""
        return np.shape(self._values)

    @property
    def type(self) -> TypeOf:
        """The type: that of the elements, with shape and layout."""
        return TypeOf(self)

    @property
    def numel(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def T(self) -> Tile:  # noqa: N802  # Triton's name
        """The transposed matrix."""
        return self.permute(1, 0)

    def to(self, dtype: DType, bitcast: bool = False, **_options: object) -> Tile:
        """Return the values converted, or their bits read as another type."""
        return cast(self, dtype, bitcast=bitcast)

    cast = to

    def permute(self, *order: Given) -> Tile:
        """Return the tile with dimension ``order[i]`` as dimension ``i``."""
        values = self.values.transpose(_flat(order))
        return Tile(values, self.dtype)

    trans = permute

    def reshape(self, *shape: Given) -> Tile:
        """Return the elements, in order, in another shape."""
        return Tile(self.values.reshape(_flat(shape)), self.dtype)

    def split(self) -> tuple[Tile, Tile]:
        """Return both halves of the last dimension, which has two elements."""
        return Tile(self.values[..., 0], self.dtype), Tile(self.values[..., 1], self.dtype)

    def expand_dims(self, axis: Given) -> Tile:
        """Return the tile with a further dimension of one element."""
        return Tile(np.expand_dims(self.values, int(axis)), self.dtype)

    def broadcast_to(self, *shape: Given) -> Tile:
        """Return the tile in a larger shape."""
        return Tile(np.broadcast_to(self.values, _flat(shape)), self.dtype)

    def __getitem__(self, index: Given) -> Tile:
        return Tile(self.values[index], self.dtype)

    def __add__(self, other: Operand) -> Tile:
        return add(self, other)

    def __radd__(self, other: Operand) -> Tile:
        return add(other, self)

    def __sub__(self, other: Operand) -> Tile:
        return binary("sub", self, other)

    def __rsub__(self, other: Operand) -> Tile:
        return binary("sub", other, self)

    def __mul__(self, other: Operand) -> Tile:
        return binary("mul", self, other)

    def __rmul__(self, other: Operand) -> Tile:
        return binary("mul", other, self)

    def __truediv__(self, other: Operand) -> Tile:
        return divide(self, other)

    def __rtruediv__(self, other: Operand) -> Tile:
        return divide(other, self)

    def __floordiv__(self, other: Operand) -> Tile:
        return binary("div", self, other)

    def __rfloordiv__(self, other: Operand) -> Tile:
        return binary("div", other, self)

    def __mod__(self, other: Operand) -> Tile:
        return binary("rem", self, other)

    def __rmod__(self, other: Operand) -> Tile:
        return binary("rem", other, self)

    def __and__(self, other: Operand) -> Tile:
        return binary("and", self, other)

    def __rand__(self, other: Operand) -> Tile:
        return binary("and", other, self)

    def __or__(self, other: Operand) -> Tile:
        return binary("or", self, other)

    def __ror__(self, other: Operand) -> Tile:
        return binary("or", other, self)

    def __xor__(self, other: Operand) -> Tile:
        return binary("xor", self, other)

    def __rxor__(self, other: Operand) -> Tile:
        return binary("xor", other, self)

    def __lshift__(self, other: Operand) -> Tile:
        return binary("shl", self, other)

    def __rlshift__(self, other: Operand) -> Tile:
        return binary("shl", other, self)

    def __rshift__(self, other: Operand) -> Tile:
        return binary("shr", self, other)

    def __rrshift__(self, other: Operand) -> Tile:
        return binary("shr", other, self)

    def __neg__(self) -> Tile:
        return binary("sub", 0, self) if not self.dtype.is_float else apply("arith.negf", [self], self.dtype)

    def __invert__(self) -> Tile:
        return binary("xor", self, True if self.dtype == I1 else -1)  # a bit, not an option

    def __eq__(self, other: object) -> Tile:  # type: ignore[override]
        return compare("==", self, other)  # type: ignore[arg-type]

    def __ne__(self, other: object) -> Tile:  # type: ignore[override]
        return compare("!=", self, other)  # type: ignore[arg-type]

    def __lt__(self, other: Operand) -> Tile:
        return compare("<", self, other)

    def __le__(self, other: Operand) -> Tile:
        return compare("<=", self, other)

    def __gt__(self, other: Operand) -> Tile:
        return compare(">", self, other)

    def __ge__(self, other: Operand) -> Tile:
        return compare(">=", self, other)

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        return bool(self._scalar())

    def __int__(self) -> int:
        return int(self._scalar())

    __index__ = __int__

    def __float__(self) -> float:
        return float(self._scalar())

    def __repr__(self) -> str:
        return f"Tile({self.dtype}, {list(self.shape)})"

    def _scalar(self) -> Value:
        if self.numel != 1:
            raise InputError(
                "the kernel", f"a tile of shape {list(self.shape)} decides what runs", "decide by a scalar"
            )
        return self.values.reshape(-1)[0] if self.shape else self.values


def scalar(number: float, dtype: DType | None = None) -> Tile:
    """Return a number as a scalar: by default an i1, i32 (i64 where it does not fit) or f32, as Triton passes it."""
    if dtype is None:
        small = -_LARGEST_I32 <= number <= _LARGEST_I32
        dtype = I1 if isinstance(number, bool) else F32 if isinstance(number, float) else I32 if small else I64
    return Tile(_number(number, dtype), dtype)


def tile_of(value: Operand, dtype: DType | None = None) -> Tile:
    """Return a tile as it is, or a number as a scalar."""
    return value if isinstance(value, Tile) else scalar(plain(value), dtype)


def apply(
    opcode: str,
    tiles: Sequence[Tile],
    dtype: DType,
    shape: Sequence[int] | None = None,
    attributes: Sequence[tuple[str, str]] = (),
    body: Sequence[str] = (),
) -> Tile:
    """Evaluate one op of the tile IR on tiles; ``shape`` is that of the result, by default what they broadcast to."""
    names = tuple(f"operand{at}" for at in range(len(tiles)))
    extents = np.broadcast_shapes(*(tile.shape for tile in tiles)) if shape is None else tuple(shape)
    kind = _type(dtype, tuple(extents))
    op = KernelOp(
        name=opcode,
        opcode=opcode,
        operands=names,
        results=(KernelValue(name="result", type=kind),),
        attributes=tuple(attributes),
        body=tuple(body),
    )
    types = {name: _type(tile.dtype, tile.shape) for name, tile in zip(names, tiles, strict=True)}
    context = Context(types=types, memory=GlobalMemory())
    return Tile(evaluate(op, [tile.values for tile in tiles], context)[0], dtype)


def add(one: Operand, two: Operand) -> Tile:
    """Return a sum; a pointer moves by whole elements."""
    for pointer, offset in ((one, two), (two, one)):
        if isinstance(pointer, Tile) and pointer.dtype.is_pointer:
            return apply("tt.addptr", [pointer, tile_of(offset)], pointer.dtype)
    return binary("add", one, two)


def binary(name: str, one: Operand, two: Operand) -> Tile:
    """Return an operation on two tiles in their common type; division of integers rounds towards zero."""
    division = name in ("div", "rem")
    kind = combined(one, two, division=division and _has_float(one, two))
    suffix = "f" if kind.is_float else "i"
    if not kind.is_float and name in ("div", "rem", "shr", "max", "min"):
        suffix = "ui" if kind.unsigned else "si"
    if name in ("and", "or", "xor", "shl"):
        suffix = "i"
    return apply(f"arith.{name}{suffix}", [cast(one, kind), cast(two, kind)], kind)


def divide(one: Operand, two: Operand) -> Tile:
    """Return a quotient of floats; integers become f32 first."""
    kind = combined(one, two, division=True)
    kind = kind if kind.is_float else F32
    return apply("arith.divf", [cast(one, kind), cast(two, kind)], kind)


def compare(sign: str, one: Operand, two: Operand) -> Tile:
    """Return a comparison as a tile of i1."""
    kind = combined(one, two)
    integer, floating = _TESTS[sign]
    if kind.is_float:
        opcode, predicate = "arith.cmpf", floating
    else:
        opcode, predicate = "arith.cmpi", integer + (4 if kind.unsigned and integer >= _ORDERED else 0)
    return apply(opcode, [cast(one, kind), cast(two, kind)], I1, attributes=[("predicate", f"{predicate} : i64")])


def combined(one: Operand, two: Operand, *, division: bool = False) -> DType:
    """Return the type in which two operands are combined; a ``constexpr`` counts as the number that it holds."""
    one, two = plain(one), plain(two)
    if isinstance(one, Tile) and isinstance(two, Tile):
        return common(one.dtype, two.dtype, division=division)
    if isinstance(one, Tile):
        return with_number(one.dtype, two, division=division)  # type: ignore[arg-type]
    if isinstance(two, Tile):
        return with_number(two.dtype, one, division=division)
    return common(tile_of(one).dtype, tile_of(two).dtype, division=division)


def cast(value: Operand, dtype: DType, *, bitcast: bool = False) -> Tile:
    """Return a value in another type."""
    value = plain(value)
    if not isinstance(value, Tile):
        return scalar(value, dtype)
    source = value.dtype
    if source.name == dtype.name:
        return value if source == dtype else Tile(value.values, dtype)
    if bitcast or dtype.is_pointer or source.is_pointer:
        return apply("tt.bitcast", [value], dtype)
    return apply(_conversion(source, dtype), [value], dtype)


def _conversion(source: DType, target: DType) -> str:
    if source.is_float and target.is_float:
        return "tt.fp_to_fp"
    if source.is_float:
        return "arith.fptoui" if target.unsigned else "arith.fptosi"
    plain = source.unsigned or source.name == "i1"
    if target.is_float:
        return "arith.uitofp" if plain else "arith.sitofp"
    if target.size_bytes < source.size_bytes or target.name == "i1":
        return "arith.trunci"
    return "arith.extui" if plain else "arith.extsi"


def _number(number: float, dtype: DType) -> Value:
    form = format_of(dtype.name)
    if form.is_float:
        with np.errstate(all="ignore"):
            value = np.asarray(number, np.float32 if form.carrier != np.float64 else np.float64)
            return (form.narrow(value) if form.narrow else value.astype(form.carrier))[()]
    return np.asarray(int(number) & ((1 << 64) - 1), np.uint64).astype(form.carrier)[()]


def _type(dtype: DType, shape: tuple[int, ...]) -> TileType:
    return TileType(space="registers" if shape else "scalar", shape=shape, dtype=dtype.name)


def _has_float(one: Operand, two: Operand) -> bool:
    return any(tile_of(value).dtype.is_float for value in (one, two))


def _flat(numbers: tuple[Given, ...]) -> tuple[int, ...]:
    given = numbers[0] if len(numbers) == 1 and isinstance(numbers[0], list | tuple) else numbers
    return tuple(int(number) for number in given)
