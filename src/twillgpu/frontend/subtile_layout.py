"""The layout of a part of a tile, held by fewer warps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod

from twillgpu.frontend.kernel import TileType
from twillgpu.frontend.layouts import Layout, Vector, parse_layout

_WGMMA = 3
"""Version of the tensor core's layout on Hopper."""

_MOST_COLUMNS = 256
"""Columns of a wgmma instruction at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """What happens to a tile: ``axis`` (``None``: the tile stays whole) is cut to ``size`` elements, and ``warps``
    warps hold the tile.
    """

    axis: int | None
    size: int
    warps: int

    def along(self, axis: int | None) -> Cut:
        """Return the same cut of a tile in which the dimension has another place."""
        return replace(self, axis=axis)


def cut_type(kind: TileType, cut: Cut) -> tuple[TileType, bool]:
    """Return the type of a part, and whether its layout is known; where it is not, the text stays the parent's."""
    if cut.axis is None and kind.space != "registers":
        return kind, True
    shape = list(kind.shape)
    if cut.axis is not None:
        shape[cut.axis] = cut.size
    layout = cut_layout(kind.layout, cut)
    return replace(kind, shape=tuple(shape), layout=kind.layout if layout is None else layout), layout is not None


def cut_layout(text: str, cut: Cut) -> str | None:
    """Return the text of the layout of a part, ``None`` where it is not known how to write it."""
    if not text:
        return text
    layout = parse_layout(text)
    rule = _RULES.get(layout.name) if layout is not None else None
    changed = rule(layout, cut) if rule is not None and layout is not None else None
    return None if changed is None else str(changed)


def _blocked(layout: Layout, cut: Cut) -> Layout:
    warps = list(layout.numbers("warpsPerCTA"))
    while prod(warps) > cut.warps:
        preferred = cut.axis if cut.axis is not None and warps[cut.axis] > 1 else warps.index(max(warps))
        warps[preferred] //= 2
    return layout.with_entry("warpsPerCTA", tuple(warps))


def _mma(layout: Layout, cut: Cut) -> Layout:
    layout = on_warps(layout, min(cut.warps, prod(layout.numbers("warpsPerCTA"))))
    shape = list(layout.numbers("instrShape"))
    if cut.axis == 1 and len(shape) > 1:
        shape[1] = min(shape[1], cut.size)
    return layout.with_entry("instrShape", tuple(shape))


def on_warps(layout: Layout, warps: int) -> Layout:
    """Return the layout of a product on other warps.

    Rows go to warpgroups first: of two warps along columns and four along rows the rows stay. Where fewer warps share
    the columns, a wgmma has more of these: Triton cuts the columns among the warps and makes instructions as wide as
    what is left, up to 256; narrower ones would read the rows' operand more often.
    """
    rows, whole = layout.numbers("warpsPerCTA")
    columns = whole
    while rows * columns > warps:
        rows, columns = (rows, columns // 2) if columns > 1 else (rows // 2, columns)
    rows *= max(1, warps // (rows * columns))
    shape = list(layout.numbers("instrShape"))
    if layout.number("versionMajor") == _WGMMA and columns < whole:
        shape[1] = min(_MOST_COLUMNS, shape[1] * whole // columns)
    return layout.with_entry("warpsPerCTA", (rows, columns)).with_entry("instrShape", tuple(shape))


def _slice(layout: Layout, cut: Cut) -> Layout | None:
    dimension = layout.number("dim")
    axis = cut.axis if cut.axis is None or cut.axis < dimension else cut.axis + 1
    return _with_parent(layout, cut.along(axis))


def _dot_operand(layout: Layout, cut: Cut) -> Layout | None:
    """The dimension of the operand that is not reduced is that of the result with the same place."""
    side = layout.number("opIdx")
    return _with_parent(layout, cut.along(cut.axis if cut.axis == side else None))


def _with_parent(layout: Layout, cut: Cut) -> Layout | None:
    parent = cut_layout(layout.get("parent"), cut)
    return None if parent is None else layout.with_entry("parent", parent)


def _linear(layout: Layout, cut: Cut) -> Layout | None:
    """Drop the vectors beyond the part; warps too many become registers. Lanes cannot be dropped."""
    register, lane, warp = (layout.vectors(part) for part in ("register", "lane", "warp"))
    if cut.axis is not None:
        if any(vector[cut.axis] >= cut.size for vector in lane):
            return None
        register, warp = _inside(register, cut), _inside(warp, cut)
    wanted = cut.warps.bit_length() - 1
    if len(warp) < wanted:
        return None
    return layout.with_entry("register", register + warp[wanted:]).with_entry("warp", warp[:wanted])


def _inside(bases: tuple[Vector, ...], cut: Cut) -> tuple[Vector, ...]:
    return tuple(vector for vector in bases if cut.axis is None or vector[cut.axis] < cut.size)


def _nvmma_shared(layout: Layout, cut: Cut) -> Layout:
    """The swizzle is at most as wide as a row of the part."""
    inner = 0 if layout.get("transposed") == "true" else -1
    if cut.axis is None or (cut.axis == 0) != (inner == 0):
        return layout
    width = cut.size * layout.number("elementBitWidth") // 8
    return layout.with_entry("swizzlingByteWidth", min(layout.number("swizzlingByteWidth"), width))


def _tensor_memory(layout: Layout, cut: Cut) -> Layout:
    if cut.axis is None:
        return layout
    key = "blockM" if cut.axis == 0 else "blockN"
    return layout.with_entry(key, min(layout.number(key), cut.size))


def _unchanged(layout: Layout, _cut: Cut) -> Layout:
    return layout


_RULES: dict[str, Callable[[Layout, Cut], Layout | None]] = {
    "blocked": _blocked,
    "nvidia_mma": _mma,
    "slice": _slice,
    "dot_op": _dot_operand,
    "linear": _linear,
    "nvmma_shared": _nvmma_shared,
    "swizzled_shared": _unchanged,
    "tensor_memory_encoding": _tensor_memory,
}
