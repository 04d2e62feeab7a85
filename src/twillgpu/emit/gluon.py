"""A warp program as one self-contained Gluon source file, for Triton 3.6.0 to 3.9.0."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from twillgpu.emit.frame import Frame
from twillgpu.emit.group import INDENT, GroupWriter
from twillgpu.emit.launcher import launcher
from twillgpu.emit.layouts import layout
from twillgpu.emit.storage import allocations
from twillgpu.frontend.kernel import KernelValue
from twillgpu.lower.record import GroupProgram, WarpProgram

_WORD = re.compile(r"[A-Za-z_]\w*")
_POINTEE = {"f16": "fp16", "bf16": "bf16", "f32": "fp32", "f64": "fp64", "f8E4M3FN": "fp8e4nv", "f8E5M2": "fp8e5"}

ADDING = """

TMA_ADDS = gl.constexpr(hasattr(tma, "async_atomic_add"))


@gluon.jit
def tma_add(descriptor, base, stride, row, column, source, ROWS: gl.constexpr, COLUMNS: gl.constexpr):
    if TMA_ADDS:
        tma.async_atomic_add(descriptor, [row, column], source)
    else:
        layout: gl.constexpr = gl.BlockedLayout([1, 4], [1, 32], [gl.num_warps(), 1], [1, 0])
        columns = column + gl.arange(0, COLUMNS, gl.SliceLayout(0, layout))
        for part in gl.static_range(ROWS // 8):
            rows = row + part * 8 + gl.arange(0, 8, gl.SliceLayout(1, layout))
            gl.atomic_add(base + rows[:, None] * stride + columns[None, :], source.slice(part * 8, 8, 0).load(layout))
"""
"""A sum of a tile in global memory; Gluon can write it as a TMA operation from Triton 3.7 on."""

COMPATIBILITY = """
# Names that changed between Triton 3.6 and 3.9.
tma_load = getattr(tma, "async_load", None) or tma.async_copy_global_to_shared
tma_store = getattr(tma, "async_store", None) or tma.async_copy_shared_to_global
for kind in (gl.shared_memory_descriptor, blackwell.tensor_memory_descriptor):
    if not hasattr(kind, "reinterpret"):
        kind.reinterpret = kind._reinterpret
SLICES = gl.constexpr(hasattr(tma, "async_load"))


@gluon.jit
def piece(pool, first: gl.constexpr, count: gl.constexpr):
    if SLICES:
        return pool.slice(first, count, 0)
    else:
        return pool.index(first)

"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """What the header of an emitted file says: how the schedule was made and what is proved about it."""

    lines: tuple[str, ...] = ()


def emit(program: WarpProgram, provenance: Provenance | None = None) -> str:
    """Return the source file. The same program and provenance give the same text.

    Raises:
        UnsupportedError: what has no Gluon form, with the source line and the reason.
    """
    frame = Frame(program=program)
    groups = ordered(program)
    names = {group.name: frame.names.name(f"group {group.name}") for group in groups}
    bodies = {group.name: GroupWriter(frame=frame, group=group).write() for group in groups}
    stored = list(allocations(frame))
    passed = {group.name: _used(frame, bodies[group.name]) for group in groups}
    parts = [
        *_header(program, groups, provenance or Provenance()),
        *_layouts(frame),
        *(ADDING.rstrip("\n").split("\n") if frame.bases else ()),
        *(line for group in groups for line in _function(names[group.name], passed[group.name], bodies[group.name])),
        *_kernel(frame, groups, names, passed, stored),
        *_compiled(frame, groups, names, _in_use(frame, passed)),
        *launcher(frame, kernel_name(program), groups[0].warps, _in_use(frame, passed)),
    ]
    return "\n".join(parts) + "\n"


def kernel_name(program: WarpProgram) -> str:
    """Return the name of the emitted kernel."""
    return f"{program.kernel.name}_specialised"


def ordered(program: WarpProgram) -> tuple[GroupProgram, ...]:
    """Return the groups with the default partition first: it must have the warps of a whole warpgroup."""
    widest = max(program.groups, key=lambda group: (group.warps == 4, group.warps))
    return (widest, *sorted((one for one in program.groups if one is not widest), key=lambda one: -one.warps))


def _header(program: WarpProgram, groups: Sequence[GroupProgram], provenance: Provenance) -> Iterator[str]:
    kernel = program.kernel
    yield f'"""{kernel.name}, warp-specialised for {program.machine}: one iteration in {program.ii_cycles:,} cycles.'
    yield ""
    for group in groups:
        warps = f"{group.warps} warp{'s' * (group.warps > 1)}"
        yield f"{group.name}: {warps}, {group.registers_per_thread} registers per thread."
    if provenance.lines:
        yield ""
        yield from provenance.lines
    yield '"""'
    yield ""
    yield from (
        "import triton",
        "from triton.experimental import gluon",
        "from triton.experimental.gluon import language as gl",
        "from triton.experimental.gluon.language.nvidia import blackwell",
        "from triton.experimental.gluon.language.nvidia.ampere import async_copy",
        "from triton.experimental.gluon.language.nvidia.blackwell import (",
        "    TensorMemoryLayout,",
        "    allocate_tensor_memory,",
        "    tcgen05_commit,",
        "    tcgen05_mma,",
        ")",
        "from triton.experimental.gluon.language.nvidia.hopper import (",
        "    fence_async_shared,",
        "    mbarrier,",
        "    tma,",
        "    warpgroup_mma,",
        "    warpgroup_mma_init,",
        "    warpgroup_mma_wait,",
        ")",
        "from triton.experimental.gluon.nvidia.hopper import TensorDescriptor",
    )
    yield from COMPATIBILITY.rstrip("\n").split("\n")
    yield ""


def _layouts(frame: Frame) -> Iterator[str]:
    for text, name in frame.layouts.names.items():
        yield f"{name} = gl.constexpr({layout(text, name)})"


def _used(frame: Frame, body: Sequence[str]) -> tuple[str, ...]:
    """Return the parameters that a function needs, in a fixed order: arguments of the kernel, rings, barriers."""
    words = {word for line in body for word in _WORD.findall(line)}
    return tuple(name for name in (*_arguments(frame), *_storages(frame)) if name in words)


def _arguments(frame: Frame) -> tuple[str, ...]:
    """Return the names of the emitted kernel's parameters: descriptors, pointers and scalars."""
    described = [*sorted(frame.descriptors.values()), *sorted(frame.bases.values())]
    plain = [value for value in frame.program.kernel.arguments if value.type.space != "descriptor"]
    return (*described, *(frame.names.name(value.name) for value in plain))


def _storages(frame: Frame) -> tuple[str, ...]:
    rings = (frame.ring_name(ring) for ring in frame.program.rings)
    return (*rings, *(frame.barrier_name(barrier.name) for barrier in frame.program.barriers))


def _function(name: str, parameters: Sequence[str], body: Sequence[str]) -> Iterator[str]:
    yield from ("", "", "@gluon.jit", f"def {name}({', '.join(parameters)}):")
    yield from (f"{INDENT}{line}" if line else "" for line in body)


def _kernel(
    frame: Frame,
    groups: Sequence[GroupProgram],
    names: dict[str, str],
    passed: dict[str, tuple[str, ...]],
    stored: Sequence[str],
) -> Iterator[str]:
    yield from ("", "", "@gluon.jit", f"def {kernel_name(frame.program)}({', '.join(_in_use(frame, passed))}):")
    yield from (f"{INDENT}{line}" for line in stored)
    yield f"{INDENT}gl.warp_specialize("
    yield f"{INDENT * 2}["
    for group in groups:
        arguments = ", ".join(passed[group.name])
        yield f"{INDENT * 3}({names[group.name]}, ({arguments}{',' if len(passed[group.name]) == 1 else ''})),"
    yield f"{INDENT * 2}],"
    yield f"{INDENT * 2}{[group.warps for group in groups[1:]]},"
    yield f"{INDENT * 2}{[group.registers_per_thread for group in groups[1:]]},"
    yield f"{INDENT})"


def _in_use(frame: Frame, passed: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    used = {name for names in passed.values() for name in names}
    return tuple(name for name in _arguments(frame) if name in used)


def _compiled(
    frame: Frame, groups: Sequence[GroupProgram], names: dict[str, str], parameters: Sequence[str]
) -> Iterator[str]:
    """Yield what the offline compiler needs to know."""
    program = frame.program
    yield from ("", "", "# How to compile it without a GPU.", f"KERNEL = {kernel_name(program)}", "SIGNATURE = {")
    for (argument, shape, text), name in sorted(frame.descriptors.items(), key=lambda item: item[1]):
        element = _pointee(frame.types[argument].dtype)
        sizes = ",".join(map(str, shape))
        yield f'{INDENT}"{name}": f"tensordesc<{element}[{sizes}],{{{frame.layouts.name(text, name)}.value!r}}>",'
    for argument, name in sorted(frame.bases.items(), key=lambda item: item[1]):
        yield f'{INDENT}"{name}": "*{_pointee(frame.types[argument].dtype)}",'
    for value in program.kernel.arguments:
        if frame.names.name(value.name) in parameters and value.type.space != "descriptor":
            yield f'{INDENT}"{frame.names.name(value.name)}": "{_scalar(value)}",'
    yield from ("}", "CONSTANTS = {}", "ATTRIBUTES = {}", f"NUM_WARPS = {groups[0].warps}")
    yield f'TARGET = "{program.kernel.target}"'
    yield f"GROUPS = ({', '.join(repr(names[group.name]) for group in groups)},)"


def _pointee(name: str) -> str:
    return _POINTEE.get(name, name)


def _scalar(value: KernelValue) -> str:
    kind = value.type.dtype
    if kind.startswith("ptr<"):
        return f"*{_pointee(kind[4:-1])}"
    return _pointee(kind)
