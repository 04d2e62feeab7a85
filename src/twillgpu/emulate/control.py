"""Control flow that the front end keeps whole outside of the scheduled loop: ``scf.for``, ``scf.if``, ``scf.while``.

A region is closed: what it reads from outside comes as arguments that stand for operands of the op.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from twillgpu.emulate.call import Context, Value
from twillgpu.emulate.ops_region import Evaluate, run_region
from twillgpu.errors import UnsupportedError
from twillgpu.frontend.kernel import KernelOp, Region

Control = Callable[[KernelOp, Sequence[Value], Context, Evaluate], tuple[Value, ...]]


def trip_range(lower: Value, upper: Value, step: Value) -> range:
    """Return the values of a loop's induction variable; a step that is not positive gives none."""
    return range(int(lower), int(upper), int(step)) if int(step) > 0 else range(0)


def _for(op: KernelOp, values: Sequence[Value], context: Context, evaluate: Evaluate) -> tuple[Value, ...]:
    """Run a counted loop: operands are lower bound, upper bound, step, initial values."""
    carried = tuple(values[3 : 3 + len(op.results)])
    captured = _captured(op.regions[0], values)
    induction = values[0].dtype.type
    for position in trip_range(*values[:3]):
        arguments = (induction(position), *carried, *captured)
        carried = run_region(op.regions[0], arguments, context, evaluate)
    return carried


def _if(op: KernelOp, values: Sequence[Value], context: Context, evaluate: Evaluate) -> tuple[Value, ...]:
    """Run one of two regions, of which the second may be missing: the operand is the condition."""
    chosen = 0 if values[0] else 1
    if chosen == len(op.regions):
        return ()
    region = op.regions[chosen]
    return run_region(region, _captured(region, values), context, evaluate)


def _while(op: KernelOp, values: Sequence[Value], context: Context, evaluate: Evaluate) -> tuple[Value, ...]:
    """Run a loop with a condition, which the first region gives before the values: operands are initial values."""
    before, after = op.regions
    captured_before, captured_after = (_captured(region, values) for region in op.regions)
    state = tuple(values[: len(before.arguments) - len(before.captures)])
    while True:
        condition, *passed = run_region(before, (*state, *captured_before), context, evaluate)
        if not condition:
            return tuple(passed)
        state = run_region(after, (*passed, *captured_after), context, evaluate)


def _captured(region: Region, values: Sequence[Value]) -> tuple[Value, ...]:
    return tuple(values[place] for place in region.captures)


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
