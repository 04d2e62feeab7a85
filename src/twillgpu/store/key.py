"""Keys of the cache: everything that a result depends on, and nothing else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import twillgpu
from twillgpu.frontend.kernel import Kernel
from twillgpu.frontend.text import print_kernel
from twillgpu.installation import versions
from twillgpu.machine.record import Machine
from twillgpu.view.records import plain

SCHEMA = "twillgpu-cache/1"
_PACKAGES = ("ortools", "triton")
_SUFFIXES = (".py", ".toml")


def cache_key(kernel: Kernel, machine: Machine, options: Mapping[str, object]) -> str:
    """Return the key of a kernel's results on a machine: a SHA-256 in hex.

    Args:
        kernel: the kernel before sub-tiling. Its file and remarks do not count, its source lines do: they are
            named in what is emitted.
        machine: its content counts, not its name.
        options: records, numbers and texts by name: whatever else decides what is found and emitted.
    """
    document = {
        "schema": SCHEMA,
        "kernel": kernel_digest(kernel),
        "machine": machine.sha256,
        "options": {name: plain(value) for name, value in options.items()},
        "versions": dict(made_with()),
    }
    return hashlib.sha256(json.dumps(document, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def kernel_digest(kernel: Kernel) -> str:
    """Return the SHA-256 of a kernel's text, whatever folder its file is in."""
    return hashlib.sha256(print_kernel(replace(kernel, source_file="", remarks=())).encode()).hexdigest()


def made_with() -> tuple[tuple[str, str], ...]:
    """Return (name, version) of whatever decides about results: the package, its code, the solver, Triton."""
    installed = dict(versions())
    others = tuple((name, installed.get(name, "")) for name in _PACKAGES)
    return (("twillgpu", twillgpu.__version__), ("code", code_digest()), *others)


@cache
def code_digest() -> str:
    """Return a hash of the package's own files: a checkout changes more often than its version."""
    root = Path(__file__).parent.parent
    found = hashlib.sha256()
    for file in sorted(path for path in root.rglob("*") if path.suffix in _SUFFIXES):
        found.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return found.hexdigest()[:16]
