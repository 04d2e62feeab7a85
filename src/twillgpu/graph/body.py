"""The loop body of a kernel with the look-ups that building a graph needs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from twillgpu.frontend.kernel import Carried, Kernel, KernelOp, TileType
from twillgpu.frontend.layouts import parse_layout

_BITS = re.compile(r"[a-z]+(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """Look-ups over a kernel.

    Attributes:
        kernel: the kernel.
        inner: the op of the loop body that defines a value.
        outer: the op in front of the loop that defines a value.
        users: the ops of the loop body that read a value, in order, each once.
        carried: the carried value of a block argument.
        kept: values that outlive the iteration: yielded to the next one (and so to the code after the loop).
        types: the type of every value.
    """

    kernel: Kernel
    inner: Mapping[str, KernelOp]
    outer: Mapping[str, KernelOp]
    users: Mapping[str, tuple[KernelOp, ...]]
    carried: Mapping[str, Carried]
    kept: frozenset[str]
    types: Mapping[str, TileType]

    def sole_user(self, value: str) -> KernelOp | None:
        """Return the only op that reads ``value``, ``None`` where there are others or it outlives the iteration."""
        users = self.users.get(value, ())
        return users[0] if len(users) == 1 and value not in self.kept else None

    def constant(self, value: str) -> str | None:
        """Return the MLIR text of a constant, ``None`` for other values."""
        op = self.outer.get(value) or self.inner.get(value)
        return op.attribute("value") if op is not None and op.opcode == "arith.constant" else None


def body_of(kernel: Kernel) -> Body:
    """Return the look-ups of ``kernel``."""
    users: dict[str, list[KernelOp]] = {}
    for op in kernel.loop.body:
        for operand in dict.fromkeys(op.operands):
            users.setdefault(operand, []).append(op)
    ops = (*kernel.before, *kernel.loop.body)
    types = {value.name: value.type for value in (*kernel.arguments, kernel.loop.induction)}
    types |= {carried.argument.name: carried.argument.type for carried in kernel.loop.carried}
    types |= {result.name: result.type for op in ops for result in op.results}
    return Body(
        kernel=kernel,
        inner={result.name: op for op in kernel.loop.body for result in op.results},
        outer={result.name: op for op in kernel.before for result in op.results},
        users={value: tuple(ops) for value, ops in users.items()},
        carried={carried.argument.name: carried for carried in kernel.loop.carried},
        kept=frozenset(carried.yielded for carried in kernel.loop.carried),
        types=types,
    )


def element_bits(dtype: str) -> int:
    """Return the bits of one element in memory: 64 for pointers and ``index``, 8 for ``i1``."""
    if dtype.startswith("ptr") or dtype == "index":
        return 64
    match = _BITS.match(dtype)
    bits = int(match.group(1)) if match else 32
    return 32 if dtype == "tf32" else max(bits, 4) if bits != 1 else 8


def tile_elements(kind: TileType) -> int:
    """Return the number of elements of a tile, 1 for a scalar."""
    return prod(kind.shape)


def tile_bytes(kind: TileType) -> int:
    """Return the bytes of a tile, rounded up."""
    return -(-tile_elements(kind) * element_bits(kind.dtype) // 8)


def registers_per_thread(kind: TileType, warps: int) -> int:
    """Return the 32-bit registers per thread that a tile takes when ``warps`` warps hold it."""
    return -(-tile_bytes(kind) // (4 * 32 * warps))


def tensor_memory_bytes(kind: TileType) -> int:
    """Return the bytes of whole TMEM columns (128 lanes of 4 bytes) that a tile takes.

    Rows beyond 128 go into further columns. A tile of 64 rows takes its columns whole: the other lanes are of no use
    to tiles of 128 rows. ``colStride`` leaves columns empty (PTX ISA, tensor memory).
    """
    layout = parse_layout(kind.layout)
    stride = int((layout.get("colStride") if layout is not None else "") or 1)
    rows, columns = (tile_elements(kind) // kind.shape[-1], kind.shape[-1])
    words = -(-columns * stride * element_bits(kind.dtype) // 32)
    return -(-rows // 128) * words * 512
