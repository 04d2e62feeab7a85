"""``twillgpu compare`` on graph files: table, document, file, exit statuses."""

import json
from pathlib import Path

import pytest
from graphs import FIGURE_1, REGISTER_LIMITED, document, write

from twillgpu.cli import run

Captured = pytest.CaptureFixture[str]


def test_the_table_has_the_optimum_first_and_the_ratio_of_the_others(capsys: Captured) -> None:
    assert run(["compare", str(FIGURE_1)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    lines = [line.split() for line in out.splitlines()]
    # One iteration after the other takes 3 cycles, the optimum 2.
    assert any(line[:4] == ["optimum", "2", "=", "1.000"] for line in lines)
    assert any(line[:4] == ["sequential", "3", "=", "1.500"] for line in lines)
    assert "I = 2 cycles per iteration, optimal" in out
    assert "the loop has no load of variable latency" in " ".join(out.split())


def test_a_machine_without_units_has_no_busiest_one(capsys: Captured, tmp_path: Path) -> None:
    # A 3 cycles, then B 3: one iteration after the other takes 6.
    ops = [{"name": name, "uses": [], "latency_cycles": 3} for name in "AB"]
    machine = {
        "name": "bare",
        "units": {},
        "groups": {"max": 1, "warps": [4]},
        "handoff": {"base_cycles": 0, "cycles_per_kb": 0, "barrier_cycles": 0},
    }
    graph = {"schema": "twillgpu-graph/1", "name": "g", "machine": machine, "ops": ops}
    file = tmp_path / "bare.json"
    file.write_text(json.dumps(graph | {"edges": [{"from": "A", "to": "B"}]}), encoding="utf-8")
    assert run(["compare", str(file)]) == 0
    out = capsys.readouterr().out
    rows = [line.split() for line in out.splitlines()]
    assert [row[-1] for row in rows if row[:2] in (["optimum", "1"], ["sequential", "6"])] == ["none", "none"]
    assert "sequential: 6 by the length of one iteration in this order" in out


def test_json_is_one_document_with_every_schedule(capsys: Captured) -> None:
    assert run(["compare", str(REGISTER_LIMITED), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "twillgpu-comparison/1"
    rows = found["comparison"]["rows"]
    assert rows[0]["found"]["way"]["name"] == "optimum"
    intervals = [row["figures"]["ii_cycles"] for row in rows if row["figures"] is not None]
    assert intervals[0] == min(intervals) == 6
    assert all((row["found"]["outcome"] == "found") == (row["found"]["schedule"] is not None) for row in rows)


def test_the_answer_goes_to_a_file_that_is_not_overwritten_unasked(capsys: Captured, tmp_path: Path) -> None:
    file = tmp_path / "comparison.txt"
    assert run(["compare", str(FIGURE_1), "-o", str(file)]) == 0
    assert "optimum" in file.read_text(encoding="utf-8")
    assert run(["compare", str(FIGURE_1), "-o", str(file)]) == 1
    assert "the file exists" in capsys.readouterr().err
    assert run(["compare", str(FIGURE_1), "-o", str(file), "--force"]) == 0


def test_infeasible_is_status_2_and_every_row_says_so(capsys: Captured) -> None:
    assert run(["compare", str(REGISTER_LIMITED), "--stages", "1", "--registers", "40"]) == 2
    out = " ".join(capsys.readouterr().out.split())
    assert "infeasible: no schedule of at most 1 stage exists at any interval" in out
    assert "sequential: infeasible" in out
    assert "x best" not in out


def test_a_limit_is_status_3_and_the_baselines_are_still_shown(capsys: Captured) -> None:
    # The heuristics take no work of the solver: what they find is the best schedule known.
    assert run(["compare", str(REGISTER_LIMITED), "--work-limit", "1e-9"]) == 3
    out = " ".join(capsys.readouterr().out.split())
    assert "the best schedule known is that of" in out
    assert "swing modulo scheduling" in out


def test_options_and_mistakes_are_those_of_schedule(capsys: Captured, tmp_path: Path) -> None:
    graph = write(tmp_path, document())
    assert run(["compare", graph, "--max-groups", "1", "--stages", "2"]) == 0
    assert "at most 2 stages" in " ".join(capsys.readouterr().out.split())
    assert run(["compare", str(tmp_path / "none.json")]) == 1
    assert "no such file; check the path" in capsys.readouterr().err
