"""The assembler and the disassembler in Triton's wheel: no driver, no CUDA installation."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from twillgpu.errors import InputError, TwillError

_REGISTERS = re.compile(r"Used (\d+) registers")
_VERSION = re.compile(r"\bV(\d+(?:\.\d+)+)")
_SPILLS = re.compile(r"(\d+) bytes spill (?:stores|loads)")
_WARNING = re.compile(
    r"^(?:ptxas\S*\s+)?(?:warning|info)\s*:\s*(.*(?:\(C\d+\)|setmaxnreg|Potential|serializ).*)$",
    re.MULTILINE | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembled:
    """A cubin, and what the assembler says of it."""

    cubin: bytes
    registers_per_thread: int
    spill_bytes: int
    warnings: tuple[str, ...]


def tool(name: str) -> Path:
    """Return the path of a tool in Triton's wheel. Raises ``InputError`` where Triton or the tool is missing."""
    spec = importlib.util.find_spec("triton")
    if spec is None or spec.origin is None:
        raise InputError(name, "Triton is not installed", "install it with pip install 'twillgpu[triton]'")
    found = Path(spec.origin).parent / "backends" / "nvidia" / "bin" / name
    if not found.is_file():
        raise InputError(name, f"this Triton has no {name}", "use Triton 3.6.0 or newer on Linux")
    return found


def version(assembler: str) -> str:
    """Return name and version of an assembler, ``ptxas 12.8.93``; without a version where it does not say."""
    done = subprocess.run([assembler, "--version"], capture_output=True, text=True, check=False)  # noqa: S603  # Triton's own tool
    told = _VERSION.search(done.stdout)
    return f"ptxas {told.group(1)}" if told else "ptxas"


def assemble(command: list[str], ptx: str, target: str, folder: Path) -> Assembled:
    """Assemble PTX for ``target`` in ``folder`` by ``command``, the assembler of Triton with its options.

    Raises:
        TwillError: the assembler refuses it, with the assembler's message (``C7602``: too few registers).
    """
    text, cubin = folder / "kernel.ptx", folder / "kernel.cubin"
    text.write_text(ptx, encoding="utf-8")
    options = ["-v", "-lineinfo", f"--gpu-name={target}", str(text), "-o", str(cubin)]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)  # noqa: S603  # Triton's own tool
    said = done.stderr + done.stdout
    if done.returncode != 0:
        first = next((line for line in said.splitlines() if "error" in line or "fatal" in line), said.strip()[:200])
        raise TwillError("ptxas", f"refuses the kernel: {first}", "lower the register quotas or the tile size")
    registers = _REGISTERS.search(said)
    return Assembled(
        cubin=cubin.read_bytes(),
        registers_per_thread=int(registers.group(1)) if registers else 0,
        spill_bytes=sum(int(count) for count in _SPILLS.findall(said)),
        warnings=tuple(sorted({found.strip() for found in _WARNING.findall(said)})),
    )


def disassemble(cubin: bytes, folder: Path) -> tuple[str, str]:
    """Return the two listings that ``sass.instructions`` joins: with source lines, and with live registers.

    The second is empty where the disassembler cannot tell: it refuses code that uses 255 registers.

    Raises:
        TwillError: the disassembler refuses the cubin.
    """
    file = folder / "listing.cubin"
    file.write_bytes(cubin)
    lines = _listed(file, ["-c", "-g"])
    if lines.returncode != 0:
        said = (lines.stderr or lines.stdout).strip()[:200] or f"exit status {lines.returncode}"
        raise TwillError("nvdisasm", f"cannot list the machine code: {said}", "try again: is there memory left?")
    lives = _listed(file, ["-c", "-lrm", "count"])
    return lines.stdout, lives.stdout if lives.returncode == 0 else ""


def _listed(cubin: Path, options: list[str]) -> subprocess.CompletedProcess[str]:
    command = [str(tool("nvdisasm")), *options, str(cubin)]
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # Triton's own tool
