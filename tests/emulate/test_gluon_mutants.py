"""Changed sources are noticed: every mutant that is not equivalent is refused, by a race, a hazard, a deadlock, an
error, or numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import emitted
import pytest
from source_mutants import Mutant, mutants

from twillgpu.emulate.gluon.rounding import is_rounding, roundoff
from twillgpu.emulate.gluon.source import run_source
from twillgpu.emulate.inputs import Inputs, Outputs, element_type, is_tensor
from twillgpu.emulate.reference import run
from twillgpu.emulate.sample import sample_inputs
from twillgpu.errors import TwillError

pytestmark = pytest.mark.triton

EQUIVALENT = {
    # After the last iteration nobody waits for a copy to be free again.
    "last arrival": re.compile(r"(dropped|other copy) .*mbarrier\.arrive\(\w+_(ready|done)\.index\(\(trips - 1\)"),
    # The accumulator is a tile of zeros.
    "zeros added": re.compile(r"use_acc flipped .*warpgroup_mma\(.*gl\.full\(.* 0\.0, "),
    # Two commits in a row: the first one's barrier is waited for before the second one's.
    "waited for already": re.compile(r"dropped .*mbarrier\.wait\(descriptor_store_\w*staging_room\."),
}
"""Mutants that do what the source does, and why."""


@cache
def cases(name: str, machine: str) -> tuple[tuple[Inputs, Outputs], ...]:
    """Return inputs and results: more trips than any ring is deep, one, and none."""
    program = emitted.program(name, machine)
    stages, depth = max(one.stages for one in program.groups), max(ring.depth for ring in program.rings)
    inputs = [sample_inputs(program.kernel, trips=trips) for trips in (stages + depth + 2, 1, 0)]
    return tuple((one, run(program.kernel, one)) for one in inputs)


def is_noticed(name: str, machine: str, path: str) -> bool:
    """Return whether running a source shows that something is wrong."""
    kernel = emitted.program(name, machine).kernel
    types = {one.name: element_type(one.type) for one in kernel.arguments if is_tensor(one)}
    unit = roundoff(kernel)
    for inputs, wanted in cases(name, machine):
        try:
            found = run_source(path, inputs, types)
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
        if not is_noticed(name, machine, str(path)):
            found.append(str(mutant))
    return [one for one in found if not any(pattern.search(one) for pattern in EQUIVALENT.values())]


@pytest.mark.parametrize(("name", "machine"), [("gemm", "h100"), ("gemm", "b200")])
def test_some_mutants_are_noticed(name: str, machine: str, tmp_path: Path) -> None:
    assert unseen(name, machine, 5, tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize(("name", "machine"), emitted.PAIRS)
def test_every_mutant_is_noticed_or_equivalent(name: str, machine: str, tmp_path: Path) -> None:
    every = 1 if name == "gemm" else 4
    assert unseen(name, machine, every, tmp_path) == []
