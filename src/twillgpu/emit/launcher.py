"""The host side of an emitted file: a launcher with the original kernel's arguments and grid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from twillgpu.emit.frame import Frame

INDENT = "    "


def launcher(frame: Frame, kernel: str, warps: int, parameters: Sequence[str]) -> Iterator[str]:
    """Yield the function that launches the emitted kernel with the arguments of the original one.

    TMA descriptors are made anew from the tensors of the given ones, with the blocks and layouts of this kernel.
    """
    original = frame.program.kernel
    given = [value.name for value in original.arguments if "." not in value.name]
    yield from ("", "", f"def launch(grid, {', '.join(given)}, **compiled_in):")
    yield f'{INDENT}"""Launch with the arguments and the grid of ``{original.name}``.'
    yield from (
        "",
        f"{INDENT}Its constexprs, warps and stages may be given as well: they are compiled in.",
        f'{INDENT}"""',
    )
    yield f"{INDENT}return {kernel}[grid]("
    described = {name: (argument, shape, text) for (argument, shape, text), name in frame.descriptors.items()}
    for name in parameters:
        if name in described:
            argument, shape, text = described[name]
            yield f"{INDENT * 2}tiles({argument}, {list(shape)}, {frame.layouts.name(text, name)}.value),"
        elif name in frame.bases.values():
            argument = next(one for one, base in frame.bases.items() if base == name)
            yield f"{INDENT * 2}{argument}.base,"
        else:
            yield f"{INDENT * 2}{_plain(frame, name)},"
    yield from (f"{INDENT * 2}num_warps={warps},", f"{INDENT})")
    if described:
        yield from ("", "", "def tiles(descriptor, block, layout):")
        yield f'{INDENT}"""Return the same tensor\'s descriptor for other blocks."""'
        yield f"{INDENT}shape, strides = list(descriptor.shape), list(descriptor.strides)"
        yield f"{INDENT}return TensorDescriptor(descriptor.base, shape, strides, block, layout)"


def _plain(frame: Frame, name: str) -> str:
    """Return the argument of a parameter: as given, or a size or stride of a descriptor."""
    value = next(one.name for one in frame.program.kernel.arguments if frame.names.name(one.name) == name)
    argument, _, rest = value.partition(".")
    if not rest:
        return value
    what, _, at = rest.partition(".")
    return f"{argument}.{'shape' if what == 'shape' else 'strides'}[{at}]"
