"""The one entry of the front end: from a source file to a ``Kernel``."""

from __future__ import annotations

import os
from pathlib import Path

from twillgpu.errors import InputError
from twillgpu.frontend.capture import TARGETS, Captured, capture
from twillgpu.frontend.convert import ConvertOptions, convert
from twillgpu.frontend.generic import is_generic, parse_generic
from twillgpu.frontend.kernel import Kernel
from twillgpu.frontend.launch import LoadOptions
from twillgpu.frontend.operands import operands_in_memory
from twillgpu.frontend.text import parse_kernel

SUFFIXES = (".py", ".ttgir", ".mlir", ".kernel")
"""Endings of the source files that ``load_kernel`` reads."""


def load_kernel(source: Path, target: str, options: LoadOptions | None = None) -> Kernel:
    """Return the kernel in ``source`` for ``target`` (``sm_80``, ``sm_90a``, ``sm_100a``).

    ``.py`` is a file with a ``@triton.jit`` kernel, lowered by Triton; ``.ttgir`` and ``.mlir`` are TTGIR text in
    pretty form (read by Triton) or generic form (read without it); ``.kernel`` is what ``print_kernel`` prints.

    Raises ``InputError`` for what cannot be used as given and ``UnsupportedError`` for what is not supported yet,
    each with the place and a remedy.
    """
    chosen = options or LoadOptions()
    text = _text(source)
    if target not in TARGETS:
        raise InputError(target, "this target is not supported", f"use one of {', '.join(TARGETS)}")
    if source.suffix == ".kernel":
        return _kernel_text(source, text, target, chosen)
    if source.suffix == ".py":
        return _converted(source, target, chosen, capture(source, target, chosen), text)
    _refuse_launch(source, chosen)
    if is_generic(text):
        generic = Captured(text=text)
        return _converted(source, target, chosen, generic, "")
    return _converted(source, target, chosen, capture(source, target, None), "")


def _text(source: Path) -> str:
    where = str(source)
    if not source.exists():
        raise InputError(where, "there is no such file", "check the path")
    if source.is_dir():
        raise InputError(where, "this is a folder", f"give a file that ends in {', '.join(SUFFIXES)}")
    if source.suffix not in SUFFIXES:
        raise InputError(
            where, f"files ending in {source.suffix!r} are not read", f"give one of {', '.join(SUFFIXES)}"
        )
    try:
        text = source.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InputError(where, "this is not text in UTF-8", "give a text file") from None
    except OSError as error:
        raise InputError(where, f"it cannot be read: {error.strerror}", "check its permissions") from None
    if not text.strip():
        raise InputError(where, "the file is empty", "give a file with a kernel")
    return text


def _kernel_text(source: Path, text: str, target: str, options: LoadOptions) -> Kernel:
    _refuse_launch(source, options)
    kernel = parse_kernel(text, where=source.name)
    if kernel.target != target:
        raise InputError(
            source.name, f"the kernel is for {kernel.target} and the machine needs {target}", "choose another machine"
        )
    return kernel


def _refuse_launch(source: Path, options: LoadOptions) -> None:
    given = {
        "--arg": bool(options.args),
        "--const": bool(options.constexprs),
        "--num-warps": options.num_warps is not None,
        "--config": options.config is not None,
    }
    for option, used in given.items():
        if used:
            raise InputError(option, f"it has no meaning for {source.name}", "a launch is only for Python files")


def _converted(source: Path, target: str, options: LoadOptions, captured: Captured, text: str) -> Kernel:
    module = parse_generic(captured.text, where=source.name)
    kernel = convert(
        module,
        ConvertOptions(
            where=source.name,
            target=target,
            kernel=captured.kernel or options.kernel,
            loop=options.loop or captured.loop,
            source_file=_relative(source),
            source_lines=tuple(text.splitlines()),
            arguments=captured.values,
            remarks=captured.remarks,
            parameters=captured.parameters,
        ),
    )
    return operands_in_memory(kernel) if target == "sm_90a" else kernel


def _relative(source: Path) -> str:
    """Return the path from the working folder where the file is inside it, otherwise the whole path."""
    path, here = Path(os.path.normpath(source.absolute())), Path.cwd()
    return path.relative_to(here).as_posix() if path.is_relative_to(here) else path.as_posix()
