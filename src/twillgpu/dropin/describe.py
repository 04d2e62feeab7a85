"""A launch that is described rather than made: by a declaration in the kernel's module, by types, or by arguments."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from twillgpu.errors import InputError, UnsupportedError, nearest
from twillgpu.frontend.binding import Bound, bind
from twillgpu.frontend.jit_kernels import Chosen, Found, choose
from twillgpu.frontend.launch import Launch, LoadOptions

_OPTION = re.compile(r"--(?:arg|const) (?=\w+=)")
"""How the command is told what a call says by name."""

RESERVED = ("launch", "num_warps", "config")
"""Names of a description that are no arguments of the kernel."""


def described(found: Found, target: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Bound:
    """Return the launch of a kernel that its module declares, changed by what ``args`` and ``kwargs`` say.

    Args:
        found: the kernel.
        target: ``sm_90a``, say: a module may declare a launch for each target.
        args: types, shapes, values or tensors, in the order of the kernel's parameters.
        kwargs: the same by name, and ``launch`` (a ``Launch`` instead of the declared one), ``num_warps``,
            ``config`` (of the autotuner, counted from 1).

    Raises:
        InputError: arguments that are missing, unknown or of an unknown type.
    """
    code = found.function.fn.__code__
    path = Path(code.co_filename)
    chosen = _chosen(found, path, target, kwargs.get("launch"))
    try:
        return bind(chosen, path, _options(found, args, kwargs))
    except InputError as error:
        raise InputError(error.where, error.what, _OPTION.sub("", error.remedy)) from None


def _chosen(found: Found, path: Path, target: str, launch: Launch | None) -> Chosen:
    """Return the kernel with the launch that was given, or else the one that its module declares for the target."""
    if launch is not None:
        if launch.kernel != found.name:
            raise InputError("launch", f"it is one of {launch.kernel!r}", f"give one of {found.name!r}")
        return Chosen(found=found, launch=launch, remarks=())
    module = sys.modules.get(found.function.fn.__module__)
    if module is None or not hasattr(module, found.name):
        return Chosen(found=found, launch=Launch(kernel=found.name), remarks=())
    return replace(choose(module, path, target, found.name), found=found)


def _options(found: Found, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> LoadOptions:
    parameters = {parameter.name: parameter for parameter in found.function.params}
    where = f"description of {found.name}"
    if len(args) > len(parameters):
        raise InputError(where, f"{len(args)} arguments for {len(parameters)} parameters", "leave some out")
    given = dict(zip(parameters, args, strict=False))
    for name, value in kwargs.items():
        if name in given:
            raise InputError(where, f"{name} is given twice", "give it once")
        if name not in parameters and name not in RESERVED:
            raise InputError(where, f"the kernel has no argument {name!r}", nearest(name, parameters))
        given[name] = value
    plain = {name: value for name, value in given.items() if name in parameters}
    constants = {name: value for name, value in plain.items() if parameters[name].is_constexpr}
    types = tuple((name, argument_text(value, name)) for name, value in plain.items() if name not in constants)
    return LoadOptions(
        args=types, constexprs=tuple(constants.items()), num_warps=given.get("num_warps"), config=given.get("config")
    )


def argument_text(value: object, name: str) -> str:
    """Return the type of an argument as text: of a text the text, of a number its value, of a tensor ``*fp16``.

    Raises ``UnsupportedError`` for anything else.
    """
    if value is None or isinstance(value, str | int | float):
        return str(int(value) if isinstance(value, bool) else value)
    base, block = getattr(value, "base", None), getattr(value, "block_shape", None)
    if block is not None and hasattr(base, "dtype"):
        return f"tensordesc<{_element(base)}[{','.join(str(int(size)) for size in block)}]>"
    if hasattr(value, "dtype"):
        return f"*{_element(value)}"
    raise UnsupportedError(
        f"argument {name}", f"{type(value).__name__} has no type here", "give '*fp16', a number or a tensor"
    )


def _element(tensor: Any) -> str:  # noqa: ANN401  # of any array library
    return str(tensor.dtype).rpartition(".")[2]
