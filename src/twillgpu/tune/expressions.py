"""Arithmetic over names in text: ``cdiv(seq_len, BLOCK_M), heads``. It is parsed and walked, never executed."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from twillgpu.errors import InputError, nearest

Number = int | float | bool
_Operators = Mapping[type[ast.AST], Callable[[Number, Number], Number]]

LONGEST = 200
"""Characters of an expression: deeper ones could exhaust the parser."""


def _exact(first: Number, second: Number) -> Number:
    """Return the quotient of a division that leaves nothing over."""
    if not second:
        raise ZeroDivisionError("division by zero")
    if first % second:
        raise ArithmeticError(f"{first} is no multiple of {second}")
    return first // second


def _cdiv(first: Number, second: Number) -> Number:
    return -(-first // second)


_BINARY: _Operators = MappingProxyType(
    {
        ast.Add: operator.add,
        ast.Sub: operator.sub,
        ast.Mult: operator.mul,
        ast.FloorDiv: operator.floordiv,
        ast.Mod: operator.mod,
        ast.Div: _exact,
    }
)
_COMPARE: _Operators = MappingProxyType(
    {
        ast.Eq: operator.eq,
        ast.NotEq: operator.ne,
        ast.Lt: operator.lt,
        ast.LtE: operator.le,
        ast.Gt: operator.gt,
        ast.GtE: operator.ge,
    }
)
_CALLS: Mapping[str, Callable[..., Number]] = MappingProxyType({"cdiv": _cdiv, "min": min, "max": max})
_ARGUMENTS = 2


def split(text: str, where: str) -> tuple[str, ...]:
    """Return the expressions of a list such as ``cdiv(seq_len, BLOCK_M), heads``.

    Raises ``InputError`` where the text is no arithmetic.
    """
    node = _parsed(text, where)
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    return tuple(ast.unparse(part) for part in parts)


def check(text: str, where: str, names: Iterable[str]) -> None:
    """Raise ``InputError`` where an expression has anything but arithmetic over ``names``."""
    known = set(names)
    for node in ast.walk(_parsed(text, where)):
        if isinstance(node, ast.Name) and node.id not in known | set(_CALLS):
            raise InputError(
                where, f"{node.id} in {text!r} is neither an axis, a size nor a constant", _hint(node, known)
            )
        if not _allowed(node):
            raise InputError(
                where, f"{text!r} is more than arithmetic", "use + - * // % /, comparisons, cdiv, min, max"
            )


def _hint(node: ast.Name, known: set[str]) -> str:
    return nearest(node.id, known) if known else f"add --shape {node.id}=VALUE"


def evaluate(text: str, values: Mapping[str, object]) -> Number:
    """Return the value of an expression that ``check`` has passed.

    Raises:
        ArithmeticError: a division by zero, or ``/`` leaves something over.
        TypeError: a value that is no number takes part.
    """
    return _value(_parsed(text, text), values)


def _parsed(text: str, where: str) -> ast.expr:
    if len(text) > LONGEST:
        raise InputError(where, f"it has {len(text)} characters", f"use at most {LONGEST}")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        raise InputError(where, f"{text!r} is no arithmetic", "write it as cdiv(seq_len, BLOCK_M), heads") from None


def _allowed(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float | str)
    if isinstance(node, ast.Call):
        named = isinstance(node.func, ast.Name) and node.func.id in _CALLS
        return named and not node.keywords and len(node.args) == _ARGUMENTS
    plain = (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Name, ast.Load)
    return isinstance(node, (*plain, ast.USub, ast.Not, ast.And, ast.Or)) or type(node) in (*_BINARY, *_COMPARE)


def _value(node: ast.expr, values: Mapping[str, object]) -> Number:
    found = _leaf(node, values) if isinstance(node, ast.Constant | ast.Name) else _operation(node, values)
    if not isinstance(found, int | float | str):
        raise TypeError(f"{ast.unparse(node)} is {found}, no number")
    return found  # type: ignore[return-value]  # texts are compared only: arithmetic with them raises TypeError


def _leaf(node: ast.Constant | ast.Name, values: Mapping[str, object]) -> object:
    return node.value if isinstance(node, ast.Constant) else values[node.id]


def _operation(node: ast.expr, values: Mapping[str, object]) -> Number:
    match node:
        case ast.BinOp():
            return _BINARY[type(node.op)](_value(node.left, values), _value(node.right, values))
        case ast.UnaryOp():
            inner = _value(node.operand, values)
            return -inner if isinstance(node.op, ast.USub) else not inner
        case ast.BoolOp():
            results = (bool(_value(part, values)) for part in node.values)
            return all(results) if isinstance(node.op, ast.And) else any(results)
        case ast.Compare():
            return _compared(node, values)
        case ast.Call(func=ast.Name(id=name)):
            return _CALLS[name](*(_value(part, values) for part in node.args))
    raise TypeError(f"{ast.unparse(node)} is no arithmetic")


def _compared(node: ast.Compare, values: Mapping[str, object]) -> bool:
    sides = [_value(part, values) for part in (node.left, *node.comparators)]
    pairs = zip(node.ops, sides, sides[1:], strict=False)
    return all(_COMPARE[type(sign)](first, second) for sign, first, second in pairs)
