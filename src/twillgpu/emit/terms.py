"""Names of kernel values and layouts in Gluon source, and literals of constants."""

from __future__ import annotations

import keyword
import re
import struct
from dataclasses import dataclass, field

from twillgpu.emit.layouts import dtype, parent, stem
from twillgpu.emit.widths import fitted
from twillgpu.errors import UnsupportedError
from twillgpu.frontend.kernel import KernelOp, TileType

_DENSE = re.compile(r"dense<(.*)> : .*", re.DOTALL)
_FLOATS = {16: "<e", 32: "<f", 64: "<d"}
_RESERVED = frozenset({*keyword.kwlist, "gl", "gluon", "tma", "mbarrier", "t", "trips", "base", "tile", "barriers"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """An expression; ``shape`` is that of the tile that it has as written, empty for a scalar."""

    text: str
    shape: tuple[int, ...] = ()


@dataclass(slots=True, kw_only=True)
class Names:
    """Python names for kernel values, each unique."""

    taken: dict[str, str] = field(default_factory=dict)

    def name(self, value: str) -> str:
        """Return the Python name of a kernel value."""
        if value not in self.taken:
            wanted = re.sub(r"\W", "_", value.partition("\N{NO-BREAK SPACE}")[0])
            wanted = f"{wanted}_" if wanted in _RESERVED or wanted[0].isdigit() else wanted
            used = set(self.taken.values())
            while wanted in used:
                wanted += "_"
            self.taken[value] = wanted
        return self.taken[value]


def constant(op: KernelOp, kind: TileType) -> str:
    """Return the literal of an ``arith.constant``: of a scalar, or of the element that a tile is full of.

    Raises:
        UnsupportedError: a tile whose elements differ.
    """
    text = (op.attribute("value") or "").strip('"')
    dense = _DENSE.fullmatch(text)
    word = (dense.group(1) if dense else text.split(" : ")[0]).strip()
    if word in ("true", "false"):
        return word.capitalize()
    if word.startswith(("[", '"')):
        raise UnsupportedError(op.source or op.name, "a constant tile with different elements", "compute it instead")
    if word.startswith("0x"):
        return _from_bits(int(word, 16), kind.dtype)
    return _plain(float(word)) if kind.dtype.startswith(("f", "bf")) else word


def _from_bits(bits: int, name: str) -> str:
    if name == "bf16":
        return _plain(struct.unpack("<f", struct.pack("<I", bits << 16))[0])
    width = int(name[1:])
    form = _FLOATS[width]
    return _plain(struct.unpack(form, bits.to_bytes(width // 8, "little"))[0])


def _plain(value: float) -> str:
    if value != value:  # noqa: PLR0124  # NaN is the one number that differs from itself
        return 'float("nan")'
    if value in (float("inf"), float("-inf")):
        return f'float("{value}")'
    return repr(value)


def full(value: str, kind: TileType, where: str, layouts: LayoutNames) -> str:
    """Return the expression of a tile that is full of one value."""
    return f"gl.full({list(kind.shape)}, {value}, {dtype(kind.dtype, where)}, {layouts.name(kind.layout, where)})"


@dataclass(slots=True, kw_only=True)
class LayoutNames:
    """Names for the layouts that a source file uses, in the order of their first use.

    ``warps``: warps of the group that is being written, 0 while none is; its tiles are in layouts for so many.
    """

    names: dict[str, str] = field(default_factory=dict)
    warps: int = 0

    def name(self, text: str, where: str) -> str:
        """Return the name of a layout, a new one where it was not used before. ``where`` is for the error."""
        if not text:
            raise UnsupportedError(where, "a tile without a layout", "emit from a kernel, not from graph JSON")
        text = fitted(text, self.warps) if self.warps else text
        if text not in self.names:
            of = parent(text)
            wanted = stem(text, self.name(of, where) if of else "")
            taken, name, like = set(self.names.values()), wanted, 1
            while name in taken:
                like += 1
                name = f"{wanted}_{like}"
            self.names[text] = name
        return self.names[text]


def name_of_zero(kind: str) -> str:
    """Return a scalar zero of an element type."""
    return f"gl.to_tensor(0).to({dtype(kind, kind)})"
