"""The interactive report: one file, nothing from outside, data that agrees with the records."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
from handmade import PROBLEM, SCHEDULE
from simulated_run import TRACE

from twillgpu.view.html import SCHEMA, SCRIPTS, page_html, page_json
from twillgpu.view.page import Candidate, page

LINES = (("kernel.py:5", "    p = tl.exp(s)  # </script><b>"), ("kernel.py:99", "unused"))
SLOWER = replace(SCHEDULE, ii_cycles=150)
CANDIDATES = (
    Candidate(name="optimum", says="what the search finds", schedule=SCHEDULE, trace=TRACE),
    Candidate(name="sequential", says="one after the other", schedule=SLOWER),
)
PAGE = page("hand <on> hand", "I = 100 cycles & optimal", PROBLEM, CANDIDATES, LINES)


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.data: dict[str, str] = {}
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self._inside = dict(attrs).get("id") or tag

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002  # the parser's signature
        self._inside = ""

    def handle_data(self, data: str) -> None:
        self.data[self._inside] = self.data.get(self._inside, "") + data


@pytest.fixture(scope="module")
def parsed() -> _Elements:
    elements = _Elements()
    elements.feed(page_html(PAGE))
    return elements


def test_nothing_is_loaded_from_elsewhere(parsed: _Elements) -> None:
    text = page_html(PAGE)
    assert not [tag for tag, given in parsed.found if {"src", "href", "action", "srcset"} & set(given)]
    assert not {"link", "img", "iframe", "object", "embed"} & {tag for tag, _ in parsed.found}
    addresses = set(re.findall(r"https?://[^\s\"'<>)]+", text))
    assert addresses == {"http://www.w3.org/2000/svg"}  # the name of SVG, which nobody fetches
    assert "@import" not in text
    assert re.findall(r"url\((?!#)[^)]*\)", text.replace("url(#p${", "").replace("url(#head-${", "")) == []
    assert not re.search(r"\b(fetch|XMLHttpRequest|WebSocket|import)\s*\(", text)
    policy = next(given for tag, given in parsed.found if given.get("http-equiv") == "Content-Security-Policy")
    assert (policy["content"] or "").startswith("default-src 'none'")


def test_the_data_is_the_json_document_whatever_is_in_it(parsed: _Elements) -> None:
    data = json.loads(parsed.data["data"])
    assert data == json.loads(page_json(PAGE))
    assert data["schema"] == SCHEMA
    assert data["lines"] == [["kernel.py:5", "    p = tl.exp(s)  # </script><b>"]]
    assert [one["name"] for one in data["variants"]] == ["optimum", "sequential"]
    assert parsed.data["title"] == "hand <on> hand"


def _variant(index: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(page_json(PAGE))["variants"][index]
    return found


def test_every_op_is_in_the_row_of_its_group_once() -> None:
    variant = _variant()
    for index, lane in enumerate(lane for lane in variant["steady"]["lanes"] if lane["kind"] == "group"):
        wanted = sorted(op.name for op in SCHEDULE.ops if op.group == index)
        assert sorted({bar[0] for bar in lane["bars"]}) == wanted
        assert sorted(bar[0] for bar in lane["bars"] if bar[1] == SCHEDULE.start(bar[0]) % 100) == wanted


def test_every_variant_has_every_picture() -> None:
    first, second = _variant(0), _variant(1)
    assert first["simulated"]["stop"] == 86
    assert second["simulated"] is None
    for one, interval in ((first, 100), (second, 150)):
        assert one["steady"]["stop"] == one["ii_cycles"] == interval
        assert len(one["network"]["nodes"]) == len(one["ops"]) == 4
        assert [full["peak"] for full in one["occupancies"]] == [
            max(step["amount"] for step in full["steps"]) for full in one["occupancies"]
        ]
        assert one["modulo"]["rows"][-1]["stop"] == interval


def test_the_same_input_gives_the_same_bytes() -> None:
    again = page("hand <on> hand", "I = 100 cycles & optimal", PROBLEM, CANDIDATES, LINES)
    assert page_html(again) == page_html(PAGE)


def test_scripts_are_stored_beside_the_template_and_all_inside() -> None:
    assert SCRIPTS == ("base.js", "charts.js", "graph.js", "page.js")
    assert page_html(PAGE).count('"use strict"') == 1
    assert "$script" not in page_html(PAGE)
