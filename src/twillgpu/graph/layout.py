"""Which thread holds which element of a register tile, from the text of Triton's layout attributes.

A layout is linear over bits: every bit of the register, lane and warp index adds a fixed vector to the coordinates of
the element ("Linear Layouts: Robust Code Generation of Efficient Tensor Computation Using F2", arXiv 2505.23819).
Fragments of the tensor core are those of the PTX ISA (mma.m16n8k16 and wgmma).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from twillgpu.frontend.kernel import TileType
from twillgpu.frontend.layouts import Layout, Vector, parse_layout


@dataclass(frozen=True, slots=True, kw_only=True)
class Owners:
    """The vector that each bit of the register, lane and warp index adds to an element's coordinates; a zero
    vector where that bit holds a copy of the same element.
    """

    register: tuple[Vector, ...]
    lane: tuple[Vector, ...]
    warp: tuple[Vector, ...]


def same_owners(first: TileType, second: TileType) -> bool:
    """Return whether every thread holds the same elements of both tiles, so that converting costs nothing.

    ``False`` also where a layout is not known.
    """
    if first.shape != second.shape:
        return False
    if first.layout == second.layout:
        return True
    one, two = owners(first), owners(second)
    if one is None or two is None:
        return False
    same_threads = one.lane == two.lane and one.warp == two.warp
    return same_threads and _spanned(one.register) == _spanned(two.register)


def elements_per_thread(kind: TileType) -> int | None:
    """Return how many elements of a register tile each thread holds, copies included; ``None`` for a layout that
    is not known.
    """
    found = owners(kind)
    return None if found is None else 2 ** len(_spanned(found.register))


def owners(kind: TileType) -> Owners | None:
    """Return who holds the elements of a register tile, ``None`` for a layout that is not known."""
    if kind.space != "registers" or not all(size > 0 and size & (size - 1) == 0 for size in kind.shape):
        return None
    return _owners(kind.layout, kind.shape)


def _owners(text: str, shape: Vector) -> Owners | None:
    layout = parse_layout(text)
    rule = _RULES.get(layout.name) if layout is not None else None
    return rule(layout, shape) if rule is not None and layout is not None else None


class _Tiling:
    """Fills a shape with bits, innermost first; a bit beyond the shape holds a copy (a zero vector)."""

    def __init__(self, shape: Vector) -> None:
        self.shape = shape
        self.filled = [1] * len(shape)

    def bits(self, dimension: int, count: int) -> tuple[Vector, ...]:
        """Return the vectors of the next bits along ``dimension`` that together cover ``count`` positions."""
        found = []
        for bit in range(count.bit_length() - 1):
            stride = self.filled[dimension] << bit
            inside = stride < self.shape[dimension]
            found.append(tuple(stride if axis == dimension and inside else 0 for axis in range(len(self.shape))))
        self.filled[dimension] *= count
        return tuple(found)

    def grid(self, sizes: Sequence[int], order: Sequence[int]) -> tuple[Vector, ...]:
        """Return the bits of a grid of ``sizes``, the first dimension of ``order`` fastest."""
        return tuple(vector for dimension in order for vector in self.bits(dimension, sizes[dimension]))

    def rest(self, order: Sequence[int]) -> tuple[Vector, ...]:
        """Return the bits that repeat the layout over the rest of the shape."""
        return self.grid(
            [max(size // filled, 1) for size, filled in zip(self.shape, self.filled, strict=True)], order
        )


def _blocked(layout: Layout, shape: Vector) -> Owners:
    tiling, order = _Tiling(shape), layout.numbers("order")
    inner = tiling.grid(layout.numbers("sizePerThread"), order)
    lane = tiling.grid(layout.numbers("threadsPerWarp"), order)
    warp = tiling.grid(layout.numbers("warpsPerCTA"), order)
    return Owners(register=(*inner, *tiling.rest(order)), lane=lane, warp=warp)


def _linear(layout: Layout, shape: Vector) -> Owners | None:
    register, lane, warp = (layout.vectors(part) for part in ("register", "lane", "warp"))
    for vector in (*register, *lane, *warp):
        if len(vector) != len(shape) or any(at >= size > 1 for at, size in zip(vector, shape, strict=True)):
            return None
    return Owners(register=register, lane=lane, warp=warp)


def _slice(layout: Layout, shape: Vector) -> Owners | None:
    dimension = layout.number("dim")
    parent = _owners(layout.get("parent"), (*shape[:dimension], 1, *shape[dimension:]))
    if parent is None:
        return None

    def cut(bases: tuple[Vector, ...]) -> tuple[Vector, ...]:
        return tuple((*vector[:dimension], *vector[dimension + 1 :]) for vector in bases)

    return Owners(register=cut(parent.register), lane=cut(parent.lane), warp=cut(parent.warp))


def _mma(layout: Layout, shape: Vector) -> Owners | None:
    """An accumulator: 16 rows by 8 columns a warp, a pair of columns a lane, rows r and r + 8."""
    if len(shape) != 2:
        return None
    tiling, warps = _Tiling(shape), layout.numbers("warpsPerCTA")
    hopper = layout.number("versionMajor") == 3
    columns = layout.numbers("instrShape")[1]
    pair = tiling.bits(1, 2)
    lane = (*tiling.bits(1, 4), *tiling.bits(0, 8))
    rows = tiling.bits(0, 2)
    wide = tiling.bits(1, max(columns // 8, 1))
    warp = tiling.grid(warps, (0, 1) if hopper else (1, 0))
    return Owners(register=(*pair, *rows, *wide, *tiling.rest((1, 0))), lane=lane, warp=warp)


def _dot_operand(layout: Layout, shape: Vector) -> Owners | None:
    """An operand: ``kWidth`` neighbours along K a lane, four lanes along K; warps of the other side hold copies."""
    parent = parse_layout(layout.get("parent"))
    if parent is None or parent.name != "nvidia_mma" or len(shape) != 2 or not layout.get("kWidth"):
        return None
    side = layout.number("opIdx")
    along, across = (1, 0) if side == 0 else (0, 1)
    tiling = _Tiling(shape)
    neighbours = tiling.bits(along, layout.number("kWidth"))
    lane = (*tiling.bits(along, 4), *tiling.bits(across, 8))
    rows = tiling.bits(across, 2) if side == 0 else ()
    deeper = tiling.bits(along, 2)
    order = (0, 1) if parent.number("versionMajor") == 3 else (1, 0)
    warp = _operand_warps(tiling, parent.numbers("warpsPerCTA"), side=side, order=order)
    return Owners(register=(*neighbours, *rows, *deeper, *tiling.rest((along, across))), lane=lane, warp=warp)


def _operand_warps(tiling: _Tiling, warps: Vector, *, side: int, order: tuple[int, int]) -> tuple[Vector, ...]:
    zero = (0, 0)
    found: list[Vector] = []
    for dimension in order:
        if dimension == side:
            found += tiling.bits(side, warps[side])
        else:
            found += [zero] * (warps[dimension].bit_length() - 1)
    return tuple(found)


def _spanned(bases: tuple[Vector, ...]) -> frozenset[Vector]:
    """Return the vectors that are not zero: which elements a thread holds, whatever their order."""
    return frozenset(vector for vector in bases if any(vector))


_RULES: dict[str, Callable[[Layout, Vector], Owners | None]] = {
    "blocked": _blocked,
    "linear": _linear,
    "slice": _slice,
    "nvidia_mma": _mma,
    "dot_op": _dot_operand,
}
