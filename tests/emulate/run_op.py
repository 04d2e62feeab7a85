"""Runs a single op on values."""

from __future__ import annotations

from typing import Any

from twillgpu.emulate.call import Context
from twillgpu.emulate.memory import GlobalMemory
from twillgpu.emulate.ops import evaluate
from twillgpu.frontend.kernel import KernelOp, KernelValue, Region, TileType


def tile(dtype: str, *shape: int, space: Any = "") -> TileType:
    return TileType(space=space or ("registers" if shape else "scalar"), shape=shape, dtype=dtype)


TOKEN = TileType(space="token")


def run_op(
    opcode: str,
    operands: list[tuple[Any, TileType]],
    results: list[TileType],
    *,
    memory: GlobalMemory | None = None,
    body: tuple[str, ...] = (),
    regions: tuple[Region, ...] = (),
    **attributes: str,
) -> Any:
    """Return the value of the only result, or a tuple."""
    names = [f"v{at}" for at in range(len(operands))]
    op = KernelOp(
        name="op",
        opcode=opcode,
        operands=tuple(names),
        results=tuple(KernelValue(name=f"r{at}", type=kind) for at, kind in enumerate(results)),
        attributes=tuple(sorted(attributes.items())),
        source="kernel.py:7",
        body=body,
        regions=regions,
    )
    types = dict(zip(names, (kind for _, kind in operands), strict=True))
    context = Context(types=types, memory=memory or GlobalMemory(), program=(1, 2, 3), grid=(4, 5, 6))
    found = evaluate(op, [value for value, _ in operands], context)
    return found[0] if len(found) == 1 else found
