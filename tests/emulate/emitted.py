"""Emitted sources for tests: examples on both chips, with schedules of a list scheduler, as files."""

from __future__ import annotations

import atexit
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

from twillgpu.costs.record import PricedOp, Problem
from twillgpu.emit.gluon import emit
from twillgpu.frontend.kernel import Kernel
from twillgpu.lower.lower import lower
from twillgpu.lower.record import WarpProgram

sys.path.append(str(Path(__file__).parents[1] / "lower"))

import schedules

PAIRS = tuple(
    (name, machine) for name in ("gemm", "attention_fwd", "attention_bwd", "rms_norm") for machine in ("h100", "b200")
)
"""Examples and chips that emit."""

FOLDER = Path(mkdtemp(prefix="twillgpu-emitted-"))
atexit.register(rmtree, FOLDER, ignore_errors=True)


@cache
def program(name: str, machine: str, rows: int | None = None) -> WarpProgram:
    """Return a warp program: loads in one group, products on Blackwell in another, the rest by sub-tile."""
    kernel, graph, priced = schedules.loaded(name, machine, rows)
    problem = replace(priced, registers=None)
    groups = _groups(problem, machine)
    longest = sum(max(op.real_latency_cycles, op.issue_cycles) + op.handoff_cycles for op in problem.ops)
    tries = (
        schedules.placed(problem, groups, interval)
        for interval in (longest // 4, longest // 3, longest // 2, longest, 2 * longest)
    )
    verified = next(found for found in tries if found is not None)
    return lower(kernel, graph, verified)


@cache
def source(name: str, machine: str, rows: int | None = None) -> tuple[str, Kernel]:
    """Return the path of an emitted source file and the kernel that it was made from."""
    found = program(name, machine, rows)
    path = FOLDER / f"{name}_{machine}_{rows}.py"
    path.write_text(emit(found), "utf-8")
    return str(path), found.kernel


def _groups(problem: Problem, machine: str) -> dict[str, int]:
    pairs = {(rule.first, rule.second) for rule in problem.legality if rule.relation == "together"}
    whole = any(one[-1:] != two[-1:] for one, two in pairs)
    loads = any(op.variable_latency for op in problem.ops)
    found = {op.name: _group(op, machine, whole=whole) if loads else 0 for op in problem.ops}
    numbers = {group: number for number, group in enumerate(sorted(set(found.values())))}
    return {name: numbers[group] for name, group in found.items()}


def _group(op: PricedOp, machine: str, *, whole: bool) -> int:
    """Loads; what one thread issues; the rest, on Hopper by sub-tile where nothing needs both."""
    if op.variable_latency:
        return 0
    if op.warps == 1:
        return 1
    return 2 if machine == "b200" or whole or not op.name[-1].isdigit() else 2 + int(op.name[-1])
