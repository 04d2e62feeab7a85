"""Element types by Gluon's names, and which type an operation on two of them has."""

from __future__ import annotations

from dataclasses import dataclass

from twillgpu.emulate.numbers import format_of

_KINDS = ("i1", "integer", "float")


@dataclass(frozen=True, slots=True, kw_only=True)
class DType:
    """An element type: MLIR's name, Triton's name, and whether integers have no sign."""

    name: str
    triton: str
    unsigned: bool = False

    def __str__(self) -> str:
        return self.triton

    @property
    def is_float(self) -> bool:
        """Whether values are floating-point numbers."""
        return not self.is_pointer and format_of(self.name).is_float

    @property
    def is_pointer(self) -> bool:
        """Whether values are addresses."""
        return self.name.startswith("ptr")

    @property
    def element(self) -> DType:
        """What a pointer points to."""
        inner = self.name.removeprefix("ptr<").removesuffix(">")
        return next(found for found in DTYPES.values() if found.name == inner)

    @property
    def size_bytes(self) -> int:
        """Bytes of one element."""
        return format_of(self.name).size_bytes

    @property
    def primitive_bitwidth(self) -> int:
        """Bits of one element, by Triton's name for it."""
        return 1 if self.name == "i1" else 8 * self.size_bytes

    @property
    def kind(self) -> int:
        """Rank of its kind: i1, integer, float."""
        return 2 if self.is_float else 0 if self.name == "i1" else 1

    def is_fp8(self) -> bool:
        """Return whether it is an 8-bit float."""
        return self.name.startswith("f8")

    def is_floating(self) -> bool:
        """Return whether it is a float."""
        return self.is_float


DTYPES = {
    gluon: DType(name=name, triton=triton, unsigned=gluon.startswith("u"))
    for gluon, name, triton in (
        ("float16", "f16", "fp16"), ("bfloat16", "bf16", "bf16"), ("float32", "f32", "fp32"),
        ("float64", "f64", "fp64"), ("float8e4nv", "f8E4M3FN", "fp8e4nv"), ("float8e5", "f8E5M2", "fp8e5"),
        ("int1", "i1", "int1"), ("int8", "i8", "int8"), ("int16", "i16", "int16"), ("int32", "i32", "int32"),
        ("int64", "i64", "int64"), ("uint8", "i8", "uint8"), ("uint16", "i16", "uint16"), ("uint32", "i32", "uint32"),
        ("uint64", "i64", "uint64"),
    )
}  # fmt: skip
"""Gluon's names."""

F16, BF16, F32, F64 = (DTYPES[name] for name in ("float16", "bfloat16", "float32", "float64"))
I1, I32, I64 = (DTYPES[name] for name in ("int1", "int32", "int64"))


def pointer_to(element: DType) -> DType:
    """Return the type of a pointer."""
    return DType(name=f"ptr<{element.name}>", triton=f"*{element.triton}")


def of_mlir(name: str) -> DType:
    """Return the (signed) type that MLIR calls ``name``."""
    return next(found for found in DTYPES.values() if found.name == name)


def common(one: DType, two: DType, *, division: bool = False) -> DType:
    """Return the type in which two tiles are combined, by Triton's rules of promotion: the kind decides before the
    size; a quotient of 16-bit floats is an f32.
    """
    if one.kind != two.kind:
        found = one if one.kind > two.kind else two
    elif one.is_float:
        found = _wider_float(one, two)
    else:
        found = max(one, two, key=lambda kind: (kind.size_bytes, kind.unsigned))
    return F32 if division and found.is_float and found.size_bytes < F32.size_bytes else found


def with_number(kind: DType, number: float, *, division: bool = False) -> DType:
    """Return the type in which a tile of ``kind`` is combined with a number of the source text: the tile's, if the
    number fits its kind.
    """
    rank = 0 if isinstance(number, bool) else 1 if isinstance(number, int) else 2
    found = kind if rank <= kind.kind else F32 if rank == len(_KINDS) - 1 else I32
    return common(found, found, division=division)


def _wider_float(one: DType, two: DType) -> DType:
    if one == two:
        return one
    if F64 in (one, two):
        return F64
    if F32 in (one, two) or {one, two} == {F16, BF16}:
        return F32
    return BF16 if BF16 in (one, two) else F16
