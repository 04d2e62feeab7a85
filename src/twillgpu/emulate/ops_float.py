"""Floating-point arithmetic: the ``arith`` and ``math`` dialects and Triton's own elementwise ops.

Each op computes in the carrier type and rounds once to the format of its result. For formats of at most half the
carrier's precision that is the correctly rounded result of + - * / and sqrt. Transcendental functions are numpy's;
the chip's approximations (``ex2.approx``, ``lg2.approx``, ``rsqrt.approx``) differ in the last bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from twillgpu.emulate.call import Call, Rule, Value
from twillgpu.emulate.numbers import Array, format_of, unsigned_type

_PREDICATES: tuple[Callable[[Array, Array], Array], ...] = (
    lambda a, b: np.zeros(np.broadcast(a, b).shape, np.bool_)[()],
    np.equal,
    np.greater,
    np.greater_equal,
    np.less,
    np.less_equal,
    lambda a, b: np.less(a, b) | np.greater(a, b),
    lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    lambda a, b: ~(np.less(a, b) | np.greater(a, b)),
    lambda a, b: ~np.less_equal(a, b),
    lambda a, b: ~np.less(a, b),
    lambda a, b: ~np.greater_equal(a, b),
    lambda a, b: ~np.greater(a, b),
    np.not_equal,
    lambda a, b: np.isnan(a) | np.isnan(b),
    lambda a, b: np.ones(np.broadcast(a, b).shape, np.bool_)[()],
)
"""By MLIR's number of the predicate: false, oeq ogt oge olt ole one, ord, ueq ugt uge ult ule une, uno, true."""

_erf = np.vectorize(math.erf, otypes=[np.float64])
_erfc = np.vectorize(math.erfc, otypes=[np.float64])


def _rounding(operation: Callable[..., Array]) -> Rule:
    return lambda call: call.rounded(operation(*call.values))


def _testing(test: Callable[[Array], Array]) -> Rule:
    return lambda call: test(call.values[0])


def _compare(call: Call) -> Value:
    predicate = call.integer("predicate")
    if predicate >= len(_PREDICATES):
        raise call.unsupported(f"there is no comparison {predicate}")
    return _PREDICATES[predicate](*call.values)


def _fused(a: Array, b: Array, c: Array) -> Array:
    """Multiply and add with one rounding for f32 and narrower (the product of two is exact in f64)."""
    return np.asarray(np.asarray(a, np.float64) * b + c)


def _clamp(call: Call) -> Value:
    x, low, high = call.values
    if call.integer("propagateNan", 0) != 0:
        return np.minimum(np.maximum(x, low), high)
    return np.fmin(np.fmax(x, low), high)


def _convert(call: Call) -> Value:
    """Convert between floats; rounding mode 0 is towards zero, 1 (the default) to nearest even."""
    x = call.values[0]
    nearest = call.rounded(x)
    if call.integer("rounding", 1) != 0:
        return nearest
    return _toward_zero(call, np.asarray(x), np.asarray(nearest))[()]


def _toward_zero(call: Call, exact: Array, nearest: Array) -> Array:
    """Step back by one unit in the last place where rounding to nearest went away from zero."""
    form = format_of(call.result.dtype)
    bits = form.encode(nearest)
    words = np.asarray(bits).view(unsigned_type(np.asarray(bits).dtype))
    over = np.abs(nearest.astype(np.float64)) > np.abs(exact.astype(np.float64))
    return np.asarray(form.decode(np.where(over, words - words.dtype.type(1), words).view(form.storage)))


def _bitcast(call: Call) -> Value:
    source, target = call.types[0], call.result
    if format_of(source.dtype).size_bytes != format_of(target.dtype).size_bytes:
        raise call.unsupported(f"{source.dtype} and {target.dtype} have different sizes")
    bits = np.asarray(format_of(source.dtype).encode(np.asarray(call.values[0])))
    return format_of(target.dtype).decode(bits.view(format_of(target.dtype).storage))[()]


_FUNCTIONS: dict[str, Callable[..., Array]] = {
    "absf": np.abs, "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh,
    "atan": np.arctan, "atan2": np.arctan2, "atanh": np.arctanh, "cbrt": np.cbrt, "ceil": np.ceil,
    "copysign": np.copysign, "cos": np.cos, "cosh": np.cosh, "erf": _erf, "erfc": _erfc, "exp": np.exp,
    "exp2": np.exp2, "expm1": np.expm1, "floor": np.floor, "fma": _fused, "fpowi": np.power, "log": np.log,
    "log10": np.log10, "log1p": np.log1p, "log2": np.log2, "powf": np.power,
    "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x), "roundeven": np.rint,
    "rsqrt": lambda x: 1 / np.sqrt(x), "sin": np.sin, "sinh": np.sinh, "sqrt": np.sqrt, "tan": np.tan,
    "tanh": np.tanh, "trunc": np.trunc,
}  # fmt: skip
_TESTS: dict[str, Callable[[Array], Array]] = {
    "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite,
}  # fmt: skip
_LIBDEVICE: dict[str, Callable[..., Array]] = {
    "fabs": np.abs, "pow": np.power, "fmod": np.fmod, "rint": np.rint, "nearbyint": np.rint, "hypot": np.hypot,
    "fmax": np.fmax, "fmin": np.fmin, "exp10": lambda x: np.power(x.dtype.type(10), x),
    "fast_exp": np.exp, "fast_log": np.log, "fast_log2": np.log2, "fast_log10": np.log10, "fast_pow": np.power,
    "fast_sin": np.sin, "fast_cos": np.cos, "fast_tan": np.tan, "fast_tanh": np.tanh, "fast_fdivide": np.divide,
    "fdiv_rn": np.divide, "fsqrt_rn": np.sqrt, "ddiv_rn": np.divide, "dsqrt_rn": np.sqrt,
    **{name: _FUNCTIONS[name] for name in _FUNCTIONS if name not in ("absf", "fpowi", "powf", "roundeven")},
}  # fmt: skip
"""Functions of CUDA's libdevice by name, without the ``__nv_`` before and the ``f`` after it."""


def _external(call: Call) -> Value:
    symbol = (call.op.attribute("symbol") or "").strip('"')
    name = symbol.removeprefix("__nv_")
    function = _LIBDEVICE.get(name) or _LIBDEVICE.get(name.removesuffix("f"))
    if function is None:
        raise call.unsupported(f"the external function {symbol} is not known")
    return call.rounded(function(*call.values))


def _select(call: Call) -> Value:
    condition, chosen, other = call.values
    return np.where(np.asarray(condition), np.asarray(chosen), np.asarray(other))[()]


FLOAT_RULES: dict[str, Rule] = {
    "arith.addf": _rounding(np.add),
    "arith.subf": _rounding(np.subtract),
    "arith.mulf": _rounding(np.multiply),
    "arith.divf": _rounding(np.divide),
    "arith.remf": _rounding(np.fmod),
    "arith.negf": _rounding(np.negative),
    "arith.maxnumf": _rounding(np.fmax),
    "arith.minnumf": _rounding(np.fmin),
    "arith.maximumf": _rounding(np.maximum),
    "arith.minimumf": _rounding(np.minimum),
    "arith.cmpf": _compare,
    "arith.extf": lambda call: call.rounded(call.values[0]),
    "arith.truncf": lambda call: call.rounded(call.values[0]),
    "arith.convertf": lambda call: call.rounded(call.values[0]),
    "arith.bitcast": _bitcast,
    "arith.select": _select,
    "tt.bitcast": _bitcast,
    "tt.fp_to_fp": _convert,
    "tt.clampf": _clamp,
    "tt.approx_divf": _rounding(np.divide),
    "tt.precise_divf": _rounding(np.divide),
    "tt.precise_sqrt": _rounding(np.sqrt),
    "tt.extern_elementwise": _external,
    "math.clampf": _rounding(lambda x, low, high: np.fmin(np.fmax(x, low), high)),
    **{f"math.{name}": _rounding(function) for name, function in _FUNCTIONS.items()},
    **{f"math.{name}": _testing(test) for name, test in _TESTS.items()},
}
