"""Layouts of register tiles for warp groups of another width than the kernel was compiled with."""

from __future__ import annotations

from math import prod

from twillgpu.frontend.layouts import Layout, Vector, parse_layout
from twillgpu.frontend.subtile_layout import on_warps


def fitted(text: str, warps: int) -> str:
    """Return a layout for a group of this many warps: itself where it is one, or is none of registers.

    More warps than a layout has share its slowest dimension, or hold copies where it is too short; of fewer each
    holds more.
    """
    found = parse_layout(text)
    if found is None:
        return text
    if found.name in ("slice", "dot_op"):
        return str(found.with_entry("parent", fitted(found.get("parent"), warps)))
    if found.name == "linear":
        return str(_linear(found, warps))
    if found.name == "nvidia_mma":
        return str(on_warps(found, warps))
    if found.name == "blocked":
        grid = _grid(found.numbers("warpsPerCTA"), found.numbers("order"), warps)
        return str(found.with_entry("warpsPerCTA", grid))
    return text


def _grid(sizes: Vector, order: Vector, warps: int) -> Vector:
    """Return the warps along each dimension; those of the slowest one change first."""
    grid = list(sizes)
    for dimension in reversed(order):
        while prod(grid) > warps and grid[dimension] > 1:
            grid[dimension] //= 2
    grid[order[-1]] *= max(1, warps // prod(grid))
    return tuple(grid)


def _linear(found: Layout, warps: int) -> Layout:
    register, warp = list(found.vectors("register")), list(found.vectors("warp"))
    some = next(iter((*register, *found.vectors("lane"), *warp)), ())
    wanted = warps.bit_length() - 1
    register += warp[wanted:]
    warp = warp[:wanted] + [tuple(0 for _ in some)] * (wanted - len(warp))
    return found.with_entry("register", tuple(register)).with_entry("warp", tuple(warp))
