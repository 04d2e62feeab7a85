"""The reference: a plain interpreter of kernels, one block after another, one op after another. It is the definition
of what a kernel computes; programs of warp groups must give the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product

from twillgpu.emulate.call import Context, Value
from twillgpu.emulate.control import trip_range
from twillgpu.emulate.inputs import Inputs, Outputs, prepare
from twillgpu.emulate.ops import evaluate
from twillgpu.frontend.kernel import Kernel, KernelOp
from twillgpu.frontend.subtile_dims import value_types


def run(kernel: Kernel, inputs: Inputs) -> Outputs:
    """Run every block of the grid and return all tensors as they are afterwards; the inputs stay unchanged.

    Raises ``InputError`` for missing or ill-fitting inputs and for accesses outside of them, ``UnsupportedError`` for
    an op that has no meaning on numbers; both with the source line.
    """
    launched = prepare(kernel, inputs)
    types = value_types(kernel)
    for program in blocks(inputs.grid):
        run_block(
            kernel,
            launched.arguments,
            Context(types=types, memory=launched.memory, program=program, grid=inputs.grid),
        )
    return launched.outputs()


def blocks(grid: tuple[int, int, int]) -> Iterable[tuple[int, int, int]]:
    """Return the places of a grid, the first coordinate running fastest."""
    return ((x, y, z) for z, y, x in product(range(grid[2]), range(grid[1]), range(grid[0])))


def run_block(kernel: Kernel, arguments: Mapping[str, Value], context: Context) -> int:
    """Run one block; return the number of iterations of its loop. Memory is changed in place.

    Raises as ``run`` does.
    """
    values = dict(arguments)
    run_ops(kernel.before, values, context)
    loop, trips = kernel.loop, 0
    state = [values[carried.initial] for carried in loop.carried]
    induction = values[loop.lower].dtype.type
    for position in trip_range(*(values[bound] for bound in (loop.lower, loop.upper, loop.step))):
        values[loop.induction.name] = induction(position)
        values.update(zip((carried.argument.name for carried in loop.carried), state, strict=True))
        run_ops(loop.body, values, context)
        state = [values[carried.yielded] for carried in loop.carried]
        trips += 1
    values.update(zip((carried.result for carried in loop.carried), state, strict=True))
    run_ops(kernel.after, values, context)
    return trips


def run_ops(ops: Iterable[KernelOp], values: dict[str, Value], context: Context) -> None:
    """Run ``ops`` in order; ``values`` holds what they read and receives what they define, by name."""
    for op in ops:
        found = evaluate(op, [values[name] for name in op.operands], context)
        values.update(zip((result.name for result in op.results), found, strict=True))
