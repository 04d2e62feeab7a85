"""An interactive report as one HTML file: data as JSON, style and scripts inside, nothing loaded from elsewhere."""

from __future__ import annotations

import dataclasses
import html
import json
from importlib import resources
from string import Template

from twillgpu.view.lanes import Bar
from twillgpu.view.occupancy import Occupancy
from twillgpu.view.page import Page
from twillgpu.view.records import Plain, plain

SCHEMA = "twillgpu-view/1"
SCRIPTS = ("base.js", "charts.js", "graph.js", "page.js")


def page_json(page: Page) -> str:
    """Return the data of a report as one JSON document; a bar is an array in the order of the fields of ``Bar``."""
    return json.dumps(_document(page), indent=1) + "\n"


def page_html(page: Page) -> str:
    """Return a report as one HTML document."""
    # A script element ends at the first "</", whatever it holds.
    data = json.dumps(_document(page), separators=(",", ":")).replace("<", "\\u003c")
    return Template(_file("page.html")).substitute(
        title=html.escape(page.title),
        style=_file("page.css"),
        script="".join(_file(name) for name in SCRIPTS),
        data=data,
    )


def _document(page: Page) -> dict[str, Plain]:
    body = _packed(page)
    return {"schema": SCHEMA, **(body if isinstance(body, dict) else {})}


def _packed(value: object) -> Plain:
    """Return a record as JSON values like ``plain``, with bars as arrays (there are thousands) and with peaks."""
    if isinstance(value, Bar):
        return [value.op, value.start, value.stop, value.iteration, value.level, value.height, value.what]
    if isinstance(value, tuple):
        return [_packed(item) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        entries = {field.name: _packed(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return entries | {"peak": value.peak} if isinstance(value, Occupancy) else entries
    return plain(value)


def _file(name: str) -> str:
    return resources.files("twillgpu.view").joinpath("web", name).read_text(encoding="utf-8")
