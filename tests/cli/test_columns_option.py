"""``--columns fixed``: scheduled, recorded, verified; and what it would cost, in the document of a free schedule."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from graphs import document, write

from twillgpu.cli import run

Captured = pytest.CaptureFixture[str]
CAPTURED = Path(__file__).parents[1] / "frontend" / "data"


def scores() -> dict[str, Any]:
    """Return attention with three ops: a product s, p made from it in TMEM, a product that reads p."""
    units = {"tensor": 1, "alu": 1}
    return document(
        machine={"name": "inline", "units": units, "memories": {"tmem": 4096}},
        ops=[
            {
                "name": "s",
                "kind": "mma",
                "uses": [{"unit": "tensor", "cycles": 2}],
                "latency_cycles": 3,
                "result": {"space": "tmem", "bytes": 512},
            },
            {
                "name": "p",
                "uses": [{"unit": "alu", "cycles": 4}],
                "latency_cycles": 4,
                "result": {"space": "tmem", "bytes": 256},
            },
            {"name": "acc", "kind": "mma", "uses": [{"unit": "tensor", "cycles": 2}], "latency_cycles": 3},
        ],
        edges=[{"from": "s", "to": "p"}, {"from": "p", "to": "acc"}],
    )


def test_fixed_columns_are_scheduled_recorded_and_verified(capsys: Captured, tmp_path: Path) -> None:
    # 3 + 4 + 3 cycles around the columns; p alone takes 4.
    graph = write(tmp_path, scores())
    found = {}
    for columns in ("free", "fixed"):
        assert run(["schedule", graph, "--columns", columns, "--json"]) == 0
        found[columns] = json.loads(capsys.readouterr().out)
        schedule = write(tmp_path, found[columns], f"{columns}.json")
        assert run(["verify", graph, schedule]) == 0
        assert "note" not in capsys.readouterr().out
    assert {name: one["ii_cycles"] for name, one in found.items()} == {"free": 4, "fixed": 10}
    assert {name: one["search"]["options"]["columns"] for name, one in found.items()} == {
        "free": "free",
        "fixed": "fixed",
    }
    assert [buffer["name"] for buffer in found["fixed"]["buffers"]] == ["s+p"]
    assert found["fixed"]["fixed_columns"] is None
    assert found["free"]["fixed_columns"] == {
        "shared": [{"value": "p", "product": "s"}],
        "lower_bound_cycles": 10,
        "bound": "recurrence",
        "reason": "recurrence: s -> p -> acc -> s: 10 cycles",
        "impossible": [],
    }
    assert run(["verify", graph, str(tmp_path / "free.json"), "--columns", "fixed"]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert 'note: columns is "fixed" here, the schedule was made with "free"' in out
    assert "dependence (acc, s)" in out


def test_an_emitted_graph_keeps_fixed_columns(capsys: Captured, tmp_path: Path) -> None:
    graph = str(tmp_path / "fixed.json")
    assert run(["schedule", write(tmp_path, scores()), "--columns", "fixed", "--emit", "graph", "-o", graph]) == 0
    assert run(["schedule", graph, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ii_cycles"] == 10


def test_attention_on_blackwell_says_what_fixed_columns_would_cost(capsys: Captured) -> None:
    kernel = str(CAPTURED / "attention_fwd_sm_100a_triton39.mlir")
    assert run(["schedule", kernel, "--machine", "b200", "--work-limit", "1e-9"]) == 3
    assert "I would be at least 2,953 cycles (recurrence: qk_" in " ".join(capsys.readouterr().out.split())


def test_columns_are_free_or_fixed(capsys: Captured, tmp_path: Path) -> None:
    assert run(["schedule", write(tmp_path, scores()), "--columns", "shared"]) == 1
    assert "'shared' is not one of 'free', 'fixed'" in capsys.readouterr().err
