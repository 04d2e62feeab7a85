"""The process that imports an emitted source file and compiles its kernel, with no GPU.

``python -m twillgpu.emit.offline_worker`` reads a request as JSON from standard input and writes the answer as JSON
to its standard output; all that the file or Triton print goes to standard error.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import os
import sys
import time
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

import triton
from triton.backends.compiler import GPUTarget

REGISTERS = "--regAllocOptLevel=2"
"""An option that newer versions of Triton give to the assembler."""

CAPABILITIES = {"sm_80": 80, "sm_90a": 90, "sm_100a": 100}


def main() -> None:
    """Answer one request."""
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    request = json.loads(sys.stdin.read())
    with answer:
        json.dump(_answer(Path(request["path"])), answer)


def _answer(path: Path) -> dict[str, Any]:
    module = _imported(path)
    begun = time.perf_counter()
    kernel = triton.compile(
        _source(module),
        target=GPUTarget("cuda", CAPABILITIES[module.TARGET], 32),
        options={"num_warps": module.NUM_WARPS},
    )
    return {
        "ptx": kernel.asm["ptx"],
        "target": module.TARGET,
        "assembler": _assembler(CAPABILITIES[module.TARGET]),
        "groups": list(module.GROUPS),
        "kernel": module.KERNEL.__name__,
        "triton": triton.__version__,
        "seconds": time.perf_counter() - begun,
        "warps": kernel.metadata.num_warps,
        "smem_bytes": kernel.metadata.shared,
        "tmem_columns": getattr(kernel.metadata, "tmem_size", None) or 0,
    }


def _assembler(capability: int) -> list[str]:
    """Return the assembler that this Triton uses for a target, with its options for register allocation."""
    backend = importlib.import_module("triton.backends.nvidia.compiler")
    options = [one for one in (REGISTERS,) if one in inspect.getsource(backend)]
    return [backend.get_ptxas(capability).path, *options]


def _imported(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(str(path))
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _source(module: ModuleType) -> Any:  # noqa: ANN401  # Triton is untyped
    """Return the kernel of a module with its signature; the class moved after Triton 3.6."""
    gluon = importlib.import_module("triton.experimental.gluon")
    found = getattr(gluon, "GluonASTSource", None)
    if found is None:
        found = importlib.import_module("triton.experimental.gluon._runtime").GluonASTSource
    signature = {**module.SIGNATURE, **dict.fromkeys(module.CONSTANTS, "constexpr")}
    attributes = {(at,): value for at, value in module.ATTRIBUTES.items()}
    return found(module.KERNEL, signature, module.CONSTANTS, attributes)


if __name__ == "__main__":
    try:
        main()
    except Exception:  # noqa: BLE001  # whatever Triton or the file raise: the parent reports the last line
        traceback.print_exc()
        sys.exit(1)
