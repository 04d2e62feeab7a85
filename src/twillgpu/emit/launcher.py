"""The host side of an emitted file: a launcher with the original kernel's signature and grid.

A file is for one specialisation of its kernel: the launcher refuses other constexprs, types, blocks and options.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping, Sequence

from twillgpu.emit.frame import Frame
from twillgpu.emit.layouts import dtype
from twillgpu.frontend.arguments import LONG_NAMES
from twillgpu.frontend.kernel import Kernel, KernelValue, Parameter

INDENT = "    "

POINTEES = {"f16": "fp16", "f32": "fp32", "f64": "fp64", "f8E4M3FN": "fp8e4nv", "f8E5M2": "fp8e5"}
"""Element types by MLIR's names whose name in Triton is another one."""

INFERRED = ("i1", "i32", "f32")
"""Types of numbers that Triton infers from the Python value; others have to be written."""

_OPTIONS = {
    "num_ctas": 1,
    "maxnreg": None,
    "launch_cooperative_grid": False,
    "launch_pdl": False,
    "ir_override": None,
}
"""Options of a launch that an emitted kernel has no counterpart for, and the value that each may have."""

_CHECKS = '''

def check_constant(name, given, wanted):
    """Refuse a constexpr that is not the one compiled in; types and functions go by their names."""
    plain = getattr(given, "value", given)
    same = isinstance(plain, (int, float)) and plain == wanted
    if not same and str(getattr(plain, "__name__", plain)) != str(wanted):
        refuse(f"{name} is {given!r}", repr(wanted), f"--const {name}={given}")


def check_type(name, found, *wanted):
    """Refuse an argument of another type, block or divisibility."""
    if found not in wanted:
        refuse(f"{name} is {found}", wanted[0], f"--arg '{name}={found}'")


def check_options(options):
    """Refuse options of the launch that the schedule was not made for; those that it decides itself are dropped."""
    for name, wanted in OPTIONS.items():
        given = options.pop(name, wanted)
        if given != wanted:
            refuse(f"{name} is {given!r}", repr(wanted), f"--num-warps {given}" if name == "num_warps" else "")
    for name in ("num_warps", "num_stages"):
        options.pop(name, None)


def refuse(what, wanted, emitted):
    """Raise the error that says what the file is for, and what to do."""
    remedy = f"emit another one: twillgpu emit ... {emitted}" if emitted else "leave it out"
    raise ValueError(f"{ORIGINAL}: {what}, and this file is for {wanted}; {remedy}")


def type_of(given, divisor=0):
    """Return the type of an argument as Triton specialises it, with ``:16`` where it is a multiple of 16."""
    if given is None or isinstance(given, (bool, float)):
        return "None" if given is None else "i1" if isinstance(given, bool) else "fp32"
    if hasattr(given, "block_shape"):
        padding = "" if getattr(given, "padding", "zero") == "zero" else f", padded with {given.padding}"
        rounding = ", rounded to TF32" if getattr(given, "round_f32_to_tf32", False) else ""
        return f"tensordesc<{element(given.base)}[{','.join(map(str, given.block_shape))}]{padding}{rounding}>"
    if isinstance(given, int):
        name, number = "i32" if -(2**31) <= given < 2**31 else "i64" if given < 2**63 else "u64", given
    elif hasattr(given, "data_ptr"):
        name, number = f"*{element(given)}", given.data_ptr()
    else:
        return type(given).__name__
    return f"{name}:{divisor if number % divisor == 0 else 1}" if divisor else name


def element(tensor):
    """Return the element type of a tensor by Triton's name."""
    name = str(tensor.dtype).rpartition(".")[2]
    return ELEMENTS.get(name, name)
'''


def launcher(frame: Frame, kernel: str, warps: int, parameters: Sequence[str]) -> Iterator[str]:
    """Yield the function that launches the emitted kernel as the original one is launched, and what it checks.

    TMA descriptors are made anew from the tensors of the given ones, with the blocks and layouts of this kernel.
    """
    original = frame.program.kernel
    options = {one.name: ast.literal_eval(one.value) for one in original.parameters if one.type == "option"}
    signature = [one for one in original.parameters or _from_types(original) if one.type != "option"]
    yield from ("", "", "# What the file is for: launch refuses other values, types, blocks and options.")
    yield f'ORIGINAL = "{original.name}"'
    yield f"OPTIONS = {_dict({**options, **_OPTIONS})}"
    yield f"ELEMENTS = {_dict(_elements(signature, signless=not original.parameters))}"
    yield from ("", "", f"def launch(grid, {', '.join(_declared(signature))}, **options):")
    yield f'{INDENT}"""Launch as ``{original.name}[grid](...)`` does; constexprs may be left out.'
    yield from ("", f"{INDENT}Raises ``ValueError`` for what the file is not for.", f'{INDENT}"""')
    yield from (f"{INDENT}{_check(parameter)}" for parameter in signature)
    given = ", ".join(f'"{one.name}": {one.name}' for one in signature)
    yield from (
        f"{INDENT}check_options(options)",
        f"{INDENT}if callable(grid):",
        f"{INDENT * 2}grid = grid({{{given}}})",
    )
    yield from _launched(frame, kernel, warps, parameters)
    yield from _CHECKS.splitlines()
    if frame.descriptors:
        yield from ("", "", "def described(descriptor, block, layout):")
        yield f'{INDENT}"""Return the same tensor\'s descriptor for other blocks."""'
        yield f"{INDENT}shape, strides = list(descriptor.shape), list(descriptor.strides)"
        yield f"{INDENT}return TensorDescriptor(descriptor.base, shape, strides, block, layout)"


def _dict(entries: Mapping[str, object]) -> str:
    texts = (f'"{value}"' if isinstance(value, str) else repr(value) for value in entries.values())
    return f"{{{', '.join(f'{json.dumps(name)}: {text}' for name, text in zip(entries, texts, strict=True))}}}"


def pointee(name: str) -> str:
    """Return Triton's name of an element type of MLIR."""
    return POINTEES.get(name, name)


def scalar(value: KernelValue) -> str:
    """Return Triton's name of the type of a pointer or number."""
    kind = value.type.dtype
    return f"*{pointee(kind[4:-1])}" if kind.startswith("ptr<") else pointee(kind)


def annotation(value: KernelValue) -> str:
    """Return the annotation that a parameter of the emitted kernel needs: of numbers whose type is not inferred."""
    kind = value.type
    return "" if kind.space != "scalar" or kind.dtype in INFERRED else f": {dtype(kind.dtype, value.name)}"


def _from_types(kernel: Kernel) -> Iterator[Parameter]:
    """Yield the parameters of a kernel that is known from its TTGIR alone: without constants."""
    for value in kernel.arguments:
        if value.type.space == "descriptor":
            block = ",".join(map(str, value.type.shape))
            yield Parameter(name=value.name, type=f"tensordesc<{pointee(value.type.dtype)}[{block}]>")
        elif "." not in value.name:
            yield Parameter(name=value.name, type=scalar(value))


def _elements(signature: Sequence[Parameter], *, signless: bool) -> dict[str, str]:
    """Return the names that array libraries have for the element types of the tensors, with Triton's.

    ``signless``: TTGIR does not say which integers have a sign.
    """
    tensors = [one.type for one in signature if one.type.startswith(("*", "tensordesc<"))]
    used = {text.removeprefix("*").removeprefix("tensordesc<").partition("[")[0] for text in tensors}
    names = {name: short for name, short in LONG_NAMES.items() if short in used and len(name) > len(short)}
    return names | {f"u{name}": short for name, short in names.items() if signless and name.startswith("int")}


def _declared(signature: Sequence[Parameter]) -> Iterator[str]:
    """Yield the parameters of the launcher: constexprs have what is compiled in as default.

    Python wants a default for whatever follows: ``None``, which is refused unless something is given.
    """
    seen = False
    for one in signature:
        default = _double(one.value if one.type == "constexpr" else one.default)
        seen = seen or bool(default)
        yield f"{one.name}={default or 'None'}" if seen else one.name


def _check(parameter: Parameter) -> str:
    """Return the statement that refuses what does not fit a parameter."""
    name, kind = parameter.name, parameter.type
    if kind == "constexpr":
        return f'check_constant("{name}", {name}, {_double(parameter.value)})'
    divisor = ":16" if parameter.aligned else ""
    given = f"{name}, 16" if divisor else name
    wanted = ", ".join(f'"{one}{divisor}"' for one in (kind, *_also(kind)))
    return f'check_type("{name}", type_of({given}), {wanted})'


def _also(kind: str) -> tuple[str, ...]:
    """Return the types of Python numbers that an argument takes besides its own: the emitted kernel converts them."""
    if kind.startswith(("*", "tensordesc<")) or kind in ("i1", "i32", "fp32"):
        return ()
    return ("fp32",) if kind.startswith(("fp", "bf")) else tuple(one for one in ("i32", "i64") if one != kind)


def _double(literal: str) -> str:
    """Return a literal with double quotes where it is a text: as formatters write it."""
    return json.dumps(ast.literal_eval(literal)) if literal.startswith(("'", '"')) else literal


def _launched(frame: Frame, kernel: str, warps: int, parameters: Sequence[str]) -> Iterator[str]:
    yield f"{INDENT}return {kernel}[grid]("
    described = {name: (argument, shape, text) for (argument, shape, text), name in frame.descriptors.items()}
    for name in parameters:
        if name in described:
            argument, shape, text = described[name]
            yield f"{INDENT * 2}described({argument}, {list(shape)}, {frame.layouts.name(text, name)}.value),"
        elif name in frame.bases.values():
            argument = next(one for one, base in frame.bases.items() if base == name)
            yield f"{INDENT * 2}{argument}.base,"
        else:
            yield f"{INDENT * 2}{_plain(frame, name)},"
    yield from (f"{INDENT * 2}num_warps={warps},", f"{INDENT * 2}**options,", f"{INDENT})")


def _plain(frame: Frame, name: str) -> str:
    """Return the argument of a parameter: as given, or a size or stride of a descriptor."""
    value = next(one.name for one in frame.program.kernel.arguments if frame.names.name(one.name) == name)
    argument, _, rest = value.partition(".")
    if not rest:
        return value
    what, _, at = rest.partition(".")
    return f"{argument}.{'shape' if what == 'shape' else 'strides'}[{at}]"
