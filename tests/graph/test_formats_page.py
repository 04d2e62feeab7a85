"""The page about formats shows documents that the reader accepts, and lists every key and kind that there is."""

from __future__ import annotations

import json
import re
from pathlib import Path

from twillgpu.graph import jsonform
from twillgpu.graph.jsonform import read_graph, write_graph
from twillgpu.graph.kinds import ASYNCHRONOUS, COMPUTE, KINDS
from twillgpu.graph.record import EDGE_KINDS
from twillgpu.machine.load import from_mapping

PAGE = (Path(__file__).parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")
GRAPH, MACHINE, *_ = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)


def test_the_example_graph_reads_and_round_trips() -> None:
    graph = read_graph(GRAPH, "formats.md")
    assert [op.name for op in graph.ops] == ["load_k", "qk"]
    assert read_graph(write_graph(graph), "formats.md") == graph


def test_the_example_machine_reads() -> None:
    assert from_mapping(json.loads(MACHINE), "formats.md").name == "toy2"


def test_every_key_is_on_the_page() -> None:
    keys = {
        *jsonform._GRAPH_REQUIRED,
        *jsonform._GRAPH_OPTIONAL,
        *jsonform._OP_REQUIRED,
        *jsonform._OP_OPTIONAL,
        *jsonform._EDGE_OPTIONAL,
        *jsonform._LEGALITY_REQUIRED,
        *jsonform._LIMITS,
    }
    for key in keys | set(EDGE_KINDS):
        assert key in PAGE


def test_every_kind_is_on_the_page() -> None:
    for kind in {*KINDS.values(), *ASYNCHRONOUS, *COMPUTE, "op"}:
        assert f"`{kind}`" in PAGE
