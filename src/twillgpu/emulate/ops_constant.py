"""Constants: ``arith.constant`` and what else makes values from nothing but attributes and the place in the grid."""

from __future__ import annotations

import re

import numpy as np

from twillgpu.emulate.call import Call, Rule, Value
from twillgpu.emulate.numbers import Array, format_of, poison, rounded

_DENSE = re.compile(r"dense<(.*?)>(?:\s*:.*)?", re.DOTALL)
_HEX_BLOB = re.compile(r'"0x([0-9A-Fa-f]*)"')
_ELEMENT = re.compile(r"[^\s,\[\]]+")


def _constant(call: Call) -> Value:
    text, kind = call.op.attribute("value") or "", call.result
    match = _DENSE.fullmatch(text)
    body = match.group(1) if match else text.split(" : ")[0]
    if blob := _HEX_BLOB.fullmatch(body):
        values = format_of(kind.dtype).decode(_bits(blob.group(1), kind.dtype))
    else:
        values = np.asarray([_element(word, kind.dtype) for word in _ELEMENT.findall(body)])
    if values.size not in (1, int(np.prod(kind.shape, dtype=np.int64))):
        raise call.unsupported(f"its value {text[:40]!r} has {values.size} elements")
    tile = values.reshape(kind.shape) if values.size > 1 else np.full(kind.shape, values.reshape(-1)[0])
    return tile.astype(format_of(kind.dtype).carrier)[()]


def _element(word: str, dtype: str) -> Value:
    """Return one literal: ``true``, ``-3``, ``1.5e+00``, or the bits of a float in hexadecimal."""
    if word in ("true", "false"):
        return np.bool_(word == "true")
    form = format_of(dtype)
    if word.startswith("0x") and form.is_float:
        digits = word[2:].zfill(2 * form.size_bytes)
        return form.decode(_bits(digits, dtype, byteorder="big"))[0]
    if form.is_float:
        return rounded(np.asarray(word, np.float64), dtype)
    # MLIR prints integers as signed.
    return np.int64(int(word, 0))


def _bits(digits: str, dtype: str, *, byteorder: str = "little") -> Array:
    storage = format_of(dtype).storage
    order = storage.newbyteorder(">" if byteorder == "big" else "<")
    return np.frombuffer(bytes.fromhex(digits), order).astype(storage)


def _poison(call: Call) -> Value:
    kind = call.result
    return format_of(kind.dtype).decode(poison(kind.shape, kind.dtype))[()]


CONSTANT_RULES: dict[str, Rule] = {
    "arith.constant": _constant,
    "ub.poison": _poison,
    "tt.get_program_id": lambda call: np.int32(call.context.program[call.integer("axis", 0)]),
    "tt.get_num_programs": lambda call: np.int32(call.context.grid[call.integer("axis", 0)]),
    "tt.make_range": lambda call: np.arange(call.integer("start"), call.integer("end"), dtype=np.int32),
}
