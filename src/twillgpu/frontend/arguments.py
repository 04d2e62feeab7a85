"""Types of a kernel's arguments, as Triton's launcher would specialise them.

Triton's launcher marks pointers and integers that are multiples of 16 as such, and turns an integer 1 into a
constant; without the marks, loads are not vectorised. A launch that gives types only is taken to be one of such
sizes: ``i32`` means a multiple of 16, and ``i32:1`` one that is not known to be.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from twillgpu.errors import InputError, nearest
from twillgpu.frontend.launch import ArgumentType

ELEMENTS = (
    "bf16", "fp16", "fp32", "fp64", "fp8e4b15", "fp8e4b8", "fp8e4nv", "fp8e5", "fp8e5b16",
    "i1", "i8", "i16", "i32", "i64", "u1", "u8", "u16", "u32", "u64",
)  # fmt: skip
"""Element types by Triton's names."""

LONG_NAMES = {
    "bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "float64": "fp64", "f16": "fp16", "f32": "fp32",
    "f64": "fp64", "bool": "i1", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8",
    "uint16": "u16", "uint32": "u32", "uint64": "u64", "float8_e4m3fn": "fp8e4nv", "float8_e5m2": "fp8e5",
}  # fmt: skip
"""Names that array libraries have for them."""

_HINT = re.compile(r"(.+?)(?::(\d+))?", re.DOTALL)
_TILE = re.compile(r"(\w+)\s*\[([^\]]*)\]")
_DESCRIPTOR = re.compile(r"tensordesc<\s*(.*?)\s*>", re.DOTALL)
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}
_ALIGNED = 16
_I32 = range(-(2**31), 2**31)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentSpec:
    """One argument as Triton's front end wants it.

    Attributes:
        signature: Triton's type string, or ``constexpr``.
        aligned: whether it is known to be a multiple of 16 (bytes for a pointer).
        value: the value where it is known, otherwise ``None``.
    """

    signature: str
    aligned: bool = False
    value: int | float | None = None


def argument_spec(given: ArgumentType, constexprs: Mapping[str, object], *, where: str) -> ArgumentSpec:
    """Return what ``given`` stands for; names in the shape of a descriptor are those of ``constexprs``.

    Raises ``InputError`` for an unknown type, with the nearest one.
    """
    if given is None or isinstance(given, bool):
        return ArgumentSpec(signature="constexpr" if given is None else "i1", value=given)
    if isinstance(given, int):
        return _integer(given)
    if isinstance(given, float):
        return ArgumentSpec(signature="fp32", value=given)
    return _from_text(given.strip(), constexprs, where)


def _integer(value: int) -> ArgumentSpec:
    if value == 1:
        return ArgumentSpec(signature="constexpr", value=1)
    return ArgumentSpec(signature="i32" if value in _I32 else "i64", aligned=value % _ALIGNED == 0, value=value)


def _from_text(text: str, constexprs: Mapping[str, object], where: str) -> ArgumentSpec:
    number = _number(text)
    if number is not None or text == "None":
        return argument_spec(number, constexprs, where=where)
    if match := _DESCRIPTOR.fullmatch(text):
        return ArgumentSpec(signature=f"tensordesc<{_tile(match.group(1), constexprs, where)}>")
    if match := _TILE.fullmatch(text):
        return ArgumentSpec(signature=f"*{_element(match.group(1), where)}", aligned=True)
    match = _HINT.fullmatch(text)
    name, hint = match.groups() if match else (text, None)
    pointer = name.startswith("*")
    element = _element(name.removeprefix("*"), where)
    counted = pointer or (element.startswith(("i", "u")) and element not in ("i1", "u1"))
    if hint is not None and not counted:
        raise InputError(where, f"the type {text!r} has a divisor", "only pointers and integers have one")
    aligned = counted and int(hint or _ALIGNED) % _ALIGNED == 0
    return ArgumentSpec(signature=f"*{element}" if pointer else element, aligned=aligned)


def _number(text: str) -> int | float | None:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None


def _element(name: str, where: str) -> str:
    element = LONG_NAMES.get(name, name)
    if element not in ELEMENTS:
        hint = nearest(name, (*ELEMENTS, *LONG_NAMES))
        raise InputError(
            where,
            f"unknown argument type {name!r}",
            f"{hint} Pointers are written *fp16, TMA descriptors tensordesc<fp16[128,64]>, values as numbers",
        )
    return element


def _tile(text: str, constexprs: Mapping[str, object], where: str) -> str:
    match = _TILE.fullmatch(text)
    if match is None:
        raise InputError(where, f"{text!r} is no block of a tensor", "write tensordesc<fp16[128,64]>")
    sizes = (str(_size(part.strip(), constexprs, where)) for part in match.group(2).split(","))
    return f"{_element(match.group(1), where)}[{','.join(sizes)}]"


def _size(text: str, constexprs: Mapping[str, object], where: str) -> int:
    """Return the value of a size: a number, a constexpr's name, or sums, products and quotients of them."""
    try:
        return _evaluate(ast.parse(text, mode="eval").body, constexprs)
    except (SyntaxError, ValueError, ZeroDivisionError):
        raise InputError(
            where, f"the size {text!r} is no number", f"use a number or a constexpr: {', '.join(sorted(constexprs))}"
        ) from None


def _evaluate(node: ast.expr, constexprs: Mapping[str, object]) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.Name) and isinstance(value := constexprs.get(node.id), int):
        return value
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_evaluate(node.left, constexprs), _evaluate(node.right, constexprs))
    raise ValueError(ast.dump(node))
