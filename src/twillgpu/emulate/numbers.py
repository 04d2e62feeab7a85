"""Element types on numpy: what a value in a register is, what its bits in memory are, and how results are rounded.

A value is held in a numpy array of the ``carrier`` type of its format: itself for f16, f32, f64 and integers, f32 for
the narrower formats that numpy lacks (bf16, tf32, the 8- and 4-bit floats), each element then being exactly a value
of the format. In memory it has the bits of its format (``storage``), so that memory can be read under another type.

Rounding is to nearest, ties to even (IEEE 754-2019, 4.3.1), as the conversions of the PTX ISA (``cvt.rn``) do; 8-bit
and 4-bit formats saturate at their largest finite value (``cvt.rn.satfinite``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]

POISON_BYTE = 0xFF
"""Fills memory that nobody wrote: a NaN in every floating-point format that has one, -1 in every integer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """An element type.

    Attributes:
        name: MLIR's name (``f16``, ``bf16``, ``f8E4M3FN``, ``i32``).
        carrier: numpy type of values in registers.
        storage: numpy type of values in memory; its size is that of the element in bytes (one byte for an i1 and for
            a lone 4-bit float).
        encode: carrier values, already rounded, to storage.
        decode: storage to carrier values.
        narrow: rounds carrier-typed or wider floats to the format, in the carrier type; ``None`` where the carrier is
            the format.
    """

    name: str
    carrier: np.dtype[Any]
    storage: np.dtype[Any]
    encode: Callable[[Array], Array]
    decode: Callable[[Array], Array]
    narrow: Callable[[Array], Array] | None = None

    @property
    def is_float(self) -> bool:
        """Whether values are floating-point numbers."""
        return bool(np.issubdtype(self.carrier, np.floating))

    @property
    def size_bytes(self) -> int:
        """Bytes of one element in memory."""
        return int(self.storage.itemsize)


def format_of(dtype: str) -> Format:
    """Return the format that a ``TileType.dtype`` names; pointers are 64-bit byte addresses.

    Raises ``KeyError`` for a type that has no numbers.
    """
    return FORMATS["i64" if dtype.startswith("ptr") or dtype == "index" else dtype]


def rounded(values: Array, dtype: str) -> Array:
    """Return ``values`` rounded to the format ``dtype``, in its carrier type."""
    target = format_of(dtype)
    if target.narrow is not None:
        return target.narrow(values)
    return np.asarray(values, target.carrier)[()]


def poison(shape: tuple[int, ...], dtype: str) -> Array:
    """Return storage of ``shape`` elements that nobody has written."""
    storage = format_of(dtype).storage
    size = int(np.prod(shape, dtype=np.int64)) * storage.itemsize
    return np.full(size, POISON_BYTE, np.uint8).view(storage).reshape(shape)


def to_integer(values: Array, dtype: str, *, signed: bool) -> Array:
    """Return floats converted to integers: towards zero, out of range to the nearest integer of the type, NaN to 0
    (the PTX ISA's ``cvt.rzi``).
    """
    carrier = format_of(dtype).carrier
    if carrier == np.bool_:
        return np.not_equal(values, 0)
    target = carrier if signed else unsigned_type(carrier)
    limits = np.iinfo(target)
    wide = np.trunc(np.nan_to_num(np.asarray(values, np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf))
    high = np.nextafter(float(limits.max), 0.0) if target.itemsize == 8 else float(limits.max)
    exact = np.clip(wide, float(limits.min), high).astype(target)
    full = np.where(wide > high, limits.max, exact).astype(target)
    return full.view(carrier)[()]


def unsigned_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the unsigned integer type of the same size."""
    return np.dtype(f"u{dtype.itemsize}")


def unsigned(values: Array) -> Array:
    """Return the same bits as unsigned integers; an i1 is 0 or 1."""
    if values.dtype == np.bool_:
        return values.astype(np.uint8)
    return values.view(unsigned_type(values.dtype))


def truncated_tf32(values: Array) -> Array:
    """Return f32 values as a tensor core reads them for a tf32 product: the low 13 bits of the word are not used
    (PTX ISA, ``mma`` and ``wgmma`` on ``.tf32``).
    """
    bits = np.asarray(values, np.float32).view(np.uint32) & np.uint32(0xFFFFE000)
    return bits.view(np.float32)[()]


def _round_word(values: Array, dropped_bits: int) -> Array:
    """Round f32 to a format that is its upper ``32 - dropped_bits`` bits; NaN stays NaN."""
    words = np.asarray(values, np.float32)
    bits = words.view(np.uint32).astype(np.uint64)
    half = np.uint64((1 << (dropped_bits - 1)) - 1)
    odd = (bits >> np.uint64(dropped_bits)) & np.uint64(1)
    kept = ((bits + half + odd) >> np.uint64(dropped_bits)) << np.uint64(dropped_bits)
    found = (kept & np.uint64(0xFFFFFFFF)).astype(np.uint32).view(np.float32)
    return np.where(np.isnan(words), np.float32(np.nan), found)[()]


def _round_bf16(values: Array) -> Array:
    return _round_word(values, 16)


def _round_tf32(values: Array) -> Array:
    return _round_word(values, 13)


def _encode_bf16(values: Array) -> Array:
    return (np.asarray(values, np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)


def _decode_bf16(bits: Array) -> Array:
    return (np.asarray(bits, np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Small:
    """A float of at most 8 bits: exponent and mantissa bits, exponent bias, how many of the highest codes of positive
    sign are not finite numbers, whether the code of minus zero is the NaN instead (the ``UZ`` formats).
    """

    exponent_bits: int
    mantissa_bits: int
    bias: int
    special_codes: int
    minus_zero_is_nan: bool = False

    @property
    def sign(self) -> int:
        return 1 << (self.exponent_bits + self.mantissa_bits)

    def magnitudes(self) -> Array:
        """Return the finite values of positive sign, by code."""
        codes = np.arange(self.sign - self.special_codes)
        exponent, mantissa = codes >> self.mantissa_bits, codes & ((1 << self.mantissa_bits) - 1)
        hidden = np.where(exponent > 0, 1 << self.mantissa_bits, 0)
        scale = np.maximum(exponent, 1) - self.bias - self.mantissa_bits
        return np.asarray(np.ldexp((hidden + mantissa).astype(np.float64), scale))

    def table(self) -> Array:
        """Return the value of every code, as f32."""
        positive = np.full(self.sign, np.nan)
        finite = self.magnitudes()
        positive[: len(finite)] = finite
        if self.special_codes > 1:
            positive[len(finite)] = np.inf
        both = np.concatenate([positive, -positive])
        if self.minus_zero_is_nan:
            both[self.sign] = np.nan
        return both.astype(np.float32)

    def encode(self, values: Array) -> Array:
        """Return the code of the nearest finite value: ties to the even code, NaN to the highest code or the ``UZ``
        one.
        """
        wide = np.asarray(values, np.float64)
        magnitude, finite = np.abs(np.nan_to_num(wide, nan=0.0)), self.magnitudes()
        middles = (finite[:-1] + finite[1:]) / 2
        codes = np.searchsorted(middles, magnitude, side="left")
        tie = np.append(middles, np.inf)[codes] == magnitude
        codes = codes + (tie & (codes % 2 == 1) & np.isfinite(magnitude))
        negative = np.signbit(wide) & ~((codes == 0) & self.minus_zero_is_nan)
        codes = np.where(negative, codes + self.sign, codes)
        nan = self.sign if self.minus_zero_is_nan else self.sign - 1
        return np.where(np.isnan(wide), nan, codes).astype(np.uint8)


_SMALL = {
    "f8E4M3FN": _Small(exponent_bits=4, mantissa_bits=3, bias=7, special_codes=1),
    "f8E5M2": _Small(exponent_bits=5, mantissa_bits=2, bias=15, special_codes=4),
    "f8E4M3FNUZ": _Small(exponent_bits=4, mantissa_bits=3, bias=8, special_codes=0, minus_zero_is_nan=True),
    "f8E4M3B11FNUZ": _Small(exponent_bits=4, mantissa_bits=3, bias=11, special_codes=0, minus_zero_is_nan=True),
    "f8E5M2FNUZ": _Small(exponent_bits=5, mantissa_bits=2, bias=16, special_codes=0, minus_zero_is_nan=True),
    "f6E2M3FN": _Small(exponent_bits=2, mantissa_bits=3, bias=1, special_codes=0),
    "f6E3M2FN": _Small(exponent_bits=3, mantissa_bits=2, bias=3, special_codes=0),
    "f4E2M1FN": _Small(exponent_bits=2, mantissa_bits=1, bias=1, special_codes=0),
}
"""Sources: 8-bit Floating Point Specification 1.0 and Microscaling Formats 1.0 of the Open Compute Project; LLVM's
APFloat for the UZ formats.
"""


def _small_format(name: str, small: _Small) -> Format:
    table = small.table()
    return Format(
        name=name,
        carrier=np.dtype(np.float32),
        storage=np.dtype(np.uint8),
        encode=small.encode,
        decode=lambda bits: table[np.asarray(bits, np.uint8) & (len(table) - 1)],
        narrow=lambda values: table[small.encode(values)],
    )


def _native(name: str, carrier: type[np.generic]) -> Format:
    return Format(
        name=name,
        carrier=np.dtype(carrier),
        storage=np.dtype(carrier),
        encode=lambda values: np.asarray(values, carrier),
        decode=lambda bits: bits,
    )


FORMATS = {
    **{name: _native(name, carrier) for name, carrier in (
        ("f64", np.float64), ("f32", np.float32), ("f16", np.float16), ("i64", np.int64), ("i32", np.int32),
        ("i16", np.int16), ("i8", np.int8),
    )},
    "i1": Format(
        name="i1",
        carrier=np.dtype(np.bool_),
        storage=np.dtype(np.uint8),
        encode=lambda values: np.asarray(values, np.uint8),
        decode=lambda bits: np.asarray(bits) != 0,
    ),
    "bf16": Format(
        name="bf16",
        carrier=np.dtype(np.float32),
        storage=np.dtype(np.uint16),
        encode=_encode_bf16,
        decode=_decode_bf16,
        narrow=_round_bf16,
    ),
    "tf32": Format(
        name="tf32",
        carrier=np.dtype(np.float32),
        storage=np.dtype(np.float32),
        encode=lambda values: np.asarray(values, np.float32),
        decode=lambda bits: bits,
        narrow=_round_tf32,
    ),
    **{name: _small_format(name, small) for name, small in _SMALL.items()},
}  # fmt: skip
"""Every element type by MLIR's name."""
