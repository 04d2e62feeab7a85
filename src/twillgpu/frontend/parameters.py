"""Which divisibilities of a kernel's arguments its code depends on."""

from __future__ import annotations

from dataclasses import replace

from twillgpu.frontend.check import all_ops
from twillgpu.frontend.kernel import Kernel

_ADDRESS = "tt.addptr"


def counted_on(kernel: Kernel) -> Kernel:
    """Return the kernel with only those parameters ``aligned`` that addresses in registers are computed from.

    Divisibility by 16 decides how wide loads through pointers are, and so the layouts of the tiles. TMA takes
    coordinates and needs it of the tensor only, which is checked where a descriptor is made.
    """
    used = _in_addresses(kernel)
    return replace(
        kernel,
        parameters=tuple(replace(one, aligned=one.aligned and one.name in used) for one in kernel.parameters),
    )


def _in_addresses(kernel: Kernel) -> frozenset[str]:
    """Return the names of values that some address depends on: backwards from every sum with a pointer."""
    ops, loop = all_ops(kernel), kernel.loop
    made_from = {result.name: op.operands for op in ops for result in op.results}
    made_from[loop.induction.name] = (loop.lower, loop.step)
    for carried in loop.carried:
        made_from[carried.argument.name] = made_from[carried.result] = (carried.initial, carried.yielded)
    pointers = {one.name for one in kernel.arguments if one.type.space == "global"}
    waiting = [operand for op in ops if op.opcode == _ADDRESS for operand in op.operands]
    waiting += [operand for op in ops for operand in op.operands if operand in pointers]
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += made_from.get(name, ())
    return frozenset(found)
