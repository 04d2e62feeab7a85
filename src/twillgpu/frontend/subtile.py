"""Sub-tiling: cutting the tile of a kernel into parts that are scheduled on their own.

Whole-tile ops are too coarse for ping-pong between two warp groups; the parts have the rows that one tensor core
instruction works on (64 for a warpgroup on Hopper, 128 on Blackwell). Ops whose values carry the dimension become
one op for each part, ops without it (the loads of K and V in attention) are shared, a product that reduces over the
dimension becomes a chain on one accumulator.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from twillgpu.errors import UnsupportedError
from twillgpu.frontend.check import all_ops, check_kernel
from twillgpu.frontend.kernel import Kernel
from twillgpu.frontend.subtile_dims import value_types
from twillgpu.frontend.subtile_plan import Choice, choose, plan
from twillgpu.frontend.subtile_rewrite import Origin, Rewriter

DEFAULT_ROWS = {"sm_90a": 64, "sm_100a": 128}
"""Rows of a sub-tile by target: those of the tensor core's instruction; other targets are not sub-tiled."""

ROW_STEP = 64
"""Rows that a group of four warps can work on: wgmma and tcgen05.mma have 64 or 128, four warps of mma 16 each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubTiling:
    """A sub-tiled kernel and the way back.

    Attributes:
        kernel: the new kernel; its ``num_warps`` are those that hold one sub-tile.
        rows: elements of a sub-tile along the dimension that is cut, 0 where nothing is.
        parts: number of sub-tiles, 1 where nothing is cut.
        captured_warps: warps that held the whole tile.
        origins: for every op of ``kernel``, in order: its name, the op of the captured kernel that it comes from, and
            which part of it it is (``None``: all of it).
        remarks: what the user should know: why nothing was cut, layouts that stay those of the whole tile.
    """

    kernel: Kernel
    rows: int
    parts: int
    captured_warps: int
    origins: tuple[tuple[str, str, int | None], ...]
    remarks: tuple[str, ...] = ()

    def origin(self, name: str) -> Origin:
        """Return the captured op and the part that op ``name`` stands for."""
        return next((op, part) for new, op, part in self.origins if new == name)


def subtile(kernel: Kernel, rows: int | None = None) -> SubTiling:
    """Cut ``kernel`` into sub-tiles of ``rows`` elements along the rows of its accumulator.

    ``None`` is the target's default, and leaves the kernel as it is, with a remark, where that cannot be done. 0
    leaves it as it is, and so does a loop without matrix product, with a remark. Raises ``UnsupportedError`` where
    the number asked for cannot be done.
    """
    wanted = DEFAULT_ROWS.get(kernel.target, 0) if rows is None else rows
    if wanted == 0:
        return _unchanged(kernel)
    types = value_types(kernel)
    choice = choose(kernel, types)
    if choice is None:
        return _unchanged(kernel, "not cut into sub-tiles: the loop has no matrix product whose rows could be cut")
    reason = _reason(choice, wanted)
    if reason is not None and rows is not None:
        where = choice.op.source or f"kernel {kernel.name}"
        raise UnsupportedError(where, f"no sub-tiles of {wanted} rows: {reason}", "choose others, or --subtile none")
    if reason is not None:
        return _unchanged(kernel, f"not cut into sub-tiles of {wanted} rows: {reason}")
    if choice.size <= wanted:
        return _unchanged(kernel)
    return _finished(kernel, Rewriter(plan(kernel, types, choice, choice.size // wanted)), wanted)


def _finished(kernel: Kernel, rewriter: Rewriter, rows: int) -> SubTiling:
    cut = rewriter.kernel()
    remarks = tuple(
        f"layout of a sub-tile not known, kept as for the whole tile: {text}" for text in rewriter.unknown
    )
    cut = replace(cut, remarks=(*kernel.remarks, *remarks))
    check_kernel(cut, where=f"sub-tiles of {kernel.name}")
    return SubTiling(
        kernel=cut,
        rows=rows,
        parts=rewriter.plan.parts,
        captured_warps=kernel.num_warps,
        origins=tuple((op.name, *rewriter.origins[op.name]) for op in all_ops(cut)),
        remarks=remarks,
    )


def _unchanged(kernel: Kernel, *remarks: str) -> SubTiling:
    return SubTiling(
        kernel=replace(kernel, remarks=(*kernel.remarks, *remarks)) if remarks else kernel,
        rows=0,
        parts=1,
        captured_warps=kernel.num_warps,
        origins=tuple((op.name, op.name, None) for op in all_ops(kernel)),
        remarks=remarks,
    )


def _reason(choice: Choice, rows: int) -> str | None:
    """Return why sub-tiles of ``rows`` cannot be had, ``None`` where they can or where the tile is no larger."""
    if rows < 0 or rows % ROW_STEP:
        return f"four warps work on multiples of {ROW_STEP} rows"
    if choice.obstacle is not None:
        return choice.obstacle
    if choice.size > rows and choice.size % rows:
        return f"the tile has {choice.size} rows, which is not a multiple"
    return None
