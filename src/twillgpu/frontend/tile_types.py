"""From the text of an MLIR type of Triton's dialects to a ``TileType``."""

from __future__ import annotations

import re

from twillgpu.frontend.kernel import Space, TileType

_SHAPED = re.compile(r"((?:\d+x)*)(.+)", re.DOTALL)
_SCALAR = re.compile(r"(?:[su]?i\d+|index|f\d+\w*|bf16|tf32)")


def tile_type(text: str) -> TileType:
    """Return the type that ``text``, with its aliases expanded, stands for.

    ``tensor`` is a register tile; ``!ttg.memdesc`` is in SMEM or TMEM by its memory space; ``!tt.tensordesc``
    is a TMA descriptor (with or without an inner ``tensor``: both spellings exist); ``!tt.ptr`` is a scalar pointer;
    any other type keeps its text as ``dtype`` in the space ``none``.
    """
    name, inner = _split_head(text)
    if name == "tensor":
        return _shaped("registers", inner)
    if name == "!ttg.memdesc":
        return _memory(inner)
    if name == "!tt.tensordesc":
        return _shaped("descriptor", _split_head(inner)[1] if inner.startswith("tensor<") else inner)
    if name == "!tt.ptr":
        return TileType(space="global", dtype=_element(text))
    if text == "!ttg.async.token":
        return TileType(space="token")
    return TileType(space="scalar" if _SCALAR.fullmatch(text) else "none", dtype=text)


def split_top(text: str) -> tuple[str, ...]:
    """Return the parts of ``text`` between commas that are outside all brackets, stripped."""
    parts, depth, start = [], 0, 0
    for at, character in enumerate(text):
        if character in "<([{":
            depth += 1
        elif character in ">)]}" and text[at - 1 : at] != "-":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return (*parts, text[start:].strip())


def _split_head(text: str) -> tuple[str, str]:
    head, bracket, rest = text.partition("<")
    return (head, rest.removesuffix(">")) if bracket else (text, "")


def _memory(inner: str) -> TileType:
    parts = split_top(inner)
    shape, dtype = _shape(parts[0])
    layout = parts[1] if len(parts) > 1 else ""
    space: Space = "tmem" if any("tensor_memory" in part for part in parts[1:]) else "smem"
    return TileType(space=space, shape=shape, dtype=dtype, layout=layout, mutable="mutable" in parts)


def _shaped(space: Space, inner: str) -> TileType:
    parts = split_top(inner)
    shape, dtype = _shape(parts[0])
    return TileType(space=space, shape=shape, dtype=dtype, layout=parts[1] if len(parts) > 1 else "")


def _shape(text: str) -> tuple[tuple[int, ...], str]:
    match = _SHAPED.fullmatch(text)
    if match is None:
        return (), text
    return tuple(int(size) for size in match.group(1).split("x") if size), _element(match.group(2))


def _element(text: str) -> str:
    return text.replace("!tt.", "")
