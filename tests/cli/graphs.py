"""Graph documents for tests of the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent.parent / "graph" / "data"
FIGURE_1 = DATA / "paper_figure_1.json"
REGISTER_LIMITED = DATA / "register_limited.json"


def document(**changes: Any) -> dict[str, Any]:
    """Return the smallest useful graph document with some keys replaced."""
    base: dict[str, Any] = {
        "schema": "twillgpu-graph/1",
        "name": "small",
        "machine": {"name": "inline", "units": {"alu": 1}},
        "ops": [
            {"name": "a", "uses": [{"unit": "alu", "cycles": 2}], "latency_cycles": 3},
            {"name": "b", "uses": [{"unit": "alu", "cycles": 2}], "latency_cycles": 3},
        ],
        "edges": [{"from": "a", "to": "b"}],
    }
    return base | changes


def write(folder: Path, value: Any, name: str = "graph.json") -> str:
    """Write a document, or any text, to a file and return its path."""
    file = folder / name
    file.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return str(file)
