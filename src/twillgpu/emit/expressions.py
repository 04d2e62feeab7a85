"""Pure kernel ops (register tiles and scalars in, register tiles and scalars out) as Gluon expressions.

Splats, broadcasts and added dimensions stand in the expression that uses them: Gluon broadcasts operands of one
elementwise operation by itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from twillgpu.emit.layouts import dtype
from twillgpu.emit.terms import LayoutNames, Term, constant, full
from twillgpu.errors import UnsupportedError
from twillgpu.frontend.kernel import KernelOp, TileType

_INFIX = MappingProxyType(
    {
        "addf": "+", "addi": "+", "subf": "-", "subi": "-", "mulf": "*", "muli": "*", "divf": "/", "divsi": "//",
        "divui": "//", "remsi": "%", "remui": "%", "remf": "%", "andi": "&", "ori": "|", "xori": "^", "shli": "<<",
        "shrsi": ">>", "shrui": ">>",
    }
)  # fmt: skip
_CALLS = MappingProxyType(
    {
        "arith.maxnumf": "gl.maximum", "arith.maximumf": "gl.maximum", "arith.maxsi": "gl.maximum",
        "arith.maxui": "gl.maximum", "arith.minnumf": "gl.minimum", "arith.minimumf": "gl.minimum",
        "arith.minsi": "gl.minimum", "arith.minui": "gl.minimum", "arith.select": "gl.where", "math.exp": "gl.exp",
        "math.exp2": "gl.exp2", "math.log": "gl.log", "math.log2": "gl.log2", "math.sqrt": "gl.sqrt",
        "math.rsqrt": "gl.rsqrt", "math.sin": "gl.sin", "math.cos": "gl.cos", "math.erf": "gl.erf",
        "math.floor": "gl.floor", "math.ceil": "gl.ceil", "math.absf": "gl.abs", "math.absi": "gl.abs",
        "math.fma": "gl.fma", "tt.precise_sqrt": "gl.sqrt_rn", "tt.precise_divf": "gl.div_rn",
        "tt.mulhiui": "gl.umulhi", "tt.approx_divf": "gl.fdiv",
    }
)  # fmt: skip
_NAN_MOVES = frozenset({"arith.maximumf", "arith.minimumf"})
_CASTS = frozenset(
    {"extf", "truncf", "extsi", "extui", "trunci", "sitofp", "uitofp", "fptosi", "fptoui", "index_cast", "bitcast"}
)
_INTEGER_TESTS = ("==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">=")
_FLOAT_TESTS = MappingProxyType(
    {1: "==", 2: ">", 3: ">=", 4: "<", 5: "<=", 6: "!=", 8: "==", 9: ">", 10: ">=", 11: "<", 12: "<=", 13: "!="}
)
_REDUCTIONS = MappingProxyType(
    {
        "arith.addf": "gl.sum", "arith.addi": "gl.sum", "arith.maxnumf": "gl.max", "arith.maxsi": "gl.max",
        "arith.maximumf": "gl.max", "arith.minnumf": "gl.min", "arith.minsi": "gl.min", "arith.minimumf": "gl.min",
        "arith.xori": "gl.xor_sum",
    }
)  # fmt: skip


_NUMBERS = re.compile(r"[\d\s()+*/%&|^<>.-]+")
"""What Triton computes itself while it compiles: a number, which has no ``to``."""

INLINE = frozenset({"arith.constant", "tt.splat", "tt.unsplat", "tt.broadcast", "tt.expand_dims"})
"""Ops that are written where their result is read."""


@dataclass(slots=True, kw_only=True)
class Writing:
    """What an expression needs: terms of the values read at one place, names of layouts, types of all values, and
    the op that made a value in the same instruction (``None``: another one did).
    """

    layouts: LayoutNames
    types: Mapping[str, TileType]
    term: Callable[[str], Term]
    beside: Callable[[str], KernelOp | None] = lambda _value: None

    def tile(self, value: str, where: str) -> str:
        """Return an expression that has the value's whole shape."""
        kind, found = self.types[value], self.term(value)
        if found.shape == kind.shape:
            return found.text
        if not found.shape:
            return full(found.text, kind, where, self.layouts)
        zeros = f"gl.zeros({list(kind.shape)}, {dtype(kind.dtype, where)}, {self.layouts.name(kind.layout, where)})"
        return f"({zeros} + {found.text})"


def pure(op: KernelOp, writing: Writing) -> Term | None:
    """Return the expression of a pure op, ``None`` for an op that touches memory or another unit.

    Raises:
        UnsupportedError: an op, or a form of it, that has no Gluon expression, with its source line.
    """
    dialect, _, name = op.opcode.partition(".")
    kind = op.results[0].type if len(op.results) == 1 else None
    if kind is None:
        return None
    if dialect == "arith" and name in _INFIX:
        return _elementwise(op, writing, lambda texts: f"({texts[0]} {_INFIX[name]} {texts[1]})")
    if (dialect == "arith" and name in _CASTS) or op.opcode in ("tt.fp_to_fp", "tt.bitcast"):
        return _cast(op, kind, writing)
    if op.opcode in _CALLS:
        return _call(op, writing)
    special = _SPECIAL.get(op.opcode)
    return None if special is None else special(op, kind, writing)


def bare(text: str) -> str:
    """Return an expression without parentheses around the whole of it."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    level = 0
    for at, sign in enumerate(text):
        level += (sign == "(") - (sign == ")")
        if level == 0:
            return text[1:-1] if at == len(text) - 1 else text
    return text


def _elementwise(op: KernelOp, writing: Writing, form: Callable[[list[str]], str]) -> Term:
    terms = [writing.term(operand) for operand in op.operands]
    shape = _broadcast([term.shape for term in terms])
    if op.results[0].type.shape and not shape:
        terms = [
            Term(text=writing.tile(operand, op.source), shape=op.results[0].type.shape) for operand in op.operands
        ]
        shape = op.results[0].type.shape
    return Term(text=form([term.text for term in terms]), shape=shape)


def _broadcast(shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    some = [shape for shape in shapes if shape]
    return tuple(max(sizes) for sizes in zip(*some, strict=True)) if some else ()


def _call(op: KernelOp, writing: Writing) -> Term:
    if op.opcode in _NAN_MOVES:
        raise UnsupportedError(
            op.source, "maximum and minimum that pass NaN on", "use tl.maximum as it is by default"
        )
    return _elementwise(op, writing, lambda texts: f"{_CALLS[op.opcode]}({', '.join(map(bare, texts))})")


def _cast(op: KernelOp, kind: TileType, writing: Writing) -> Term:
    found = writing.term(op.operands[0])
    same_bits = ", bitcast=True" if op.opcode.endswith("bitcast") else ""
    text = f"gl.to_tensor({bare(found.text)})" if _NUMBERS.fullmatch(found.text) else found.text
    return Term(text=f"{text}.to({dtype(kind.dtype, op.source)}{same_bits})", shape=found.shape)


def _constant(op: KernelOp, kind: TileType, _writing: Writing) -> Term:
    return Term(text=constant(op, kind))


def _same(op: KernelOp, _kind: TileType, writing: Writing) -> Term:
    return writing.term(op.operands[0])


def _spread(op: KernelOp, kind: TileType, writing: Writing) -> Term:
    """Return what is broadcast; Gluon has it in the layout of the result, TTGIR in any that is the same for it."""
    found = writing.term(op.operands[0])
    if not found.shape or writing.types[op.operands[0]].layout == kind.layout:
        return found
    text = f"gl.convert_layout({bare(found.text)}, {writing.layouts.name(kind.layout, op.source)})"
    return Term(text=text, shape=found.shape)


def _expand(op: KernelOp, kind: TileType, writing: Writing) -> Term:
    found = writing.term(op.operands[0])
    if not found.shape:
        return found
    axis = int((op.attribute("axis") or "0").split()[0])
    index = ", ".join("None" if at == axis else ":" for at in range(len(kind.shape)))
    shape = (*found.shape[:axis], 1, *found.shape[axis:])
    return Term(text=f"{found.text}[{index}]", shape=shape)


def _range(op: KernelOp, kind: TileType, writing: Writing) -> Term:
    first, last = (int((op.attribute(key) or "0").split()[0]) for key in ("start", "end"))
    return Term(text=f"gl.arange({first}, {last}, {writing.layouts.name(kind.layout, op.source)})", shape=kind.shape)


def _compare(op: KernelOp, _kind: TileType, writing: Writing) -> Term:
    number = int((op.attribute("predicate") or "-1").split()[0])
    sign = _INTEGER_TESTS[number] if op.opcode == "arith.cmpi" else _FLOAT_TESTS.get(number)
    if sign is None:
        raise UnsupportedError(op.source, "a comparison that asks for NaN alone", "compare the value with itself")
    return _elementwise(op, writing, lambda texts: f"({texts[0]} {sign} {texts[1]})")


def _negate(op: KernelOp, _kind: TileType, writing: Writing) -> Term:
    return _elementwise(op, writing, lambda texts: f"(-{texts[0]})")


def _convert(op: KernelOp, kind: TileType, writing: Writing) -> Term:
    found = writing.term(op.operands[0])
    if not found.shape:
        return found
    text = writing.tile(op.operands[0], op.source)
    return Term(text=f"gl.convert_layout({text}, {writing.layouts.name(kind.layout, op.source)})", shape=kind.shape)


def _reduce(op: KernelOp, kind: TileType, writing: Writing) -> Term:
    call = _REDUCTIONS.get(op.body[0]) if len(op.body) == len(op.operands) == 1 else None
    if call is None:
        raise UnsupportedError(op.source, f"a reduction by {', '.join(op.body)}", "reduce by sum, max or min")
    axis = int((op.attribute("axis") or "0").split()[0])
    return Term(text=f"{call}({writing.tile(op.operands[0], op.source)}, {axis})", shape=kind.shape)


def _transpose(op: KernelOp, kind: TileType, writing: Writing) -> Term:
    order = (op.attribute("order") or "").partition(":")[2].strip(" >")
    return Term(text=f"{writing.tile(op.operands[0], op.source)}.permute([{order}])", shape=kind.shape)


def _reshape(op: KernelOp, kind: TileType, writing: Writing) -> Term:
    text = f"{writing.tile(op.operands[0], op.source)}.reshape({list(kind.shape)})"
    return Term(text=f"gl.convert_layout({text}, {writing.layouts.name(kind.layout, op.source)})", shape=kind.shape)


def _program_id(op: KernelOp, _kind: TileType, _writing: Writing) -> Term:
    return Term(text=f"gl.program_id({_axis(op)})")


def _programs(op: KernelOp, _kind: TileType, _writing: Writing) -> Term:
    return Term(text=f"gl.num_programs({_axis(op)})")


def _axis(op: KernelOp) -> int:
    return int((op.attribute("axis") or "0").split()[0])


def _address(op: KernelOp, kind: TileType, writing: Writing) -> Term:
    """One base for all elements where that is possible: what a thread's elements differ by is then a constant in the
    instruction, and not an address of 64 bits in registers for each of them.
    """
    pointer, offsets = writing.term(op.operands[0]), writing.beside(op.operands[1])
    if offsets is not None and offsets.opcode == "arith.addi" and not pointer.shape:
        terms = [writing.term(operand) for operand in offsets.operands]
        same, different = [one for one in terms if not one.shape], [one for one in terms if one.shape]
        if same and different:
            return Term(text=f"(({pointer.text} + {same[0].text}) + {different[0].text})", shape=kind.shape)
    return _elementwise(op, writing, lambda texts: f"({texts[0]} + {texts[1]})")


_SPECIAL: Mapping[str, Callable[[KernelOp, TileType, Writing], Term]] = MappingProxyType(
    {
        "arith.constant": _constant,
        "arith.cmpi": _compare,
        "arith.cmpf": _compare,
        "arith.negf": _negate,
        "tt.splat": _same,
        "tt.unsplat": _same,
        "tt.broadcast": _spread,
        "tt.expand_dims": _expand,
        "tt.make_range": _range,
        "tt.reduce": _reduce,
        "tt.trans": _transpose,
        "tt.reshape": _reshape,
        "tt.addptr": _address,
        "tt.get_program_id": _program_id,
        "tt.get_num_programs": _programs,
        "ttg.convert_layout": _convert,
    }
)
