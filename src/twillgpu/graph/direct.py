"""Layout conversions that need not be written: what is stored may be stored from the layout that it already has.

A conversion to another layout that crosses warps goes through SMEM. TTGIR converts a tile before it is stored; the
hardware takes it from any layout.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from twillgpu.frontend.kernel import Kernel, KernelOp
from twillgpu.graph.kinds import SMEM_WRITES

_ADDRESSES = frozenset(
    {"tt.make_range", "tt.splat", "tt.addptr", "arith.addi", "arith.subi", "arith.muli", "arith.cmpi", "arith.andi"}
)
_CONVERT = "ttg.convert_layout"


def stored_directly(kernel: Kernel) -> Mapping[str, frozenset[str]]:
    """Return the conversions, by name, that only serve a store, with the address tiles that must then have the layout
    of what is stored (for vectors; a store to SMEM has none).
    """
    readers: dict[str, list[KernelOp]] = {}
    for op in _ops(kernel):
        for operand in op.operands:
            readers.setdefault(operand, []).append(op)
    makers = {value.name: op for op in _ops(kernel) for value in op.results}
    found: dict[str, frozenset[str]] = {}
    for op in _ops(kernel):
        used = readers.get(op.results[0].name, []) if op.opcode == _CONVERT else []
        if used and all(one.opcode in SMEM_WRITES for one in used):
            found[op.name] = frozenset()
        elif len(used) == 1 and used[0].opcode == "tt.store" and len(op.results[0].type.shape) == 1:
            moved = _addresses(used[0], op.results[0].name, makers, readers)
            if moved is not None:
                found[op.name] = frozenset(moved)
    return found


def _addresses(
    store: KernelOp, stored: str, makers: dict[str, KernelOp], readers: dict[str, list[KernelOp]]
) -> set[str] | None:
    """Return the index tiles that a store's pointers and mask are made of, ``None`` where something else reads or
    makes one of them.
    """
    found: set[str] = set()
    todo = [operand for operand in store.operands if operand != stored]
    while todo:
        value = todo.pop()
        maker = makers.get(value)
        kind = None if maker is None else next(one.type for one in maker.results if one.name == value)
        if maker is None or kind is None or not kind.shape or value in found:
            continue
        if maker.opcode not in _ADDRESSES:
            return None
        found.add(value)
        todo += maker.operands
    inside = {makers[value].name for value in found} | {store.name}
    alone = all(one.name in inside for value in found for one in readers.get(value, []))
    return found if alone else None


def _ops(kernel: Kernel) -> Iterator[KernelOp]:
    yield from (*kernel.before, *kernel.loop.body, *kernel.after)
