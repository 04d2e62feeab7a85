"""Layouts and element types of TTGIR as Gluon expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from twillgpu.errors import UnsupportedError
from twillgpu.frontend.layouts import Layout, parse_layout

DTYPES: Mapping[str, str] = MappingProxyType(
    {
        "f16": "gl.float16", "bf16": "gl.bfloat16", "f32": "gl.float32", "f64": "gl.float64",
        "f8E4M3FN": "gl.float8e4nv", "f8E5M2": "gl.float8e5",
        "i1": "gl.int1", "i8": "gl.int8", "i16": "gl.int16", "i32": "gl.int32", "i64": "gl.int64",
    }
)  # fmt: skip
"""Element types of TTGIR and their names in Gluon."""

_STEMS: Mapping[str, str] = MappingProxyType(
    {
        "nvidia_mma": "MMA",
        "nvmma_shared": "SHARED",
        "swizzled_shared": "SWIZZLED",
        "tensor_memory_encoding": "TMEM",
        "linear": "TILE",
    }
)
"""Names of layouts of each kind."""


def dtype(name: str, where: str) -> str:
    """Return the Gluon name of an element type. Raises ``UnsupportedError`` for one that Gluon does not have."""
    if name not in DTYPES:
        raise UnsupportedError(where, f"element type {name} has no Gluon name", "use fp16, bf16, fp32 or fp8")
    return DTYPES[name]


def parent(text: str) -> str:
    """Return the layout that a slice or an operand layout is of, empty for others."""
    found = parse_layout(text)
    return found.get("parent") if found is not None else ""


def stem(text: str, parent_name: str) -> str:
    """Return a name for a layout: what it is for."""
    found = parse_layout(text)
    name = found.name if found is not None else ""
    if found is not None and name == "slice":
        return f"{parent_name}_{'ROWS' if found.get('dim').startswith('1') else 'COLUMNS'}"
    if found is not None and name == "dot_op":
        return f"{parent_name}_{'A' if found.get('opIdx').startswith('0') else 'B'}"
    return _STEMS.get(name, name.upper())


def layout(text: str, where: str, parent_name: str = "") -> str:
    """Return the Gluon expression that builds a layout; ``parent_name``: the expression of the one that it is of.

    Raises:
        UnsupportedError: a layout that Gluon cannot write, with the place.
    """
    found = parse_layout(text)
    build = None if found is None else _BUILDERS.get(found.name)
    if found is None or build is None:
        raise UnsupportedError(where, f"layout {text} has no Gluon form", "report it, with the kernel")
    return build(found, parent_name, where)


def _vector(found: Layout, key: str) -> str:
    return str(list(found.numbers(key)))


def _blocked(found: Layout, _parent: str, _where: str) -> str:
    keys = ("sizePerThread", "threadsPerWarp", "warpsPerCTA", "order")
    return f"gl.BlockedLayout({', '.join(_vector(found, key) for key in keys)})"


def _slice(found: Layout, parent_name: str, where: str) -> str:
    return f"gl.SliceLayout({found.number('dim')}, {parent_name or layout(found.get('parent'), where)})"


def _tensor_core(found: Layout, _parent: str, _where: str) -> str:
    version = [found.number("versionMajor"), found.number("versionMinor")]
    return (
        f"gl.NVMMADistributedLayout(version={version}, warps_per_cta={_vector(found, 'warpsPerCTA')},"
        f" instr_shape={_vector(found, 'instrShape')})"
    )


def _operand(found: Layout, parent_name: str, where: str) -> str:
    whole = parent_name or layout(found.get("parent"), where)
    width = found.number("kWidth") if found.get("kWidth") else 0
    return f"gl.DotOperandLayout({found.number('opIdx')}, {whole}, {width})"


def _linear(found: Layout, _parent: str, _where: str) -> str:
    bases = {key: [list(vector) for vector in found.vectors(key)] for key in ("register", "lane", "warp", "block")}
    some = next(vector for vectors in bases.values() for vector in vectors)
    shape = [1] * len(some)
    for vector in (vector for vectors in bases.values() for vector in vectors):
        shape = [max(size, 2 * step) for size, step in zip(shape, vector, strict=True)]
    return (
        f"gl.DistributedLinearLayout(reg_bases={bases['register']}, lane_bases={bases['lane']},"
        f" warp_bases={bases['warp']}, block_bases={bases['block']}, shape={shape})"
    )


def _nvmma_shared(found: Layout, _parent: str, _where: str) -> str:
    transposed = ", transposed=True" if found.get("transposed") == "true" else ""
    return (
        f"gl.NVMMASharedLayout(swizzle_byte_width={found.number('swizzlingByteWidth')},"
        f" element_bitwidth={found.number('elementBitWidth')}{transposed})"
    )


def _swizzled(found: Layout, _parent: str, _where: str) -> str:
    numbers = ", ".join(str(found.number(key)) for key in ("vec", "perPhase", "maxPhase"))
    return f"gl.SwizzledSharedLayout({numbers}, order={_vector(found, 'order')})"


def _tensor_memory(found: Layout, _parent: str, _where: str) -> str:
    return f"TensorMemoryLayout(({found.number('blockM')}, {found.number('blockN')}), col_stride=1)"


_BUILDERS: Mapping[str, Callable[[Layout, str, str], str]] = MappingProxyType(
    {
        "blocked": _blocked,
        "slice": _slice,
        "nvidia_mma": _tensor_core,
        "dot_op": _operand,
        "linear": _linear,
        "nvmma_shared": _nvmma_shared,
        "swizzled_shared": _swizzled,
        "tensor_memory_encoding": _tensor_memory,
    }
)
