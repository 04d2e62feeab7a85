"""Control flow that the front end keeps whole outside of the scheduled loop: ``scf.for``, ``scf.if``, ``scf.while``.

A region is closed: the values that it reads from outside are the op's last operands and its last arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from twillgpu.emulate.call import Context, Value
from twillgpu.emulate.ops_region import Evaluate, run_region
from twillgpu.errors import UnsupportedError
from twillgpu.frontend.kernel import KernelOp

Control = Callable[[KernelOp, Sequence[Value], Context, Evaluate], tuple[Value, ...]]


def trip_range(lower: Value, upper: Value, step: Value) -> range:
    """Return the values of a loop's induction variable; a step that is not positive gives none."""
    return range(int(lower), int(upper), int(step)) if int(step) > 0 else range(0)


def _for(op: KernelOp, values: Sequence[Value], context: Context, evaluate: Evaluate) -> tuple[Value, ...]:
    """Run a counted loop: operands are lower bound, upper bound, step, initial values, captured values."""
    carried = tuple(values[3 : 3 + len(op.results)])
    captured = tuple(values[3 + len(op.results) :])
    induction = values[0].dtype.type
    for position in trip_range(*values[:3]):
        arguments = (induction(position), *carried, *captured)
        carried = run_region(op.regions[0], arguments, context, evaluate)
    return carried


def _if(op: KernelOp, values: Sequence[Value], context: Context, evaluate: Evaluate) -> tuple[Value, ...]:
    """Run one of two regions: operands are the condition and captured values."""
    chosen = 0 if values[0] else 1
    return run_region(op.regions[chosen], values[1:], context, evaluate) if chosen < len(op.regions) else ()


def _while(op: KernelOp, values: Sequence[Value], context: Context, evaluate: Evaluate) -> tuple[Value, ...]:
    """Run a loop with a condition: operands are initial values and captured values."""
    before, after = op.regions
    kept = len(before.yielded) - 1
    captured = tuple(values[len(values) - (len(after.arguments) - kept) :])
    state = tuple(values[: len(values) - len(captured)])
    while True:
        condition, *passed = run_region(before, (*state, *captured), context, evaluate)
        if not condition:
            return tuple(passed)
        state = run_region(after, (*passed, *captured), context, evaluate)


def run_control(op: KernelOp, values: Sequence[Value], context: Context, evaluate: Evaluate) -> tuple[Value, ...]:
    """Run a control flow op.

    Raises ``UnsupportedError`` where its regions are not recorded (a kernel of an older text form).
    """
    if not op.regions:
        raise UnsupportedError(
            op.source or f"op {op.name}",
            f"the body of {op.opcode} at {op.name} is not recorded",
            "give the Python file or the TTGIR of the kernel",
        )
    return CONTROL_RULES[op.opcode](op, values, context, evaluate)


CONTROL_RULES: dict[str, Control] = {"scf.for": _for, "scf.if": _if, "scf.while": _while}
