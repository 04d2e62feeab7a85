"""Ops that are written where their only reader is: what one line of the kernel says stays one expression."""

from __future__ import annotations

from collections.abc import Iterator

from twillgpu.frontend.kernel import Kernel, KernelOp
from twillgpu.lower.record import Execute, Get, Put, WarpProgram

_PURE = ("arith.", "math.", "tt.get_program_id", "tt.addptr", "tt.make_range")
_READERS = (*_PURE, "tt.reduce")


def folded(program: WarpProgram) -> frozenset[str]:
    """Return the names of ops whose only reader is in the same instruction, wherever they are executed.

    Reader and op stand together, and nothing between them makes an operand anew, so that the operands have the same
    values at the reader. Scalars before the loop fold likewise.
    """
    kernel = program.kernel
    ops = {op.name: op for op in (*kernel.before, *kernel.loop.body, *kernel.after)}
    readers = _readers(kernel)
    for value in _kept(program):
        readers.setdefault(value, []).extend(("", ""))
    found = {name for name, op in ops.items() if _may(op, ops, readers)}
    for instruction in _executed(program):
        members = instruction.members
        for at, name in enumerate(members):
            if name in found:
                reader = readers[ops[name].results[0].name][0]
                later = members[at + 1 :]
                if reader not in later or _made_between(ops, ops[name], later[: later.index(reader)]):
                    found.discard(name)
    return frozenset(found)


def _may(op: KernelOp, ops: dict[str, KernelOp], readers: dict[str, list[str]]) -> bool:
    """Return whether an op is pure, has one result, and is read once, by an op that is an expression as well."""
    if len(op.results) != 1 or not op.opcode.startswith(_PURE) or op.opcode == "arith.constant":
        return False
    used = readers.get(op.results[0].name, [])
    if len(used) != 1 or not used[0] or op.source != ops[used[0]].source:
        return False
    return ops[used[0]].opcode.startswith(_READERS)


def _readers(kernel: Kernel) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for op in (*kernel.before, *kernel.loop.body, *kernel.after):
        for operand in op.operands:
            found.setdefault(operand, []).append(op.name)
    return found


def _kept(program: WarpProgram) -> Iterator[str]:
    """Yield the values that are read by name: carried on, bounds of the loop, handed over."""
    loop = program.kernel.loop
    yield from (loop.lower, loop.upper, loop.step)
    for carried in loop.carried:
        yield from (carried.initial, carried.yielded, carried.result)
    for ring in program.rings:
        yield from ring.values
    for group in program.groups:
        for region in (group.before, group.prologue, group.loop, group.epilogue, group.after):
            yield from (one.value for one in region if isinstance(one, Put | Get))


def _executed(program: WarpProgram) -> Iterator[Execute]:
    for group in program.groups:
        for region in (group.before, group.prologue, group.loop, group.epilogue, group.after):
            yield from (one for one in region if isinstance(one, Execute))


def _made_between(ops: dict[str, KernelOp], op: KernelOp, between: tuple[str, ...]) -> bool:
    made = {value.name for name in between for value in ops[name].results}
    return not made.isdisjoint(op.operands)
