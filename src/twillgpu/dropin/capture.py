"""From a bound kernel of this process to its tile IR: no file is imported a second time."""

from __future__ import annotations

import linecache
import warnings
from pathlib import Path

from twillgpu.errors import InputError, UnsupportedError
from twillgpu.frontend.binding import Bound
from twillgpu.frontend.convert import ConvertOptions, convert
from twillgpu.frontend.generic import parse_generic
from twillgpu.frontend.kernel import Kernel
from twillgpu.frontend.lowering import CAPABILITIES, kernel_to_generic
from twillgpu.frontend.rejected import explained
from twillgpu.frontend.specialised import parameters_of
from twillgpu.machine.record import Machine


def captured(bound: Bound, machine: Machine) -> Kernel:
    """Return the kernel that Triton's front end makes of a launch for a machine.

    Raises:
        InputError: Triton rejects the kernel or its launch.
        UnsupportedError: the machine is no target, or the kernel has something that is not supported.
    """
    code = bound.function.fn.__code__
    file = Path(code.co_filename).name
    if machine.arch not in CAPABILITIES:
        raise UnsupportedError(
            f"machine {machine.name}",
            "it has no arch to compile a kernel for",
            f"use one of {', '.join(CAPABILITIES)}",
        )
    lines = tuple(line.rstrip("\n") for line in linecache.getlines(code.co_filename))
    module = parse_generic(_generic(bound, CAPABILITIES[machine.arch], file, "\n".join(lines)), where=file)
    return convert(
        module,
        ConvertOptions(
            where=file,
            target=machine.arch,
            kernel=bound.function.__name__,
            loop=bound.loop,
            source_file=file,
            source_lines=lines,
            arguments=bound.values,
            remarks=bound.remarks,
            parameters=parameters_of(bound),
        ),
    )


def _generic(bound: Bound, capability: int, file: str, text: str) -> str:
    with explained(file, bound.line, text), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about options of code generation, which does not happen here
        try:
            return kernel_to_generic(bound, capability)
        except RuntimeError as error:
            first = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise InputError(
                f"{file}:{bound.line}", f"Triton rejects it: {first}", "correct the kernel or its launch"
            ) from error
