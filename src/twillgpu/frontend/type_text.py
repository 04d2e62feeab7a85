"""Types of values as text, shared by the texts of kernels and of warp programs.

``registers<128xf32, #slice>``, ``smem<128x64xf16, #nvmma_shared, mutable>``, ``token``; layouts by alias.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import get_args

from twillgpu.frontend.kernel import Space, TileType
from twillgpu.frontend.scanner import Scanner

_DTYPE = re.compile(r"[A-Za-z_]\w*(?:<\w+>)?", re.ASCII)
_ALIAS = re.compile(r"#[\w]+")
_HEAD = re.compile(r"#(?:\w+\.)*(\w+)")
_SPACE = re.compile(r"[a-z]+")
_SIZE = re.compile(r"(\d+)x")
_MUTABLE = re.compile(r"mutable(?![\w.$'\-])")
_SPACES = {str(space): space for space in get_args(Space)}


def layout_aliases(layouts: Iterable[str]) -> dict[str, str]:
    """Return an alias for each layout, named after its outermost attribute (``#nvmma_shared``, ``#slice_1``)."""
    aliases: dict[str, str] = {}
    for layout in sorted({*layouts} - {""}):
        match = _HEAD.match(layout)
        base = f"#{match.group(1) if match else 'layout'}"
        number = sum(re.fullmatch(rf"{base}(?:_\d+)?", alias) is not None for alias in aliases.values())
        aliases[layout] = f"{base}_{number}" if number else base
    return aliases


def print_type(kind: TileType, aliases: Mapping[str, str]) -> str:
    """Return the text of a type; ``aliases`` maps each layout to its alias."""
    if kind == TileType(space=kind.space):
        return kind.space
    shape = "".join(f"{size}x" for size in kind.shape)
    dtype = kind.dtype if _DTYPE.fullmatch(kind.dtype) else json.dumps(kind.dtype)
    parts = [shape + dtype]
    if kind.layout:
        parts.append(aliases[kind.layout])
    if kind.mutable:
        parts.append("mutable")
    return f"{kind.space}<{', '.join(parts)}>"


def read_layout(scan: Scanner, layouts: dict[str, str]) -> str:
    """Read ``#alias = "layout"``, add it to ``layouts`` (alias to layout) and return the alias."""
    alias = scan.token(_ALIAS, "a layout's alias")
    scan.expect("=")
    layouts[alias] = scan.json_string("a layout")
    return alias


def read_type(scan: Scanner, layouts: Mapping[str, str]) -> TileType:
    """Read a type; ``layouts`` maps each alias to its layout.

    Raises ``InputError`` with the line where the text is no type, or where a layout is not defined.
    """
    space = _SPACES.get(scan.token(_SPACE, "a space such as registers or smem"))
    if space is None:
        raise scan.error(f"expected one of {', '.join(_SPACES)}")
    if not scan.eat("<"):
        return TileType(space=space)
    shape = []
    while size := scan.match(_SIZE):
        shape.append(int(size.group(1)))
    dtype = scan.json_string("an element type") if scan.peek('"') else scan.token(_DTYPE, "an element type")
    layout, mutable = "", False
    while scan.eat(","):
        if scan.match(_MUTABLE):
            mutable = True
        else:
            layout = _layout_of(scan, layouts)
    scan.expect(">")
    return TileType(space=space, shape=tuple(shape), dtype=dtype, layout=layout, mutable=mutable)


def _layout_of(scan: Scanner, layouts: Mapping[str, str]) -> str:
    alias = scan.token(_ALIAS, "a layout's alias or mutable")
    if alias not in layouts:
        raise scan.error(f"the layout {alias} is not defined")
    return layouts[alias]
