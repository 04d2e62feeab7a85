"""Operands A of wgmma that are transposed register tiles: through SMEM instead of through a change of layout.

Triton converts such a tile to operand A in registers. On the way its elements pass through SMEM anyway, in scratch
memory that no schedule knows of, and the fragments take registers until the product is done. wgmma reads a transposed
operand A of 16-bit elements from SMEM itself, as FlashAttention-3 has it for dQ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from twillgpu.frontend.kernel import Kernel, KernelOp, KernelValue, TileType

_ORDER = "array<i32: 1, 0>"
_SWIZZLES = (128, 64, 32)
"""Bytes of a row that the swizzles of SMEM tiles cover."""


def operands_in_memory(kernel: Kernel) -> Kernel:
    """Return the kernel with every transposed operand A of its loop stored to SMEM and read from there."""
    body = kernel.loop.body
    read = Counter(operand for op in body for operand in op.operands)
    read.update(carried.yielded for carried in kernel.loop.carried)
    read.update(operand for op in kernel.after for operand in op.operands)
    makers = {result.name: op for op in body for result in op.results}
    types = {value.name: value.type for op in (*kernel.before, *body) for value in op.results}
    taken = {op.name for op in (*kernel.before, *body, *kernel.after)} | set(types)
    replaced: dict[str, tuple[KernelOp, ...]] = {}
    for op in body:
        convert = makers.get(op.operands[0]) if op.opcode == "ttng.warp_group_dot" else None
        trans = makers.get(convert.operands[0]) if convert is not None and _changes_layout(convert) else None
        if convert is None or trans is None or trans.opcode != "tt.trans" or read[op.operands[0]] > 1:
            continue
        tile = types.get(trans.operands[0])
        if trans.attribute("order") == _ORDER and tile is not None and _fits(tile):
            replaced[convert.name] = _through_memory(convert, trans.operands[0], tile, taken)
            if read[convert.operands[0]] == 1:
                replaced[trans.name] = ()
    renamed = {name: made[-1].results[0].name for name, made in _made(replaced)}
    return replace(kernel, loop=replace(kernel.loop, body=tuple(_rewritten(body, replaced, renamed))))


def _made(replaced: dict[str, tuple[KernelOp, ...]]) -> Iterator[tuple[str, tuple[KernelOp, ...]]]:
    return ((name, made) for name, made in replaced.items() if made)


def _changes_layout(op: KernelOp) -> bool:
    return op.opcode == "ttg.convert_layout" and op.results[0].type.layout.startswith("#ttg.dot_op")


def _fits(tile: TileType) -> bool:
    """Return whether wgmma can read the tile transposed: 16-bit elements, rows that a swizzle covers."""
    return len(tile.shape) == 2 and tile.dtype in ("f16", "bf16") and _swizzle(tile) > 0


def _swizzle(tile: TileType) -> int:
    return next((size for size in _SWIZZLES if 2 * tile.shape[1] % size == 0), 0)


def _through_memory(convert: KernelOp, value: str, tile: TileType, taken: set[str]) -> tuple[KernelOp, ...]:
    """Return the store of a tile to SMEM and the transposed view of it."""

    def shared(shape: tuple[int, ...], transposed: str) -> TileType:
        entries = f"swizzlingByteWidth = {_swizzle(tile)}, transposed = {transposed}, elementBitWidth = 16"
        return TileType(space="smem", shape=shape, dtype=tile.dtype, layout=f"#ttg.nvmma_shared<{{{entries}}}>")

    stored, view = _unique(f"{value}_local_alloc", taken), _unique(f"{value}_memdesc_trans", taken)
    rows, columns = tile.shape
    return (
        KernelOp(
            name=stored,
            opcode="ttg.local_alloc",
            operands=(value,),
            results=(KernelValue(name=stored, type=shared((rows, columns), "false")),),
            source=convert.source,
        ),
        KernelOp(
            name=view,
            opcode="ttg.memdesc_trans",
            operands=(stored,),
            results=(KernelValue(name=view, type=shared((columns, rows), "true")),),
            attributes=(("order", _ORDER),),
            source=convert.source,
        ),
    )


def _unique(wanted: str, taken: set[str]) -> str:
    name, number = wanted, 0
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    taken.add(name)
    return name


def _rewritten(
    body: tuple[KernelOp, ...], replaced: dict[str, tuple[KernelOp, ...]], renamed: dict[str, str]
) -> Iterator[KernelOp]:
    for op in body:
        if op.name in replaced:
            yield from replaced[op.name]
        else:
            yield replace(op, operands=tuple(renamed.get(operand, operand) for operand in op.operands))
