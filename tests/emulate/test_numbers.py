"""Formats: rounding to nearest even, bits and back, conversions to integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from twillgpu.emulate.numbers import (
    FORMATS,
    format_of,
    poison,
    rounded,
    to_integer,
    truncated_tf32,
    unsigned,
)

SMALL = [name for name in FORMATS if "E" in name]
RANDOM = np.random.default_rng(11)


@pytest.mark.parametrize("name", SMALL)
def test_every_code_of_a_small_format_survives(name: str) -> None:
    form = FORMATS[name]
    bits = 4 if name.startswith("f4") else 6 if name.startswith("f6") else 8
    codes = np.arange(1 << bits, dtype=np.uint8)
    values = form.decode(codes)
    again = form.encode(values)
    numbers = np.isfinite(values)
    assert np.array_equal(again[numbers], codes[numbers])
    assert np.isnan(form.decode(again[np.isnan(values)])).all()


@pytest.mark.parametrize("name", SMALL)
def test_rounding_takes_the_nearest_and_the_even_of_two(name: str) -> None:
    form = FORMATS[name]
    finite = np.unique(form.decode(np.arange(256, dtype=np.uint8)))
    finite = finite[np.isfinite(finite)].astype(np.float64)
    points = np.concatenate([RANDOM.uniform(finite[0], finite[-1], 500), (finite[1:] + finite[:-1]) / 2, finite])
    found = rounded(points, name).astype(np.float64)
    distance = np.abs(points[:, None] - finite[None, :])
    assert np.array_equal(np.abs(points - found), distance.min(1))
    ties = (finite[1:] + finite[:-1]) / 2
    assert not (form.encode(rounded(ties, name)) % 2).any()


def test_known_values_of_the_8_bit_floats() -> None:
    # Open Compute Project, 8-bit floating point specification 1.0, table 1.
    def e4m3(*codes: int) -> Any:
        return FORMATS["f8E4M3FN"].decode(np.array(codes, np.uint8)).tolist()

    def e5m2(*codes: int) -> Any:
        return FORMATS["f8E5M2"].decode(np.array(codes, np.uint8)).tolist()

    assert e4m3(0x7E, 0x08, 0x07, 0x01, 0xFE) == [448, 2**-6, 0.875 * 2**-6, 2**-9, -448]
    assert e5m2(0x7B, 0x04, 0x01, 0x7C) == [57344, 2**-14, 2**-16, np.inf]
    assert np.isnan(e4m3(0x7F, 0xFF)).all()
    assert np.isnan(e5m2(0x7D, 0x7E, 0x7F)).all()
    assert FORMATS["f8E4M3FNUZ"].decode(np.array([0x7F])).tolist() == [240]
    assert FORMATS["f8E5M2FNUZ"].decode(np.array([0x7F])).tolist() == [57344]
    assert FORMATS["f8E4M3B11FNUZ"].decode(np.array([0x7F])).tolist() == [30]
    assert list(FORMATS["f4E2M1FN"].decode(np.arange(8))) == [0, 0.5, 1, 1.5, 2, 3, 4, 6]


def test_8_bit_floats_saturate() -> None:
    large = np.array([1e6, -1e6, np.inf, -np.inf, 464.0, 465.0])
    assert list(rounded(large, "f8E4M3FN")) == [448, -448, 448, -448, 448, 448]
    assert list(rounded(large[:2], "f8E5M2")) == [57344, -57344]


def test_bf16_and_tf32_are_the_upper_bits_rounded_to_even() -> None:
    words = RANDOM.integers(0, 1 << 32, 5000, dtype=np.uint64).astype(np.uint32)
    values = words.view(np.float32)
    values = values[np.isfinite(values)]
    for name, bits in (("bf16", 8), ("tf32", 11)):
        found = rounded(values, name).astype(np.float64)
        wide = values.astype(np.float64)
        exponent = np.maximum(np.frexp(wide)[1], -125)
        unit = np.ldexp(1.0, exponent - bits)
        expected = np.rint(wide / unit) * unit
        normal = np.abs(expected) < np.finfo(np.float32).max
        assert np.array_equal(found[normal], expected[normal])
    assert np.isinf(rounded(np.array([3.4e38], np.float32), "bf16")).all(), "rounds up to infinity"
    assert np.isnan(rounded(np.array([np.nan], np.float32), "bf16")).all()
    form = FORMATS["bf16"]
    kept = rounded(values, "bf16")
    assert np.array_equal(form.decode(form.encode(kept)), kept)


def test_a_product_in_tf32_drops_the_low_bits() -> None:
    x = np.array([1 + 2**-10 + 2**-11, 1 + 2**-11], np.float32)
    assert list(truncated_tf32(x)) == [1 + 2**-10, 1.0]
    assert list(rounded(x, "tf32")) == [1 + 2**-9, 1.0]


def test_floats_become_integers_towards_zero_and_saturate() -> None:
    x = np.array([1.9, -1.9, 3e9, -3e9, np.nan, np.inf, -np.inf], np.float32)
    assert list(to_integer(x, "i32", signed=True)) == [1, -1, 2**31 - 1, -(2**31), 0, 2**31 - 1, -(2**31)]
    assert list(unsigned(to_integer(x, "i8", signed=False))) == [1, 0, 255, 0, 0, 255, 0]
    assert list(to_integer(np.array([1e30, -1e30]), "i64", signed=True)) == [2**63 - 1, -(2**63)]


@pytest.mark.parametrize("name", [*FORMATS, "ptr<f16>", "index"])
def test_poison_is_no_number_where_the_format_has_one_that_is_none(name: str) -> None:
    form = format_of(name)
    found = form.decode(poison((2, 3), name))
    assert found.shape == (2, 3)
    if form.is_float and not name.endswith("UZ") and not name.startswith(("f4", "f6E")):
        assert np.isnan(found).all()
    if name in ("i8", "i16", "i32", "i64", "index"):
        assert (found == -1).all()
