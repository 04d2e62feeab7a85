"""Twill: optimal software pipelining and warp specialization for tensor core GPU kernels.

The names below are loaded when they are first used, so that importing the package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from twillgpu.api import (
        certify_schedule,
        check_schedule,
        explain_schedule,
        find_schedule,
        load_schedule,
        take_schedule,
    )
    from twillgpu.dropin.decorate import optimize
    from twillgpu.emitting import EmitOptions, emit_source
    from twillgpu.errors import TwillError
    from twillgpu.frontend.launch import Launch
    from twillgpu.inputs import load_problem
    from twillgpu.view.report import report

__version__ = "0.1.0"

_WHERE = {
    "EmitOptions": "twillgpu.emitting",
    "Launch": "twillgpu.frontend.launch",
    "TwillError": "twillgpu.errors",
    "certify_schedule": "twillgpu.api",
    "check_schedule": "twillgpu.api",
    "emit_source": "twillgpu.emitting",
    "explain_schedule": "twillgpu.api",
    "find_schedule": "twillgpu.api",
    "load_problem": "twillgpu.inputs",
    "load_schedule": "twillgpu.api",
    "optimize": "twillgpu.dropin.decorate",
    "report": "twillgpu.view.report",
    "take_schedule": "twillgpu.api",
}
"""The library's names and the modules that they come from. No name may be that of a folder of the package."""

__all__ = [
    "EmitOptions",
    "Launch",
    "TwillError",
    "__version__",
    "certify_schedule",
    "check_schedule",
    "emit_source",
    "explain_schedule",
    "find_schedule",
    "load_problem",
    "load_schedule",
    "optimize",
    "report",
    "take_schedule",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401  # whatever the name stands for
    """Import the module behind a public name when the name is first used."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    """List the public names without loading them."""
    return sorted(__all__)
