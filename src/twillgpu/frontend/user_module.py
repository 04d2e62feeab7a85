"""Importing the user's file in the worker process: no GPU, no torch, no launches.

The functions change their process (import hooks, Triton's driver, the launcher), so only the worker calls them.
"""

from __future__ import annotations

import importlib.util
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.autotuner import Autotuner, Heuristics
from triton.runtime.jit import JITFunction

from twillgpu.errors import InputError
from twillgpu.frontend.stubs import Stub, StubFinder


@dataclass(frozen=True, slots=True, kw_only=True)
class UserModule:
    """The imported module, and what the user should know of the import."""

    module: ModuleType
    remarks: tuple[str, ...]


def import_file(path: Path, capability: int) -> UserModule:
    """Import the file at ``path`` as a module on a pretended GPU of ``capability`` (90 for 9.0).

    Raises ``InputError`` with the line for a syntax error and for any exception that the file raises.
    """
    answers: dict[str, object] = {
        "torch.cuda.get_device_capability()": divmod(capability, 10),
        "torch.version.hip": None,
    }
    finder = StubFinder(answers)
    sys.meta_path.append(finder)
    driver.set_active(_NoDevice(capability, answers))
    launches = _skip_launches()
    module = _execute(path)
    return UserModule(module=module, remarks=_remarks(finder.missing, launches))


def _remarks(missing: list[str], launches: list[None]) -> tuple[str, ...]:
    found = []
    if missing:
        found.append(f"not installed, replaced by stand-ins that the kernel may not use: {', '.join(missing)}")
    if launches:
        found.append(f"the file launches kernels while it is imported: skipped ({len(launches)})")
    return tuple(found)


class _NoDevice(Stub):
    """A driver that knows its target and nothing else."""

    def __init__(self, capability: int, answers: dict[str, object]) -> None:
        super().__init__("triton.runtime.driver.active", answers)
        self.__dict__["capability"] = capability

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", self.capability, 32)


def _skip_launches() -> list[None]:
    """Make launches do nothing; the list returned grows by one for each."""
    launches: list[None] = []

    def skip(*_: object, **__: object) -> Stub:
        launches.append(None)
        return Stub("launched kernel", {})

    for launcher in (JITFunction, Autotuner, Heuristics):
        launcher.run = skip
    return launches


def _execute(path: Path) -> ModuleType:
    sys.path.insert(0, str(path.parent))
    name = _module_name(path)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None:
        raise InputError(str(path), "this is no Python file", "give a file that ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        code = compile(path.read_bytes(), str(path), "exec")
        exec(code, module.__dict__)  # noqa: S102  # running the user's file is the job
    except SyntaxError as error:
        where = f"{Path(error.filename or path).name}:{error.lineno or 1}"
        raise InputError(where, f"this is not Python: {error.msg}", "correct the syntax") from None
    except (Exception, SystemExit) as error:  # noqa: BLE001  # whatever the file raises is reported with its line
        raise _raised(error, path) from None
    return module


def _module_name(path: Path) -> str:
    """Return the module's dotted name; packages around it are made known without running their ``__init__``, so
    that relative imports of siblings work.
    """
    folders: list[Path] = []
    folder = path.parent
    while (folder / "__init__.py").is_file():
        folders.insert(0, folder)
        folder = folder.parent
    if not folders:
        return path.stem
    sys.path.insert(0, str(folder))
    name = ""
    for package in folders:
        name = f"{name}.{package.name}".lstrip(".")
        module = ModuleType(name)
        module.__path__ = [str(package)]
        sys.modules[name] = module
    return f"{name}.{path.stem}"


def _raised(error: BaseException, path: Path) -> InputError:
    """Say which line of the user's file raised ``error``."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    where = f"{path.name}:{lines[-1]}" if lines else path.name
    last: Any = str(error).strip().splitlines()[-1:] or [""]
    what = f"importing the file raised {type(error).__name__}" + (f": {last[0]}" if last[0] else "")
    return InputError(where, what, "make the file importable without a GPU")
