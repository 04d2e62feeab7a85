"""Rings in a pool of TMEM: Triton names powers of two of columns, and a ring may have any number of copies."""

from dataclasses import replace
from pathlib import Path

import compiled_code as code
import pytest

from twillgpu.emit.gluon import emit
from twillgpu.emit.offline import compile_source
from twillgpu.emit.storage import COLUMN, pool_columns, window
from twillgpu.emulate.gluon.source import SourceOptions, check_source
from twillgpu.errors import UnsupportedError
from twillgpu.frontend.kernel import TileType
from twillgpu.lower.record import Ring


def _ring(first: int, copies: int, columns: int) -> Ring:
    return Ring(
        name="s",
        memory="tmem",
        bytes=columns * COLUMN,
        depth=copies,
        offset_bytes=first * COLUMN,
        scope="iteration",
        tile=TileType(space="tmem", shape=(128, columns), dtype="f32"),
        values=("s",),
    )


@pytest.mark.parametrize("copies", [1, 2, 3, 4, 5, 7])
@pytest.mark.parametrize("columns", [32, 64, 128])
def test_every_ring_that_begins_at_a_multiple_of_its_copy_has_a_window(copies: int, columns: int) -> None:
    for first in range(0, 512 - copies * columns + 1, columns):
        found = window(_ring(first, copies, columns), 512)
        assert found.size & (found.size - 1) == 0
        assert 0 <= found.first <= 512 - found.size
        assert found.first + found.skipped * columns == first
        assert found.skipped + copies <= found.size // columns


def test_powers_of_two_copies_have_one_wherever_they_begin() -> None:
    assert window(_ring(100, 2, 128), 512).first == 100


def test_what_has_none_is_named() -> None:
    with pytest.raises(UnsupportedError, match="3 copies of 128 columns of TMEM from column 64 on"):
        window(_ring(64, 3, 128), 512)


def test_a_pool_is_a_power_of_two_of_columns() -> None:
    assert [pool_columns([_ring(first, 1, 16)]) for first in (0, 32, 300)] == [32, 64, 512]


@pytest.mark.triton
def test_a_ring_of_three_copies_is_emitted(tmp_path: Path) -> None:
    program = code.program("gemm", "b200")
    acc = next(ring for ring in program.rings if ring.memory == "tmem")
    layout = acc.tile.layout.replace("blockN = 256", "blockN = 64")
    beside = replace(_ring(320, 3, 64), tile=replace(acc.tile, shape=(128, 64), layout=layout))
    shared = replace(beside, name="shared", values=())
    found = replace(program, rings=(*program.rings, beside, shared))
    (tmp_path / "pool.py").write_text(emit(found), "utf-8")
    assert "tmem.slice(256, 256).reinterpret(gl.float32, [4, 128, 64]" in emit(found)
    assert compile_source(tmp_path / "pool.py").tmem_columns == 512
    report = check_source(str(tmp_path / "pool.py"), program.kernel, SourceOptions(trips=(0, 1, 3)))
    assert report.status == "sound"
