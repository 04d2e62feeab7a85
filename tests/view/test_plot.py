"""Static pictures: what is in the SVG, that PNGs are images, that bytes repeat, and what a missing package says."""

import re
import sys
from collections import Counter

import pytest
from handmade import PROBLEM, SCHEDULE

from twillgpu.errors import InputError
from twillgpu.view import plot
from twillgpu.view.lanes import steady_chart, whole_chart
from twillgpu.view.network import network
from twillgpu.view.occupancy import occupancies

pytest.importorskip("matplotlib")


def _draw(form: plot.Format) -> dict[str, bytes]:
    return {
        "gantt": plot.gantt("title", steady_chart(PROBLEM, SCHEDULE), form),
        "whole": plot.gantt("title", whole_chart(PROBLEM, SCHEDULE, 3), form),
        "occupancy": plot.occupancy("title", occupancies(PROBLEM, SCHEDULE), form),
        "graph": plot.graph("title", network(PROBLEM, SCHEDULE), SCHEDULE, form),
    }


@pytest.fixture(scope="module")
def pictures() -> dict[str, str]:
    return {name: data.decode("utf-8") for name, data in _draw("svg").items()}


def _bars(svg: str, kind: str) -> Counter[tuple[str, str]]:
    return Counter((lane, op) for lane, op in re.findall(rf'id="{kind}:([^:"]+):([^:"]+):', svg))


def test_every_op_has_a_bar_in_the_row_of_its_group(pictures: dict[str, str]) -> None:
    wanted = {(SCHEDULE.groups[op.group].name, op.name) for op in SCHEDULE.ops}
    assert set(_bars(pictures["gantt"], "group")) == wanted
    assert _bars(pictures["whole"], "group") == dict.fromkeys(wanted, 3)


def test_rows_names_and_iterations_are_written(pictures: dict[str, str]) -> None:
    for word in (
        "issue (of 8)",
        "mufu",
        "tensor",
        "g0",
        "g1",
        "newest iteration",
        "2 iterations earlier",
        "cycle of the",
    ):
        assert word in pictures["gantt"]
    assert "iteration 2" in pictures["whole"]


def test_limits_are_written_beside_their_lines(pictures: dict[str, str]) -> None:
    assert "smem: at most 1,536 of 4,096 bytes live, 3,584 set aside" in pictures["occupancy"]
    assert pictures["occupancy"].count(" limit<") == 4


def test_the_graph_names_ops_and_groups(pictures: dict[str, str]) -> None:
    for op in SCHEDULE.ops:
        assert op.name in pictures["graph"]
        assert f"{SCHEDULE.groups[op.group].name} at {op.start_cycle}" in pictures["graph"]


def test_pictures_repeat_byte_for_byte_and_have_no_date(pictures: dict[str, str]) -> None:
    again = {name: data.decode("utf-8") for name, data in _draw("svg").items()}
    assert again == pictures
    assert not any("<dc:date>" in svg for svg in pictures.values())


def test_images_are_png() -> None:
    drawn = _draw("png")
    assert all(data.startswith(b"\x89PNG") and len(data) > 5000 for data in drawn.values())
    assert drawn == _draw("png")


def test_without_matplotlib_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"it is not installed.*pip install 'twillgpu\[plot\]'"):
        plot.gantt("title", steady_chart(PROBLEM, SCHEDULE), "svg")
