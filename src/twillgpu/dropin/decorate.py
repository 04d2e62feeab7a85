"""The decorator itself. It imports nothing of Triton until a kernel is decorated."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

from twillgpu.dropin.options import OptimizeOptions
from twillgpu.errors import InputError


def optimize(kernel: Any = None, **options: Any) -> Any:  # noqa: ANN401  # Triton is untyped
    """Launch a kernel through its optimal schedule: ``@twillgpu.optimize`` over ``@triton.jit``.

    ``@triton.autotune`` and ``@triton.heuristics`` may stand in between: the tuner then times the optimised kernels.
    The first launch of each specialisation takes as long as the search and the compilation, unless the cache has
    the result.

    Args:
        kernel: what ``@triton.jit``, ``@triton.autotune`` or ``@triton.heuristics`` returned.
        options: fields of ``OptimizeOptions``: ``machine="h100"``, ``check=False``, ...

    Returns:
        An ``Optimised`` kernel, or without ``kernel`` the decorator with these options. Under Triton's interpreter
        (``TRITON_INTERPRET=1``) what was decorated, as it is.

    Raises:
        InputError: what is decorated is no Triton kernel, an option is unknown, or Triton is not installed.
    """
    chosen = _options(options)
    if kernel is None:
        decorate: Callable[[Any], Any] = lambda given: _decorated(given, chosen)  # noqa: E731  # it needs a type
        return decorate
    return _decorated(kernel, chosen)


def _decorated(kernel: Any, options: OptimizeOptions) -> Any:  # noqa: ANN401  # Triton is untyped
    if importlib.util.find_spec("triton") is None:
        raise InputError("optimize", "Triton is not installed", "install it with pip install 'twillgpu[triton]'")
    from twillgpu.dropin.optimised import optimised  # noqa: PLC0415  # Triton, an optional package

    return optimised(kernel, options)


def _options(given: dict[str, Any]) -> OptimizeOptions:
    known = OptimizeOptions.__dataclass_fields__
    for name in given:
        if name not in known:
            raise InputError(f"optimize({name}=...)", "there is no such option", f"use one of {', '.join(known)}")
    return OptimizeOptions(**given)
