"""Casts in emitted files: of tiles, of runtime scalars, and of numbers that the compiler knows."""

from pathlib import Path

import pytest

pytest.importorskip("triton")

import twillgpu
from twillgpu.emulate.gluon.source import SourceOptions, check_source
from twillgpu.emulate.gluon.stand_in import VERSIONS

pytestmark = pytest.mark.triton
FILE = Path(__file__).parents[1] / "frontend" / "parameters_of_all_kinds.py"


def test_an_offset_of_64_bits_is_added_to_a_number_of_the_prologue(tmp_path: Path) -> None:
    """The first iterations are written out, with numbers in the place of the loop's variable."""
    priced = twillgpu.load_problem(FILE, "h100")
    run = twillgpu.find_schedule(priced)
    source = twillgpu.emit_source(priced, run.result).source
    assert "row + gl.to_tensor(1 * 1024).to(gl.int64)" in source
    path = tmp_path / "emitted.py"
    path.write_text(source, "utf-8")
    assert priced.loaded.kernel is not None
    report = check_source(str(path), priced.loaded.kernel, SourceOptions(trips=(2,), versions=VERSIONS))
    assert report.status == "sound", report
