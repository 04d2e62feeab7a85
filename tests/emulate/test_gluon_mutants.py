"""Changed sources are noticed: every mutant that is not equivalent is refused, by a race, a hazard, a deadlock, an
error, or numbers.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import emitted
import pytest
from source_mutants import Mutant, mutants

from twillgpu.emulate.gluon.rounding import is_rounding, roundoff
from twillgpu.emulate.gluon.source import descriptor_blocks, run_source
from twillgpu.emulate.inputs import Inputs, Outputs, element_type, is_tensor
from twillgpu.emulate.reference import run
from twillgpu.emulate.sample import sample_inputs
from twillgpu.errors import TwillError

pytestmark = pytest.mark.triton

EQUIVALENT = {
    # After the last iteration nobody waits for that copy again.
    "last arrival": re.compile(
        r"(dropped|doubled|other copy) .*mbarrier\.arrive\(.*_(ready|done)\W.*\(trips - 1\)", re.IGNORECASE
    ),
    # The accumulator is a tile of zeros.
    "zeros added": re.compile(r"use_acc flipped .*warpgroup_mma\(.*gl\.full\(.* 0\.0, "),
    "zeros in memory": re.compile(r"use_acc flipped .*tcgen05_mma\(.* (acc\w*|dk|dv)\.index\(0\), use_acc=False\)"),
    # Two commits or arrivals of one group in a row: waiting for the later one covers the earlier one.
    "waited for already": re.compile(r"dropped .*mbarrier\.wait\(.*(staging_room|_init)\b", re.IGNORECASE),
}
"""Mutants that do what the source does, and why."""


@cache
def cases(name: str, machine: str) -> tuple[tuple[Inputs, Outputs], ...]:
    """Return inputs and results: more trips than any ring is deep, one, and none."""
    program = emitted.program(name, machine)
    stages, depth = max(one.stages for one in program.groups), max((ring.depth for ring in program.rings), default=1)
    inputs = [sample_inputs(program.kernel, trips=trips) for trips in (stages + depth + 2, 1, 0)]
    return tuple((one, run(program.kernel, one)) for one in inputs)


def is_noticed(name: str, machine: str, path: str) -> bool:
    """Return whether running a source shows that something is wrong."""
    kernel = emitted.program(name, machine).kernel
    types = {one.name: element_type(one.type) for one in kernel.arguments if is_tensor(one)}
    unit = roundoff(kernel)
    for inputs, wanted in cases(name, machine):
        try:
            found = run_source(path, inputs, types, blocks=descriptor_blocks(kernel))
        except TwillError:
            return True
        if not found.sound:
            return True
        if not all(is_rounding(values, found.outputs[output], unit) for output, values in wanted.items()):
            return True
    return False


def chosen(name: str, machine: str, every: int) -> Iterator[Mutant]:
    """Yield one mutant in ``every``, of all kinds."""
    text = Path(emitted.source(name, machine)[0]).read_text("utf-8")
    return (one for number, one in enumerate(sorted(mutants(text), key=str)) if number % every == 0)


def unseen(name: str, machine: str, every: int, tmp_path: Path) -> list[str]:
    """Return the mutants that are not noticed, and not known to be equivalent."""
    path, found = tmp_path / "mutant.py", []
    for mutant in chosen(name, machine, every):
        path.write_text(mutant.text, "utf-8")
        if not fenced_later(mutant) and not is_noticed(name, machine, str(path)):
            found.append(str(mutant))
    return [one for one in found if not any(pattern.search(one) for pattern in EQUIVALENT.values())]


def fenced_later(mutant: Mutant) -> bool:
    """Return whether a dropped fence is followed by another one of its block before its tile is mentioned again."""
    lines = mutant.text.split("\n")
    stored = re.match(r"( *)(\w+)\.index\(.*\.store\(", lines[mutant.line - 2])
    if mutant.what != "dropped" or mutant.old.strip() != "fence_async_shared()" or stored is None:
        return False
    indent, tile = stored.groups()
    rest = list(itertools.takewhile(lambda line: line.startswith(indent), lines[mutant.line - 1 :]))
    fence = f"{indent}fence_async_shared()"
    between = itertools.takewhile(lambda line: line != fence, rest)
    return fence in rest and not any(tile.lower() in line.lower() for line in between)


@pytest.mark.parametrize(("name", "machine"), [("gemm", "h100"), ("gemm", "b200")])
def test_some_mutants_are_noticed(name: str, machine: str, tmp_path: Path) -> None:
    assert unseen(name, machine, 5, tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize(("name", "machine"), emitted.PAIRS)
def test_every_mutant_is_noticed_or_equivalent(name: str, machine: str, tmp_path: Path) -> None:
    every = 1 if name == "gemm" else 4
    assert unseen(name, machine, every, tmp_path) == []
