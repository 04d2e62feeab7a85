"""Running Triton in a process of its own: a private cache, none of the user's debug settings, JSON in and out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import twillgpu

_DROPPED = ("TRITON_", "MLIR_", "LLVM_IR_")


def run_worker(module: str, request: Mapping[str, Any]) -> subprocess.CompletedProcess[str]:
    """Run ``python -m module`` with ``request`` as JSON on its standard input, and return what it did.

    The process does not see the settings of Triton and MLIR in the environment, and leaves no files.
    """
    package = str(Path(twillgpu.__file__).parent.parent)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_DROPPED)}
    with tempfile.TemporaryDirectory(prefix="twillgpu-") as cache:
        folders = {"TRITON_CACHE_DIR": cache, "TRITON_HOME": cache, "PYTHONDONTWRITEBYTECODE": "1"}
        paths = os.pathsep.join(filter(None, (package, kept.get("PYTHONPATH"))))
        return subprocess.run(  # noqa: S603  # our own module
            [sys.executable, "-P", "-m", module],
            input=json.dumps(request),
            env={**kept, **folders, "PYTHONPATH": paths},
            capture_output=True,
            text=True,
            check=False,
        )
