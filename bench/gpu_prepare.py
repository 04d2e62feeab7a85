"""Search and emit one kernel for a machine: ``python bench/gpu_prepare.py OP MACHINE FOLDER SECONDS``; no GPU."""

from __future__ import annotations

import importlib
import json
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import twillgpu
from gpu_plan import EXAMPLES, Prepared, declared
from twillgpu.emit.record import Emission
from twillgpu.errors import TwillError
from twillgpu.inputs import Priced
from twillgpu.machine.load import load
from twillgpu.schedule.record import SearchOptions, SearchResult
from twillgpu.store.key import cache_key

CEILING = "chip.practical_tflops_16bit"
SEARCH_SHARE = 0.5
"""Share of the time that is left that one search may take: it is to be emitted and compiled as well."""


def prepare(op: str, machine: str, folder: Path, seconds: float) -> Prepared:
    """Write the emitted kernel and what is predicted of it into ``folder``; a kernel that has none says why.

    The source is there as soon as it is emitted, and again when it is compiled and compared with the schedule.
    """
    target = load(machine).arch
    folder.mkdir(parents=True, exist_ok=True)
    try:
        found = _emitted(op, machine, folder, seconds)
    except TwillError as error:
        found = Prepared(op=op, machine=machine, target=target, reason=str(error))
    _write(found, folder)
    return found


def _write(found: Prepared, folder: Path, source: str | None = None) -> None:
    if source is not None:
        (folder / found.file).write_text(source, encoding="utf-8")
    file = folder / f"{found.op}-{found.machine}.json"
    file.write_text(json.dumps(asdict(found), indent=2) + "\n", encoding="utf-8")


def _emitted(op: str, machine: str, folder: Path, seconds: float) -> Prepared:
    """Search, emit and check within about so many seconds."""
    begun, source = time.monotonic(), EXAMPLES / f"{op}.py"
    priced = twillgpu.load_problem(source, machine)
    key = _key(priced, machine)
    kept = _kept(op, machine, folder)
    if kept is not None and kept.key == key and kept.clean and (folder / kept.file).is_file():
        return kept
    run = twillgpu.find_schedule(priced, SearchOptions(time_limit_seconds=seconds * SEARCH_SHARE))
    emission = twillgpu.emit_source(priced, run.result)
    figures = {figure.path: figure.value for figure in run.machine.figures}
    found = Prepared(
        op=op,
        machine=machine,
        target=run.machine.arch,
        file=f"{op}_{machine}.py",
        ii_cycles=emission.ii_cycles,
        status=run.result.status,
        sms=int(figures["chip.sms"]),
        clock_mhz=figures["chip.clock_mhz"],
        sizes=_sizes(op, run.machine.arch),
        ceiling_tflops=figures.get(CEILING),
        remark="not checked: there was no time",
        key=key,
    )
    _write(found, folder, emission.source)
    left = max(seconds - (time.monotonic() - begun), 1.0)
    emission, remark = _checked(priced, run.result, emission, left)
    found = replace(found, ii_cycles=emission.ii_cycles, clean=emission.clean, remark=remark)
    _write(found, folder, emission.source)
    return found


def _key(priced: Priced, machine: str) -> str:
    kernel = priced.loaded.kernel
    return cache_key(kernel, load(machine), {}) if kernel is not None else ""


def _kept(op: str, machine: str, folder: Path) -> Prepared | None:
    file = folder / f"{op}-{machine}.json"
    try:
        return Prepared(**json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _sizes(op: str, target: str) -> dict[str, Any]:
    sys.path.insert(0, str(EXAMPLES))
    return declared(importlib.import_module(op), op, target)


def _checked(priced: Priced, result: SearchResult, unchecked: Emission, seconds: float) -> tuple[Emission, str]:
    """Emit with compile feedback; where the machine code cannot be looked at, say why."""
    search = SearchOptions(time_limit_seconds=seconds * SEARCH_SHARE)
    try:
        return twillgpu.emit_source(priced, result, twillgpu.EmitOptions(check=True, search=search)), ""
    except TwillError as error:
        return unchecked, f"not checked: {error}"


if __name__ == "__main__":
    prepare(sys.argv[1], sys.argv[2], Path(sys.argv[3]), float(sys.argv[4]))
