"""What stands above the groups in an emitted file: imports, names that changed between versions of Triton, helpers.

Only what the file uses is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

WORD = re.compile(r"[A-Za-z_]\w*")

_FROM = (
    ("triton.experimental", ("gluon",)),
    ("triton.experimental.gluon", ("language as gl",)),
    ("triton.experimental.gluon.language.nvidia", ("blackwell",)),
    ("triton.experimental.gluon.language.nvidia.ampere", ("async_copy",)),
    (
        "triton.experimental.gluon.language.nvidia.blackwell",
        ("TensorMemoryLayout", "allocate_tensor_memory", "tcgen05_commit", "tcgen05_mma"),
    ),
    (
        "triton.experimental.gluon.language.nvidia.hopper",
        ("fence_async_shared", "mbarrier", "tma", "warpgroup_mma", "warpgroup_mma_init", "warpgroup_mma_wait"),
    ),
    ("triton.experimental.gluon.nvidia.hopper", ("TensorDescriptor",)),
)

_LOAD = ('tma_load = getattr(tma, "async_load", None) or tma.async_copy_global_to_shared',)
_COPY = ('cp_async = getattr(async_copy, "async_load", None) or async_copy.async_copy_global_to_shared',)
_STORE = ('tma_store = getattr(tma, "async_store", None) or tma.async_copy_shared_to_global',)
_REINTERPRET = (
    "for kind in (gl.shared_memory_descriptor, blackwell.tensor_memory_descriptor):",
    '    if not hasattr(kind, "reinterpret"):',
    "        kind.reinterpret = kind._reinterpret",
)
_PIECE = '''SLICES = gl.constexpr(hasattr(tma, "async_load"))


@gluon.jit
def piece(pool, first: gl.constexpr, count: gl.constexpr):
    """Return chunks of a pool; what is made of them may be larger than the one chunk that Triton 3.6 can name."""
    if SLICES:
        return pool.slice(first, count, 0)
    else:
        return pool.index(first)'''
_OWN = '''@gluon.jit
def own(value):
    """Return a copy; what is made of it is not made before: where the groups part, or where a loop begins."""
    return gl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [value], dtype=value.dtype, is_pure=False, pack=1)'''
_ADD = '''TMA_ADDS = gl.constexpr(hasattr(tma, "async_atomic_add"))
tma_reduce = getattr(tma, "async_atomic_add", None)


@gluon.jit
def tma_add(descriptor, base, stride, row, column, source, ROWS: gl.constexpr, COLUMNS: gl.constexpr):
    """Add a tile to global memory: by TMA, or by atomics where Gluon cannot write that (Triton 3.6)."""
    if TMA_ADDS:
        tma_reduce(descriptor, [row, column], source)
    else:
        layout: gl.constexpr = gl.BlockedLayout([1, 4], [1, 32], [gl.num_warps(), 1], [1, 0])
        columns = column + gl.arange(0, COLUMNS, gl.SliceLayout(0, layout))
        for part in gl.static_range(ROWS // 8):
            rows = row + part * 8 + gl.arange(0, 8, gl.SliceLayout(1, layout))
            tile = source.slice(part * 8, 8, 0).load(layout)
            gl.atomic_add(base + rows[:, None] * stride + columns[None, :], tile)'''


def preamble(body: Iterable[str]) -> Iterator[str]:
    """Yield the lines above ``body``."""
    words = {word for line in body for word in WORD.findall(line)}
    names = list(_changed_names(words))
    helpers = [text for name, text in (("own", _OWN), ("piece", _PIECE), ("tma_add", _ADD)) if name in words]
    words |= {word for text in (*names, *helpers) for word in WORD.findall(text)}
    yield from _imports(words)
    if names:
        yield from ("", "# Names that changed between Triton 3.6 and 3.9.", *names)
    for number, text in enumerate(helpers):
        yield from ("", *([""] if number or text.startswith("@") else []), *text.split("\n"))
    yield from [""] * bool(helpers)


def _changed_names(words: set[str]) -> Iterator[str]:
    yield from _LOAD if "tma_load" in words else ()
    yield from _COPY if "cp_async" in words else ()
    yield from _STORE if "tma_store" in words else ()
    yield from _REINTERPRET if "reinterpret" in words else ()


def _imports(words: set[str]) -> Iterator[str]:
    for module, names in _FROM:
        used = [name for name in names if name.split()[-1] in words]
        line = f"from {module} import {', '.join(used)}"
        if used and len(line) <= 88:
            yield line
        elif used:
            yield f"from {module} import ("
            yield from (f"    {name}," for name in used)
            yield ")"
