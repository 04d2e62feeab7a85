"""What a kernel hands to Gluon's functions."""

from __future__ import annotations

from typing import Any, TypeAlias

Given: TypeAlias = Any
"""A number, a ``constexpr``, a scalar or tile, a layout, a descriptor, or a sequence of such."""


def plain(value: Given) -> Given:
    """Return what a ``constexpr`` holds, anything else as it is."""
    return value.value if hasattr(value, "is_constexpr") else value


def numbers(values: Given) -> list[int]:
    """Return extents or an order as numbers."""
    return [int(plain(value)) for value in plain(values)]
