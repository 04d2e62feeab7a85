"""The meaning of every op of the tile IR: the one place that the reference and the emulator share.

``evaluate`` takes an op and the values of its operands and gives the values of its results; it knows nothing of
warps, rings or barriers. Memory is what it is handed: global memory in the ``Context``, tiles as ``MemDesc`` values,
which an emulator makes over the slots of its rings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from twillgpu.emulate.call import Call, Context, Rule, Value
from twillgpu.emulate.control import CONTROL_RULES, run_control
from twillgpu.emulate.memory import AccessError
from twillgpu.emulate.numbers import format_of
from twillgpu.emulate.ops_constant import CONSTANT_RULES
from twillgpu.emulate.ops_float import FLOAT_RULES
from twillgpu.emulate.ops_global import GLOBAL_RULES
from twillgpu.emulate.ops_integer import INTEGER_RULES
from twillgpu.emulate.ops_local import LOCAL_RULES
from twillgpu.emulate.ops_product import PRODUCT_RULES
from twillgpu.emulate.ops_region import REGION_RULES
from twillgpu.emulate.ops_shape import SHAPE_RULES
from twillgpu.errors import InputError, UnsupportedError
from twillgpu.frontend.kernel import KernelOp, TileType

RULES: Mapping[str, Rule] = {
    **CONSTANT_RULES,
    **FLOAT_RULES,
    **GLOBAL_RULES,
    **INTEGER_RULES,
    **LOCAL_RULES,
    **PRODUCT_RULES,
    **SHAPE_RULES,
}
"""Rules by opcode of the ops without a body."""

OPCODES = frozenset({*RULES, *REGION_RULES, *CONTROL_RULES})
"""Every opcode that has a meaning on numbers."""


def evaluate(op: KernelOp, values: Sequence[Value], context: Context) -> tuple[Value, ...]:
    """Return the values of the results of ``op``, ``None`` for a token; writes memory where the op does.

    Args:
        op: the op.
        values: one value for each operand, in order; ``None`` for a token.
        context: types of the operands by name, global memory, the place in the grid.

    Raises ``InputError`` with the op's source line for an access outside of memory and for a result that has not the
    shape that the op says, ``UnsupportedError`` for an opcode or an attribute that has no meaning here.
    """
    if op.opcode in CONTROL_RULES:
        return run_control(op, values, context, evaluate)
    call = _call(op, values, context)
    try:
        # As on the chip, overflow and NaN are results, not events.
        with np.errstate(all="ignore"):
            found = _rule(op)(call)
    except AccessError as error:
        raise InputError(
            op.source or f"op {op.name}",
            f"in block {context.program}, {op.opcode} at {op.name} {error.what}",
            error.remedy,
        ) from None
    return _with_tokens(op, _results(call, found))


def _call(op: KernelOp, values: Sequence[Value], context: Context) -> Call:
    types = [context.types[name] for name in op.operands]
    kept = [at for at, kind in enumerate(types) if kind.space != "token"]
    return Call(
        op=op,
        values=tuple(values[at] for at in kept),
        types=tuple(types[at] for at in kept),
        results=tuple(result.type for result in op.results if result.type.space != "token"),
        context=context,
    )


def _rule(op: KernelOp) -> Rule:
    if op.opcode in REGION_RULES:
        return lambda call: REGION_RULES[op.opcode](call, evaluate)
    if op.opcode not in RULES:
        raise UnsupportedError(
            op.source or f"op {op.name}",
            f"{op.opcode} at {op.name} has no meaning on numbers",
            "rewrite the kernel without it",
        )
    return RULES[op.opcode]


def _results(call: Call, found: Value) -> tuple[Value, ...]:
    """Return one value for each result that is no token, zero-dimensional arrays as scalars."""
    if not call.results:
        return ()
    values = found if len(call.results) > 1 else (found,)
    kept = tuple(value[()] if isinstance(value, np.ndarray) and not value.ndim else value for value in values)
    for value, kind in zip(kept, call.results, strict=True):
        _check(call.op, value, kind)
    return kept


def _check(op: KernelOp, value: Value, kind: TileType) -> None:
    if kind.space == "registers" and (
        np.shape(value) != kind.shape or np.asarray(value).dtype != format_of(kind.dtype).carrier
    ):
        raise InputError(
            op.source or f"op {op.name}",
            f"{op.opcode} at {op.name} gives {np.asarray(value).dtype} {np.shape(value)} and says {kind}",
            "give the kernel as Triton or this program printed it",
        )


def _with_tokens(op: KernelOp, values: tuple[Value, ...]) -> tuple[Value, ...]:
    given = iter(values)
    return tuple(None if result.type.space == "token" else next(given) for result in op.results)
