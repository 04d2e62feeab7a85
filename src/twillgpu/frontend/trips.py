"""Trip count of a loop whose bounds are constants or known arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from twillgpu.frontend.generic import MlirOp

_INTEGER = re.compile(r"(-?\d+)(?: : \w+)?")
_BINARY: dict[str, Callable[[int, int], int | None]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.divsi": lambda a, b: (abs(a) // abs(b) * (1 if a * b >= 0 else -1)) if b else None,
    "arith.minsi": min,
    "arith.maxsi": max,
}
_SAME = ("arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast")


def trip_count(
    before: tuple[MlirOp, ...], bounds: tuple[str, str, str], known: Mapping[str, int | None]
) -> int | None:
    """Return how many iterations ``range(lower, upper, step)`` has, or ``None`` where it is not known.

    Args:
        before: the ops before the loop, which compute the bounds.
        bounds: MLIR names of lower, upper and step.
        known: MLIR names of arguments and their values.
    """
    values = {name: value for name, value in known.items() if value is not None}
    for op in before:
        value = _evaluate(op, values)
        if value is not None:
            values[op.results[0].name] = value
    lower, upper, step = (values.get(name) for name in bounds)
    if lower is None or upper is None or not step or step < 0:
        return None
    return max(0, -((lower - upper) // step))


def _evaluate(op: MlirOp, values: Mapping[str, int]) -> int | None:
    if op.opcode == "arith.constant":
        match = _INTEGER.fullmatch(op.attribute("value") or "")
        return int(match.group(1)) if match else None
    operands = [values[name] for name in op.operands if name in values]
    if len(operands) != len(op.operands):
        return None
    if op.opcode in _SAME:
        return operands[0]
    return _BINARY[op.opcode](operands[0], operands[1]) if op.opcode in _BINARY else None
