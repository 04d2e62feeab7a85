"""Loading an emitted file, and its ``launch``."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from twillgpu.errors import TwillError


def launch_of(path: Path) -> Callable[..., Any]:
    """Return the launcher of an emitted file: ``launch(grid, ARGUMENTS OF THE ORIGINAL)``.

    Raises:
        TwillError: the file cannot be imported, or has no launcher.
    """
    launch: Callable[..., Any] | None = getattr(module_of(path), "launch", None)
    if launch is None:
        raise TwillError(path.name, "the emitted file has no launcher", "report it, with the file")
    return launch


def module_of(path: Path) -> ModuleType:
    """Return an emitted file as a module, which ``sys.modules`` does not know. Raises ``TwillError``."""
    spec = importlib.util.spec_from_file_location(f"twillgpu_emitted_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise TwillError(path.name, "it is no Python file", "clear the cache: twillgpu cache --clear")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        what = f"importing the emitted file raised {type(error).__name__}: {error}"
        raise TwillError(path.name, what, "report it, with the file") from error
    return module
