"""Whether a source file is Gluon, and which kernel an emitted one says that it was made from."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from twillgpu.emulate.gluon.source import LAUNCHER
from twillgpu.errors import InputError

ORIGINAL = "ORIGINAL"
"""The constant of an emitted file that names the kernel it was made from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Original:
    """The kernel that an emitted file was made from: its file, its name, the machine's name."""

    file: str
    kernel: str
    machine: str


def is_gluon(path: Path) -> bool:
    """Return whether a file is Python with functions under ``@gluon.jit``, and none under ``@triton.jit``."""
    if path.suffix != ".py":
        return False
    tree = _parsed(path)
    found = set(_decorators(tree)) if tree is not None else set()
    return "gluon.jit" in found and "triton.jit" not in found


def check_launcher(path: Path) -> None:
    """Raise ``InputError`` for a Gluon file that has no launcher: it was recognised, but cannot be run."""
    tree = _parsed(path)
    if tree is None or LAUNCHER not in {one.name for one in tree.body if isinstance(one, ast.FunctionDef)}:
        raise InputError(
            str(path),
            f"it is run as Gluon, for functions under @gluon.jit and none under @triton.jit, but has no {LAUNCHER!r}",
            f"add a function {LAUNCHER}(grid, ...) with the kernel's arguments, or give what twillgpu emit wrote",
        )


def original(path: Path) -> Original | None:
    """Return what an emitted file says of its origin, ``None`` for a file that does not."""
    tree = _parsed(path)
    for node in tree.body if tree is not None else ():
        names = [one.id for one in getattr(node, "targets", ()) if isinstance(one, ast.Name)]
        if isinstance(node, ast.Assign) and names == [ORIGINAL]:
            return _read(node.value)
    return None


def found_beside(path: Path, file: str) -> Path | None:
    """Return the file that an emitted one names: from the working folder, or from the folder of the emitted one."""
    return next((one for one in (Path(file), path.parent / file) if one.is_file()), None)


def _read(value: ast.expr) -> Original | None:
    try:
        entries = ast.literal_eval(value)
        return Original(file=entries["file"], kernel=entries["kernel"], machine=entries["machine"])
    except (ValueError, TypeError, KeyError):
        return None


def _parsed(path: Path) -> ast.Module | None:
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return None


def _decorators(tree: ast.Module) -> Iterator[str]:
    """Yield the decorators of functions as they are written, without arguments."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            for one in node.decorator_list:
                yield ast.unparse(one.func if isinstance(one, ast.Call) else one)
