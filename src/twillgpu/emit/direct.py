"""Layout conversions that are not written: their readers take the operand (``twillgpu.graph.direct``)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from twillgpu.frontend.kernel import Kernel, KernelOp, KernelValue
from twillgpu.graph.direct import stored_directly
from twillgpu.lower.record import Get, GroupProgram, Instruction, WarpProgram


def direct(program: WarpProgram) -> tuple[WarpProgram, frozenset[str]]:
    """Return the program with the addresses of stored vectors in the layout of what is stored, and the names of the
    conversions that are not written: their readers take the operand.
    """
    kernel = program.kernel
    ops = {op.name: op for op in _ops(kernel)}
    makers = {value.name: op for op in _ops(kernel) for value in op.results}
    handed = {one.value for group in program.groups for one in _instructions(group) if isinstance(one, Get)}
    dropped: set[str] = set()
    layouts: dict[str, str] = {}
    for name, moved in stored_directly(kernel).items():
        if ops[name].results[0].name not in handed:
            dropped.add(name)
            layouts.update(dict.fromkeys(moved, _type(makers, program, ops[name].operands[0])))
    return replace(program, kernel=_with_layouts(kernel, layouts)), frozenset(dropped)


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
