"""Data flows one way: a module imports from its own folder and from the left of this list only."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import twillgpu

ORDER = (
    "errors",
    "installation",
    "machine",
    "frontend",
    "graph",
    "costs",
    "schedule",
    "verify",
    "certify",
    "explain",
    "baselines",
    "lower",
    "emit",
    "emulate",
    "simulate",
    "tune",
    "view",
    "store",
    "inputs",
    "api",
    "emitting",
    "tuning",
    "dropin",
    "cli",
)
ROOT = Path(twillgpu.__file__).parent
FACADE = ROOT / "__init__.py"
HEAVY = ("triton", "ortools", "numpy", "pandas", "rich", "pysat", "pyscipopt", "highspy", "matplotlib", "distributed")
MODULES = sorted(file for file in ROOT.rglob("*.py") if file != FACADE)


def _stage(parts: tuple[str, ...]) -> str:
    """Return the name in ``ORDER`` that a module of the package belongs to; all of the command is ``cli``."""
    name = parts[0].removesuffix(".py")
    return "cli" if name == "__main__" or name.startswith("cli_") else name


def _imports(file: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno}: relative import"
            yield node.lineno, node.module or ""


@pytest.mark.parametrize("file", MODULES, ids=lambda file: str(file.relative_to(ROOT)))
def test_a_module_imports_from_the_left_only(file: Path) -> None:
    own = ORDER.index(_stage(file.relative_to(ROOT).parts))
    for line, module in _imports(file):
        _, _, inner = module.partition("twillgpu.")
        if not module.startswith("twillgpu.") or not inner:
            continue
        stage = _stage(tuple(inner.split(".")))
        assert stage in ORDER, f"{file}:{line}: {module} is in no stage"
        assert ORDER.index(stage) <= own, f"{file}:{line}: imports {module} from its right"


def test_every_folder_of_the_package_has_a_place_in_the_order() -> None:
    folders = {file.relative_to(ROOT).parts[0] for file in MODULES if file.parent != ROOT}
    assert folders <= set(ORDER)


@pytest.mark.parametrize("module", ["twillgpu", "twillgpu.cli", "twillgpu.cli_machines"])
def test_starting_does_not_load_heavy_packages(module: str) -> None:
    code = f"import sys, {module}; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run(  # noqa: S603  # our own interpreter and code
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
