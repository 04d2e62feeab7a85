"""Search and emit one kernel for a machine: ``python bench/gpu_prepare.py OP MACHINE FOLDER``. Needs no GPU."""

from __future__ import annotations

import importlib
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import twillgpu
from gpu_plan import EXAMPLES, Prepared, declared
from twillgpu.emit.record import Emission
from twillgpu.errors import TwillError, UnsupportedError
from twillgpu.inputs import Priced
from twillgpu.machine.load import load
from twillgpu.schedule.record import SearchResult

CEILING = "chip.practical_tflops_16bit"


def prepare(op: str, machine: str, folder: Path) -> Prepared:
    """Write the emitted kernel and what is predicted of it into ``folder``; a kernel that has none says why."""
    target = load(machine).arch
    try:
        found = _emitted(op, machine, folder)
    except TwillError as error:
        found = Prepared(op=op, machine=machine, target=target, reason=str(error))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{op}-{machine}.json").write_text(json.dumps(asdict(found), indent=2) + "\n", encoding="utf-8")
    return found


def _emitted(op: str, machine: str, folder: Path) -> Prepared:
    priced = twillgpu.load_problem(EXAMPLES / f"{op}.py", machine)
    run = twillgpu.find_schedule(priced)
    emission, remark = _emission(priced, run.result)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{op}_{machine}.py"
    file.write_text(emission.source, encoding="utf-8")
    figures = {figure.path: figure.value for figure in run.machine.figures}
    return Prepared(
        op=op,
        machine=machine,
        target=run.machine.arch,
        file=file.name,
        ii_cycles=emission.ii_cycles,
        status=run.result.status,
        clean=emission.clean,
        sms=int(figures["chip.sms"]),
        clock_mhz=figures["chip.clock_mhz"],
        sizes=_sizes(op, run.machine.arch),
        ceiling_tflops=figures.get(CEILING),
        remark=remark,
    )


def _sizes(op: str, target: str) -> dict[str, Any]:
    sys.path.insert(0, str(EXAMPLES))
    return declared(importlib.import_module(op), op, target)


def _emission(priced: Priced, result: SearchResult) -> tuple[Emission, str]:
    """Emit with compile feedback; where the machine code cannot be looked at, without, and why."""
    try:
        return twillgpu.emit_source(priced, result, twillgpu.EmitOptions(check=True)), ""
    except UnsupportedError:
        raise
    except TwillError as error:
        return twillgpu.emit_source(priced, result), f"not checked: {error}"


if __name__ == "__main__":
    prepare(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
