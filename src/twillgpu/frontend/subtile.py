"""Sub-tiling: cutting the tile of a kernel into parts that are scheduled on their own.

Whole-tile ops are too coarse for ping-pong between two warp groups; the parts have the rows that one tensor core
instruction works on (64 for a warpgroup on Hopper, 128 on Blackwell). Ops whose values carry the dimension become
one op for each part, ops without it (the loads of K and V in attention) are shared, a product that reduces over the dimension
becomes a chain on one accumulator.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from twillgpu.errors import UnsupportedError
from twillgpu.frontend.check import all_ops, check_kernel
from twillgpu.frontend.kernel import Kernel, KernelOp
from twillgpu.frontend.subtile_dims import value_types
from twillgpu.frontend.subtile_plan import Choice, choose, plan
from twillgpu.frontend.subtile_rewrite import Origin, Rewriter

DEFAULT_ROWS = {"sm_90a": 64, "sm_100a": 128}
"""Rows of a sub-tile by target: those of the tensor core's instruction; other targets are not sub-tiled."""

_STEP = {"sm_90a": 64, "sm_100a": 64}


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

    ``None`` is the target's default, and leaves the kernel as it is, with a remark, where that cannot be done; 0 leaves it as
    it is. Raises ``UnsupportedError`` where the number asked for cannot be done.
    """
    if rows == 0:
        return _unchanged(kernel)
    wanted = DEFAULT_ROWS.get(kernel.target) if rows is None else rows
    if wanted is None:
        return _unchanged(kernel)
    types = value_types(kernel)
    choice = choose(kernel, types)
    reason = _reason(kernel, choice, wanted)
    if reason is not None and rows is not None:
        raise UnsupportedError(_where(kernel, choice), f"no sub-tiles of {wanted}: {reason}", "use --subtile none")
    if reason is not None:
        return _unchanged(kernel, f"not cut into sub-tiles: {reason}")
    if choice is None or choice.size <= wanted:
        return _unchanged(kernel)
    rewriter = Rewriter(plan(kernel, types, choice, choice.size // wanted))
    return _finished(kernel, rewriter, wanted)


def _finished(kernel: Kernel, rewriter: Rewriter, rows: int) -> SubTiling:
    cut = rewriter.kernel()
    remarks = tuple(f"layout of a sub-tile not known, kept as for the whole tile: {text}" for text in rewriter.unknown)
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


def _reason(kernel: Kernel, choice: Choice | None, rows: int) -> str | None:
    """Return why the kernel cannot be cut into sub-tiles of ``rows``, ``None`` where it can or need not be."""
    if choice is None:
        return "the loop has no matrix product whose rows could be cut"
    if rows < 0:
        return "the number of rows is negative"
    if choice.obstacle is not None:
        return choice.obstacle
    if choice.size % rows and choice.size > rows:
        return f"{choice.size} rows are not a multiple of {rows}"
    step = _STEP.get(kernel.target, 16)
    if rows % step and choice.size > rows:
        return f"the tensor core of {kernel.target} works on multiples of {step} rows"
    return None


def _where(kernel: Kernel, choice: Choice | None) -> str:
    """Return the source line of the product whose rows would be cut, or of the loop."""
    op: KernelOp | None = choice.op if choice is not None else None
    return (op.source if op is not None else kernel.loop.source) or f"kernel {kernel.name}"
