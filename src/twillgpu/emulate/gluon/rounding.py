"""Whether two results differ by no more than the order of additions can make them differ.

A sum that the emitted source cuts (by columns of TMEM) is rounded elsewhere than the reference's, which may move an
intermediate value to the next one of its type. Bound: a few units of roundoff of the coarsest type in the kernel,
relative to the element and to the root mean square of all elements. A fault of order, a copy too old or too new, is
larger by orders of magnitude; ``tests/emulate/test_gluon_mutants.py`` has them.
"""

from __future__ import annotations

import numpy as np

from twillgpu.emulate.numbers import Array
from twillgpu.frontend.kernel import Kernel
from twillgpu.frontend.subtile_dims import value_types

ROUNDOFF = {
    "f64": 2.0**-53,
    "f32": 2.0**-24,
    "f16": 2.0**-11,
    "bf16": 2.0**-8,
    "f8E4M3FN": 2.0**-4,
    "f8E5M2": 2.0**-3,
}
"""Largest relative error of one rounding to nearest, by type."""

_UNITS = 4
"""Roundings that may fall otherwise on the way to one element."""


def roundoff(kernel: Kernel) -> float:
    """Return the unit of roundoff of the coarsest float among a kernel's values."""
    types = {kind.dtype for kind in value_types(kernel).values()}
    return max((unit for name, unit in ROUNDOFF.items() if name in types), default=ROUNDOFF["f32"])


def is_rounding(wanted: Array, found: Array, unit: float) -> bool:
    """Return whether all elements are equal, or as near as roundings bring them; integers have to be equal."""
    if not np.issubdtype(wanted.dtype, np.floating):
        return bool(np.array_equal(wanted, found))
    one, two = wanted.astype(np.float64), found.astype(np.float64)
    finite = np.isfinite(one)
    if not np.array_equal(one[~finite], two[~finite], equal_nan=True) or not finite.any():
        return bool(not finite.any() and np.array_equal(one, two, equal_nan=True))
    size = np.sqrt(np.mean(one[finite] ** 2))
    with np.errstate(invalid="ignore"):
        near = np.abs(two[finite] - one[finite]) <= _UNITS * unit * (np.abs(one[finite]) + size)
    return bool(near.all())
