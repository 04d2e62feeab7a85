"""From a bound kernel of this process to its tile IR: no file is imported a second time."""

from __future__ import annotations

import linecache
import warnings
from pathlib import Path

from triton.compiler.errors import CompilationError

from twillgpu.errors import InputError, UnsupportedError
from twillgpu.frontend.binding import Bound
from twillgpu.frontend.convert import ConvertOptions, convert
from twillgpu.frontend.generic import parse_generic
from twillgpu.frontend.kernel import Kernel
from twillgpu.frontend.lowering import CAPABILITIES, kernel_to_generic
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
    module = parse_generic(_generic(bound, CAPABILITIES[machine.arch], f"{file}:{bound.line}"), where=file)
    return convert(
        module,
        ConvertOptions(
            where=file,
            target=machine.arch,
            kernel=bound.function.__name__,
            loop=bound.loop,
            source_file=file,
            source_lines=tuple(line.rstrip("\n") for line in linecache.getlines(code.co_filename)),
            arguments=bound.values,
            remarks=bound.remarks,
            parameters=parameters_of(bound),
        ),
    )


def _generic(bound: Bound, capability: int, where: str) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about options of code generation, which does not happen here
            return kernel_to_generic(bound, capability)
    except (CompilationError, RuntimeError, ValueError, TypeError, AssertionError, KeyError, IndexError) as error:
        # Triton raises any of these, for kernels and for launches; the first line says what it is about.
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise InputError(where, f"Triton rejects it: {first}", "correct the kernel or its launch") from error
