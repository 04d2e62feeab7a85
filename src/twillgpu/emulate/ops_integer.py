"""Integer arithmetic of MLIR's ``arith`` dialect. Integers have no sign of their own: the op says how it reads them.

Results wrap around. Division by zero, which MLIR leaves undefined, gives 0; i1 is 1 or, read as signed, -1.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from twillgpu.emulate.call import Call, Rule, Value
from twillgpu.emulate.numbers import Array, format_of, to_integer, unsigned

_COMPARISONS: tuple[Callable[[Array, Array], Array], ...] = (
    np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal,
    np.less, np.less_equal, np.greater, np.greater_equal,
)  # fmt: skip
"""By MLIR's number of the predicate: eq, ne, then slt sle sgt sge, then the same four unsigned."""


def signed(values: Array) -> Array:
    """Return the integers that the bits mean as signed numbers; a true i1 is -1."""
    return -values.astype(np.int8) if values.dtype == np.bool_ else values


def _signed(operation: Callable[[Array, Array], Array]) -> Rule:
    return lambda call: _carried(call, operation(signed(call.values[0]), signed(call.values[1])))


def _unsigned(operation: Callable[[Array, Array], Array]) -> Rule:
    return lambda call: _carried(call, operation(unsigned(call.values[0]), unsigned(call.values[1])))


def _carried(call: Call, values: Array) -> Value:
    """Return the low bits of ``values`` in the carrier of the result."""
    carrier = format_of(call.result.dtype).carrier
    if carrier == np.bool_:
        return (values & 1).astype(np.bool_)
    return values.astype(carrier)


def _quotient(a: Array, b: Array) -> Array:
    """Divide towards zero."""
    safe = np.where(b == 0, 1, b).astype(b.dtype)
    return np.where(b == 0, 0, (a - np.fmod(a, safe)) // safe).astype(a.dtype)


def _remainder(a: Array, b: Array) -> Array:
    return np.where(b == 0, 0, np.fmod(a, np.where(b == 0, 1, b).astype(b.dtype))).astype(a.dtype)


def _ceiling(a: Array, b: Array) -> Value:
    return np.add(a // b, a % b != 0, dtype=a.dtype)


def _compare(call: Call) -> Value:
    predicate = call.integer("predicate")
    if predicate >= len(_COMPARISONS):
        raise call.unsupported(f"there is no comparison {predicate}")
    read = unsigned if predicate >= 6 else signed
    return _COMPARISONS[predicate](read(call.values[0]), read(call.values[1]))


def _high_product(a: Array, b: Array) -> Array:
    """Return the upper half of the product of unsigned integers."""
    bits = 8 * a.dtype.itemsize
    if bits < 64:
        return (a.astype(np.uint64) * b.astype(np.uint64) >> np.uint64(bits)).astype(a.dtype)
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    a_high, a_low, b_high, b_low = a >> half, a & low, b >> half, b & low
    middle = a_high * b_low + (a_low * b_low >> half)
    other = a_low * b_high + (middle & low)
    return np.asarray(a_high * b_high + (middle >> half) + (other >> half))


def _high_product_signed(a: Array, b: Array) -> Array:
    high = _high_product(unsigned(a), unsigned(b))
    correction = np.where(a < 0, unsigned(b), 0) + np.where(b < 0, unsigned(a), 0)
    return np.asarray(high - correction.astype(high.dtype)).view(a.dtype)


def _extended_product(high: Callable[[Array, Array], Array], read: Callable[[Array], Array]) -> Rule:
    return lambda call: (
        _carried(call, call.values[0] * call.values[1]),
        _carried(call, high(read(call.values[0]), read(call.values[1]))),
    )


def _add_extended(call: Call) -> Value:
    a, b = (unsigned(value) for value in call.values)
    total = a + b
    return _carried(call, total), total < a


def _widen_signed(call: Call) -> Value:
    return _carried(call, signed(call.values[0]))


def _widen_unsigned(call: Call) -> Value:
    return _carried(call, unsigned(call.values[0]))


def _to_integer(*, is_signed: bool) -> Rule:
    return lambda call: to_integer(call.values[0], call.result.dtype, signed=is_signed)


INTEGER_RULES: dict[str, Rule] = {
    "arith.addi": _unsigned(np.add),
    "arith.subi": _unsigned(np.subtract),
    "arith.muli": _unsigned(np.multiply),
    "arith.divsi": _signed(_quotient),
    "arith.divui": _unsigned(_quotient),
    "arith.ceildivsi": _signed(_ceiling),
    "arith.ceildivui": _unsigned(_ceiling),
    "arith.floordivsi": _signed(np.floor_divide),
    "arith.remsi": _signed(_remainder),
    "arith.remui": _unsigned(_remainder),
    "arith.andi": _unsigned(np.bitwise_and),
    "arith.ori": _unsigned(np.bitwise_or),
    "arith.xori": _unsigned(np.bitwise_xor),
    "arith.shli": _unsigned(np.left_shift),
    "arith.shrsi": _signed(np.right_shift),
    "arith.shrui": _unsigned(np.right_shift),
    "arith.maxsi": _signed(np.maximum),
    "arith.maxui": _unsigned(np.maximum),
    "arith.minsi": _signed(np.minimum),
    "arith.minui": _unsigned(np.minimum),
    "arith.cmpi": _compare,
    "arith.extsi": _widen_signed,
    "arith.extui": _widen_unsigned,
    "arith.trunci": _widen_unsigned,
    "arith.index_cast": _widen_signed,
    "arith.index_castui": _widen_unsigned,
    "arith.fptosi": _to_integer(is_signed=True),
    "arith.fptoui": _to_integer(is_signed=False),
    "arith.sitofp": lambda call: call.rounded(signed(call.values[0])),
    "arith.uitofp": lambda call: call.rounded(unsigned(call.values[0])),
    "arith.mulsi_extended": _extended_product(_high_product_signed, signed),
    "arith.mului_extended": _extended_product(_high_product, unsigned),
    "arith.addui_extended": _add_extended,
    "tt.mulhiui": _unsigned(_high_product),
    "math.absi": lambda call: _carried(call, np.abs(signed(call.values[0]))),
    "math.ctpop": lambda call: _carried(call, _population(call.values[0])),
    "math.ctlz": lambda call: _carried(call, _leading_zeros(call.values[0])),
    "math.cttz": lambda call: _carried(call, _trailing_zeros(call.values[0])),
    "math.ipowi": lambda call: _carried(call, np.power(call.values[0], np.maximum(call.values[1], 0))),
}


def _bit_planes(values: Array) -> Value:
    """Return the bits of integers along a new last axis, lowest first."""
    bits = unsigned(np.asarray(values))
    shifts = np.arange(8 * bits.dtype.itemsize, dtype=bits.dtype)
    return np.bitwise_and(bits[..., np.newaxis] >> shifts, bits.dtype.type(1))


def _population(values: Array) -> Value:
    return np.sum(_bit_planes(values), axis=-1)


def _leading_zeros(values: Array) -> Value:
    planes = _bit_planes(values)[..., ::-1]
    return np.where(planes.any(-1), planes.argmax(-1), planes.shape[-1])


def _trailing_zeros(values: Array) -> Value:
    planes = _bit_planes(values)
    return np.where(planes.any(-1), planes.argmax(-1), planes.shape[-1])
