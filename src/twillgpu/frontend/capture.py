"""Running the worker that turns a Python file or pretty-printed TTGIR into MLIR's generic form."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from twillgpu.errors import InputError, UnsupportedError
from twillgpu.frontend.kernel import Parameter
from twillgpu.frontend.launch import LoadOptions
from twillgpu.frontend.process import run_worker

TARGETS = ("sm_80", "sm_90a", "sm_100a")
"""The targets that a Python file can be lowered for."""

_DIAGNOSTIC = re.compile(r'^(?:loc\()?"?([^"\n]+?)"?:(\d+):\d+\)?: error: (.+)$', re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """TTGIR in generic form, the kernel's name and the declared loop, known integers, remarks, parameters."""

    text: str
    kernel: str | None = None
    loop: int | None = None
    values: Mapping[str, int] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    parameters: tuple[Parameter, ...] = ()


def capture(path: Path, target: str, options: LoadOptions | None) -> Captured:
    """Return the TTGIR of the Triton kernel in the Python file at ``path``, lowered for ``target`` up to where
    warp specialization and pipelining would begin; with no ``options``, ``path`` is TTGIR in pretty form instead.

    Runs in a process of its own with a private cache; needs no GPU. Raises ``InputError`` for each mistake in the
    file or the launch, where Triton is not installed, and where it rejects the kernel, with the line.
    """
    if importlib.util.find_spec("triton") is None:
        raise InputError(str(path), "Triton is not installed", "install it with pip install 'twillgpu[triton]'")
    fields = None if options is None else dataclasses.asdict(options)
    done = run_worker(
        "twillgpu.frontend.worker", {"path": os.path.normpath(path.absolute()), "target": target, "options": fields}
    )
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise _crashed(path, done) from None
    if "error" in answer:
        raise _error(answer, done.stderr)
    parameters = tuple(Parameter(**one) for one in answer["parameters"])
    return Captured(**{**answer, "remarks": tuple(answer["remarks"]), "parameters": parameters})


def _error(answer: dict[str, Any], stderr: str) -> InputError | UnsupportedError:
    if answer["error"] == "rejected":
        return _rejected(answer, stderr)
    kind = UnsupportedError if answer["error"] == "unsupported" else InputError
    return kind(answer["where"], answer["what"], answer["remedy"])


def _rejected(answer: dict[str, Any], stderr: str) -> InputError:
    """Return the first of the compiler's own diagnostics, which say more than the exception."""
    match = _DIAGNOSTIC.search(stderr)
    if match is None:
        return InputError(answer["where"], f"Triton rejects it: {answer['what']}", "correct the kernel")
    file, line, message = match.groups()
    return InputError(f"{Path(file).name}:{line}", f"Triton rejects it: {message}", "correct the kernel")


def _crashed(path: Path, done: subprocess.CompletedProcess[str]) -> InputError:
    lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
    return InputError(
        path.name,
        f"Triton stopped while lowering the kernel: {lines[-1]}",
        "check the kernel with triton.compile, and that Triton is at least 3.6 and before 3.10",
    )
