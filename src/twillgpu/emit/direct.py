"""Layout conversions that need not be written: what is stored may be stored from the layout that it already has.

A conversion to another layout that crosses warps goes through SMEM that no schedule has room for. TTGIR converts a
tile before it is stored; the hardware takes it from any layout.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from twillgpu.frontend.kernel import Kernel, KernelOp, KernelValue
from twillgpu.lower.record import Get, GroupProgram, Instruction, WarpProgram

_INTO_MEMORY = frozenset({"tt.descriptor_store", "tt.descriptor_reduce", "ttg.local_alloc", "ttg.local_store"})
_ADDRESSES = frozenset(
    {"tt.make_range", "tt.splat", "tt.addptr", "arith.addi", "arith.subi", "arith.muli", "arith.cmpi", "arith.andi"}
)
_CONVERT = "ttg.convert_layout"


def direct(program: WarpProgram) -> tuple[WarpProgram, frozenset[str]]:
    """Return the program with the addresses of stored vectors in the layout of what is stored, and the names of the
    conversions that are not written: their readers take the operand.
    """
    kernel = program.kernel
    converted = {op.results[0].name: op for op in _ops(kernel) if op.opcode == _CONVERT}
    readers: dict[str, list[KernelOp]] = {}
    for op in _ops(kernel):
        for operand in op.operands:
            readers.setdefault(operand, []).append(op)
    makers = {value.name: op for op in _ops(kernel) for value in op.results}
    handed = {one.value for group in program.groups for one in _instructions(group) if isinstance(one, Get)}
    dropped: set[str] = set()
    layouts: dict[str, str] = {}
    for value, op in converted.items():
        used = readers.get(value, [])
        if value in handed or not used or op.name in dropped:
            continue
        if all(one.opcode in _INTO_MEMORY for one in used):
            dropped.add(op.name)
        elif len(used) == 1 and used[0].opcode == "tt.store" and len(op.results[0].type.shape) == 1:
            moved = _addresses(used[0], value, makers, readers)
            if moved is not None:
                wanted = next(_type(makers, program, name) for name in op.operands)
                layouts.update(dict.fromkeys(moved, wanted))
                dropped.add(op.name)
    return replace(program, kernel=_with_layouts(kernel, layouts)), frozenset(dropped)


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


def _type(makers: dict[str, KernelOp], program: WarpProgram, value: str) -> str:
    """Return the layout of a value."""
    maker = makers.get(value)
    if maker is not None:
        return next(one.type.layout for one in maker.results if one.name == value)
    return next(one.argument.type.layout for one in program.kernel.loop.carried if one.result == value)


def _with_layouts(kernel: Kernel, layouts: dict[str, str]) -> Kernel:
    def changed(ops: tuple[KernelOp, ...]) -> tuple[KernelOp, ...]:
        return tuple(replace(op, results=tuple(_moved(value, layouts) for value in op.results)) for op in ops)

    loop = replace(kernel.loop, body=changed(kernel.loop.body))
    return replace(kernel, before=changed(kernel.before), loop=loop, after=changed(kernel.after))


def _moved(value: KernelValue, layouts: dict[str, str]) -> KernelValue:
    if value.name not in layouts:
        return value
    return replace(value, type=replace(value.type, layout=layouts[value.name]))


def _ops(kernel: Kernel) -> Iterator[KernelOp]:
    yield from (*kernel.before, *kernel.loop.body, *kernel.after)


def _instructions(group: GroupProgram) -> Iterator[Instruction]:
    yield from (*group.before, *group.prologue, *group.loop, *group.epilogue, *group.after)
