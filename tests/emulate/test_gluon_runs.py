"""Emitted sources run as they are, and give what the reference gives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import emitted
import pytest

from twillgpu.emit.gluon import emit
from twillgpu.emit.record import Form
from twillgpu.emulate.gluon.source import SourceOptions, check_source
from twillgpu.emulate.gluon.stand_in import VERSIONS
from twillgpu.emulate.schedulers import Extreme

pytestmark = pytest.mark.triton


def _trips(name: str, machine: str, rows: int | None = None) -> tuple[int, ...]:
    """Return 0, 1, about the number of stages, and more than any ring is deep."""
    program = emitted.program(name, machine, rows)
    stages = max(group.stages for group in program.groups)
    deepest = max((ring.depth for ring in program.rings), default=1)
    return tuple(sorted({0, 1, stages - 1, stages, stages + 1, stages + deepest + 1}))


@pytest.mark.parametrize(("name", "machine"), emitted.PAIRS)
def test_emitted_sources_give_what_the_reference_gives(name: str, machine: str) -> None:
    path, kernel = emitted.source(name, machine)
    report = check_source(path, kernel, SourceOptions(trips=_trips(name, machine)))
    assert (report.status, report.races, report.hazards, report.deadlock) == ("sound", (), (), None)
    assert report.runs == len(_trips(name, machine))


@pytest.mark.parametrize("form", [Form(apart=True), Form(anew=True)], ids=["apart", "anew"])
@pytest.mark.parametrize("name", ["gemm", "attention_fwd"])
def test_code_in_another_form_gives_the_same(name: str, form: Form, tmp_path: Path) -> None:
    program = emitted.program(name, "h100")
    file = tmp_path / f"{name}.py"
    file.write_text(emit(program, form=form), "utf-8")
    report = check_source(str(file), program.kernel, SourceOptions(trips=_trips(name, "h100")))
    assert report.status == "sound"


@pytest.mark.parametrize("machine", ["h100", "b200"])
def test_names_of_both_versions_of_triton_are_found(machine: str) -> None:
    path, kernel = emitted.source("gemm", machine)
    report = check_source(path, kernel, SourceOptions(trips=(2,), versions=VERSIONS))
    assert (report.status, report.runs) == ("sound", 2)


def test_a_grid_of_several_blocks() -> None:
    path, kernel = emitted.source("attention_fwd", "h100")
    report = check_source(path, kernel, SourceOptions(trips=(2,), grid=(2, 2, 1)))
    assert report.status == "sound"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "machine"), emitted.PAIRS)
def test_every_order_that_hardware_may_choose_gives_the_same(name: str, machine: str) -> None:
    path, kernel = emitted.source(name, machine)
    groups = len(emitted.program(name, machine).groups)
    orders = tuple(
        Extreme(ahead=group, early=early, writes_first=first)
        for group in range(groups)
        for early, first in ((False, False), (True, False), (False, True))
    )
    options = SourceOptions(trips=_trips(name, machine)[-2:], seeds=(0, 1, 2), schedulers=orders, versions=VERSIONS)
    report = check_source(path, kernel, options)
    assert (report.status, report.races, report.hazards, report.deadlock) == ("sound", (), (), None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "machine", "rows"),
    [
        ("gemm", "h100", 64), ("gemm", "h100", 128), ("gemm", "b200", 64), ("gemm", "b200", 128),
        ("attention_fwd", "h100", 64), ("attention_fwd", "h100", 128), ("attention_fwd", "b200", 128),
        ("attention_fwd", "b200", 256), ("attention_bwd", "h100", 64), ("attention_bwd", "h100", 128),
        ("attention_bwd", "b200", 128),
    ],
)  # fmt: skip
def test_sub_tiled_sources_give_what_the_reference_gives(name: str, machine: str, rows: int) -> None:
    path, kernel = emitted.source(name, machine, rows)
    report = check_source(path, kernel, SourceOptions(trips=_trips(name, machine, rows)))
    assert (report.status, report.races, report.hazards, report.deadlock) == ("sound", (), (), None)


def test_triton_need_not_be_installed() -> None:
    path, _ = emitted.source("gemm", "h100")
    code = (
        "import sys; sys.modules['triton'] = None\n"
        "import numpy as np\n"
        "from twillgpu.emulate.gluon.source import run_source\n"
        "from twillgpu.emulate.inputs import Inputs\n"
        "ones = np.ones((128, 64), np.float16)\n"
        "inputs = Inputs(tensors={'a_desc': ones, 'b_desc': np.ones((64, 256), np.float16),\n"
        "                         'c_desc': np.zeros((128, 256), np.float16)}, scalars={'K': 64})\n"
        "blocks = {'a_desc': (128, 64), 'b_desc': (64, 256), 'c_desc': (128, 256)}\n"
        "found = run_source(sys.argv[1], inputs, dict.fromkeys(inputs.tensors, 'f16'), blocks=blocks)\n"
        "assert found.sound and (found.outputs['c_desc'] == 64).all()\n"
    )
    subprocess.run([sys.executable, "-c", code, path], check=True, cwd=Path(path).parent)  # noqa: S603  # our own code
