"""The reservation table: rows of constant content, cells that the capacity holds."""

import pytest
from handmade import PROBLEM, SCHEDULE

from twillgpu.view.lanes import steady_chart
from twillgpu.view.modulo import modulo_table, modulo_text


def test_rows_cover_the_period_and_say_what_the_lanes_say() -> None:
    chart = steady_chart(PROBLEM, SCHEDULE)
    found = modulo_table(chart)
    assert found.columns == ("issue", "mufu", "tensor", "g0", "g1")
    assert [row.stop for row in found.rows[:-1]] == [row.start for row in found.rows[1:]]
    assert (found.rows[0].start, found.rows[-1].stop) == (0, 100)
    for row in found.rows:
        for lane, cell in zip(chart.lanes, row.cells, strict=True):
            inside = [bar for bar in lane.bars if bar.start < row.stop and bar.stop > row.start]
            assert {(bar.op, bar.iteration) for bar in inside} == set(cell.ops)
            assert cell.held == sum(bar.height for bar in inside) <= lane.capacity


@pytest.mark.parametrize(("slot", "tensor"), [(0, (("pv", 2),)), (10, (("qk", 0),)), (60, (("pv", 1),))])
def test_a_cell_names_op_and_age(slot: int, tensor: tuple[tuple[str, int], ...]) -> None:
    row = next(row for row in modulo_table(steady_chart(PROBLEM, SCHEDULE)).rows if row.start <= slot < row.stop)
    assert row.cells[2].ops == tensor


def test_the_text_shows_letters_ages_and_shares() -> None:
    text = modulo_text("hand on hand", PROBLEM, SCHEDULE)
    lines = [line.split() for line in text.splitlines()]
    assert ["from", "to", "issue", "mufu", "tensor", "g0", "g1"] in lines
    assert any(line[:2] == ["10", "14"] and line[2:6] == ["2/8", "C1", "C1", "B0"] for line in lines)
    assert "A load, B qk, C p, D pv" in text
    assert max(len(line) for line in text.splitlines()) <= 80
