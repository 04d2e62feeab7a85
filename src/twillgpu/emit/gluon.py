"""A warp program as one self-contained Gluon source file, for Triton 3.6.0 to 3.9.0."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from twillgpu.emit.frame import BARRIERS, Frame
from twillgpu.emit.group import INDENT, GroupWriter
from twillgpu.emit.launcher import annotation, launcher, pointee, scalar
from twillgpu.emit.layouts import layout, parent
from twillgpu.emit.preamble import WORD, preamble
from twillgpu.emit.quotas import filled
from twillgpu.emit.record import Form
from twillgpu.emit.storage import allocations, barrier_places, skipped
from twillgpu.emit.wrapping import WIDTH, wrapped_lines
from twillgpu.lower.record import GroupProgram, WarpProgram

BLACKWELL = "sm_100a"


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """What an emitted file says of its origin.

    Attributes:
        lines: how the schedule was made and what is proved about it, for the header.
        file: the kernel's file; empty where there is none.
    """

    lines: tuple[str, ...] = ()
    file: str = ""


def emit(program: WarpProgram, provenance: Provenance | None = None, form: Form | None = None) -> str:
    """Return the source file. The same program, provenance and form give the same text.

    Args:
        program: of every group.
        provenance: what the header says.
        form: how groups are written, by default plainly.

    Raises:
        UnsupportedError: what has no Gluon form, with the source line and the reason.
    """
    frame = Frame(program=program)
    frame.skipped = skipped(frame)
    groups = ordered(program)
    names = {group.name: frame.names.name(f"{group.name}\N{NO-BREAK SPACE}group") for group in groups}
    bodies = {group.name: _written(frame, group, form or Form()) for group in groups}
    stored = list(allocations(frame))
    passed = {group.name: _used(frame, bodies[group.name]) for group in groups}
    body = [
        *_layouts(frame),
        *barrier_places(frame),
        *(line for group in groups for line in _function(names[group.name], passed[group.name], bodies[group.name])),
        *_kernel(frame, groups, names, passed, stored),
        *_compiled(frame, groups, names, _in_use(frame, passed)),
        *_original(program, provenance or Provenance()),
        *launcher(frame, kernel_name(program), groups[0].warps, _in_use(frame, passed)),
    ]
    parts = [*_header(program, groups, names, provenance or Provenance()), *preamble(body), "", *body]
    return "\n".join(wrapped_lines(parts)) + "\n"


def _written(frame: Frame, group: GroupProgram, form: Form) -> list[str]:
    frame.layouts.warps = group.warps
    body = GroupWriter(frame=frame, group=group, form=form).write()
    frame.layouts.warps = 0
    return [*_owned(frame, group, body), *body]


def _owned(frame: Frame, group: GroupProgram, body: Sequence[str]) -> Iterator[str]:
    """Yield copies of numbers that a group on Blackwell computes with: what is made of an argument does not depend on
    the group, so the compiler makes it before the groups part, keeps it in local memory, and reloads it in the loop.
    """
    kernel, words = frame.program.kernel, {word for line in body for word in WORD.findall(line)}
    if kernel.target != BLACKWELL or len(frame.program.groups) == 1 or group.warps < 4:
        return
    for value in kernel.arguments:
        name = frame.names.name(value.name)
        if value.type.dtype == "f32" and value.type.space == "scalar" and name in words:
            yield f"{name} = own({name})"


def kernel_name(program: WarpProgram) -> str:
    """Return the name of the emitted kernel."""
    return f"{program.kernel.name}_specialised"


def ordered(program: WarpProgram) -> tuple[GroupProgram, ...]:
    """Return the groups with the default partition first: it must have the warps of a whole warpgroup."""
    groups = filled(program.groups)
    widest = max(groups, key=lambda group: (group.warps == 4, group.warps))
    return (widest, *sorted((one for one in groups if one is not widest), key=lambda one: -one.warps))


def _header(
    program: WarpProgram, groups: Sequence[GroupProgram], names: dict[str, str], provenance: Provenance
) -> Iterator[str]:
    kernel = program.kernel
    yield f'"""{kernel.name}, warp-specialised for {program.machine}: one iteration in {program.ii_cycles:,} cycles.'
    yield ""
    yield from textwrap.wrap(" ".join(provenance.lines), WIDTH)
    yield from [""] * bool(provenance.lines)
    for group in groups:
        warps = f"{group.warps} warp{'s' * (group.warps > 1)}"
        stages = f", {group.stages} stages" if group.stages > 1 else ""
        yield f"{names[group.name]}: {warps}, {group.registers_per_thread} registers per thread{stages}"
    yield from ('"""', "")


def _layouts(frame: Frame) -> Iterator[str]:
    for text, name in frame.layouts.names.items():
        of = parent(text)
        yield f"{name} = gl.constexpr({layout(text, name, f'{frame.layouts.name(of, name)}.value' if of else '')})"


def _used(frame: Frame, body: Sequence[str]) -> tuple[str, ...]:
    """Return the parameters that a function needs, in a fixed order: arguments of the kernel, rings, barriers."""
    words = {word for line in body for word in WORD.findall(line)}
    return tuple(name for name in (*_arguments(frame), *_storages(frame)) if name in words)


def _arguments(frame: Frame) -> tuple[str, ...]:
    """Return the names of the emitted kernel's parameters: descriptors, pointers and scalars."""
    described = [*sorted(frame.descriptors.values()), *sorted(frame.bases.values())]
    plain = [value for value in frame.program.kernel.arguments if value.type.space != "descriptor"]
    return (*described, *(frame.names.name(value.name) for value in plain))


def _storages(frame: Frame) -> tuple[str, ...]:
    rings = (frame.ring_name(ring) for ring in frame.program.rings)
    return (*rings, BARRIERS)


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
    notes = {frame.names.name(value.name): annotation(value) for value in frame.program.kernel.arguments}
    parameters = ", ".join(f"{name}{notes.get(name, '')}" for name in _in_use(frame, passed))
    yield from ("", "", "@gluon.jit", f"def {kernel_name(frame.program)}({parameters}):")
    yield from (f"{INDENT}{line}" for line in stored)
    if len(groups) == 1:
        # Triton refuses to specialise for one group, which is the block itself.
        yield f"{INDENT}{names[groups[0].name]}({', '.join(passed[groups[0].name])})"
        return
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
        element = pointee(frame.types[argument].dtype)
        sizes = ",".join(map(str, shape))
        yield f'{INDENT}"{name}": f"tensordesc<{element}[{sizes}],{{{frame.layouts.name(text, name)}.value!r}}>",'
    for argument, name in sorted(frame.bases.items(), key=lambda item: item[1]):
        yield f'{INDENT}"{name}": "*{pointee(frame.types[argument].dtype)}",'
    for value in program.kernel.arguments:
        if frame.names.name(value.name) in parameters and value.type.space != "descriptor":
            yield f'{INDENT}"{frame.names.name(value.name)}": "{scalar(value)}",'
    yield from ("}", "CONSTANTS = {}", *_attributes(frame, parameters), f"NUM_WARPS = {groups[0].warps}")
    yield f'TARGET = "{program.kernel.target}"'
    quoted = ", ".join(f'"{names[group.name]}"' for group in groups)
    yield f"GROUPS = ({quoted}{',' * (len(groups) == 1)})"


def _original(program: WarpProgram, provenance: Provenance) -> Iterator[str]:
    """Yield what the emulator needs to know to compare the file with the kernel that it was made from."""
    if provenance.file:
        entries = {"file": provenance.file, "kernel": program.kernel.name, "machine": program.machine}
        yield "ORIGINAL = {"
        yield from (f"{INDENT}{json.dumps(key)}: {json.dumps(value)}," for key, value in entries.items())
        yield "}"


def _attributes(frame: Frame, parameters: Sequence[str]) -> Iterator[str]:
    """Yield by position what the launcher makes sure of: multiples of 16 among the parameters."""
    aligned = [one.name for one in frame.program.kernel.parameters if one.aligned]
    promised = {*map(frame.names.name, aligned), *frame.bases.values()}
    found = [at for at, name in enumerate(parameters) if name in promised]
    if not found:
        yield "ATTRIBUTES = {}"
        return
    yield "ATTRIBUTES = {"
    yield from (f'{INDENT}{at}: [["tt.divisibility", 16]],' for at in found)
    yield "}"
