"""The page about formats shows documents that the reader accepts, and lists every key and kind that there is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import twillgpu
from twillgpu.costs.limits import options_of
from twillgpu.costs.price import price
from twillgpu.graph import jsonform
from twillgpu.graph.jsonform import read_graph, write_graph
from twillgpu.graph.kinds import ASYNCHRONOUS, COMPUTE, KINDS
from twillgpu.graph.record import EDGE_KINDS
from twillgpu.machine.load import from_mapping, load
from twillgpu.schedule.jsonform import read_schedule_file, schedule_to_json
from twillgpu.schedule.record import SearchOptions
from twillgpu.schedule.search import search
from twillgpu.verify import check
from twillgpu.verify.record import Verified

PACKAGE = Path(twillgpu.__file__).parent
PAGE = (Path(__file__).parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")
GRAPH, MACHINE, SCHEDULE, *_ = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)


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


def test_the_example_schedule_is_sound_for_the_example_graph() -> None:
    graph = read_graph(GRAPH, "formats.md")
    found = read_schedule_file(SCHEDULE, "formats.md")
    problem = price(graph, load(str(graph.machine)), found.limits)
    assert found.limits == options_of(graph.limits)
    assert isinstance(check(problem, found.schedule, max_stages=found.stages), Verified)


def test_the_example_schedule_has_the_keys_that_are_written() -> None:
    """All of them, in the same order, at every depth; values that are there are those of the search."""
    graph = read_graph(GRAPH, "formats.md")
    problem = price(graph, load(str(graph.machine)))
    result = search(problem, SearchOptions(), None)
    written = schedule_to_json(problem, result, options_of(graph.limits))
    shown = json.loads(SCHEDULE)
    assert list(shown) == list(written)
    assert _shape(shown) == _shape(json.loads(json.dumps(written)))
    for key in ("ii_cycles", "status", "optimal", "lower_bound_cycles", "bound_reason", "max_stages"):
        assert shown[key] == written[key]


FREE_KEYS = ("utilisation", "objective")
"""Objects whose keys are names of units or of objectives."""


def _shape(value: object) -> object:
    """Return the keys of a document at every depth; of a list those of its first entry."""
    if isinstance(value, dict):
        return {key: None if key in FREE_KEYS else _shape(inner) for key, inner in value.items()}
    return [_shape(value[0])] if isinstance(value, list) and value else None


def test_every_key_of_a_schedule_is_explained() -> None:
    tables = PAGE.partition("which `verify` checks against every rule")[2].partition("## From a kernel")[0]
    for key in _keys(json.loads(SCHEDULE)):
        assert f"`{key}" in tables or f".{key}" in tables, key


def _keys(value: object) -> set[str]:
    if isinstance(value, dict):
        inner = {name for key, one in value.items() if key not in FREE_KEYS for name in _keys(one)}
        return {*value, *inner}
    return {name for one in value for name in _keys(one)} if isinstance(value, list) else set()


@pytest.mark.parametrize(
    "schema",
    [
        "twillgpu-kernel/1",
        "twillgpu-problem/1",
        "twillgpu-bounds/1",
        "twillgpu-program/1",
        "twillgpu-pipelined/1",
        "twillgpu-verdict/1",
    ],
)
def test_other_schemas_are_those_of_the_commands(schema: str) -> None:
    files = (*PACKAGE.glob("cli_*.py"), *PACKAGE.glob("view/*.py"))
    sources = "".join(path.read_text(encoding="utf-8") for path in files)
    assert f'"{schema}"' in sources
    assert f"`{schema}`" in PAGE
