"""``twillgpu schedule`` on graph files: report, documents, limits, exit statuses."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from graphs import FIGURE_1, REGISTER_LIMITED, document, write

from twillgpu.cli import run
from twillgpu.graph.jsonform import read_graph
from twillgpu.schedule.jsonform import read_schedule

Captured = pytest.CaptureFixture[str]


def _same_every_time(text: str) -> str:
    """Replace what differs from run to run or with the versions of packages."""
    text = re.sub(r"\d+\.\d\d\s+s", "0.00 s", text)
    return re.sub(r"CP-SAT [\d.]+", "CP-SAT 0", text)


def test_report_of_a_graph(capsys: Captured, golden: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REGISTER_LIMITED.parent)
    assert run(["schedule", REGISTER_LIMITED.name]) == 0
    out, err = capsys.readouterr()
    search = out.index("\nSearch\n")
    golden(_same_every_time(out[:search]))
    assert "search 0.00 s, in all 0.00 s" in _same_every_time(" ".join(out[search:].split()))
    assert err == ""


def test_json_is_one_document_that_reads_back(capsys: Captured) -> None:
    assert run(["schedule", str(FIGURE_1), "--json"]) == 0
    text = capsys.readouterr().out
    found = json.loads(text)
    assert (found["schema"], found["ii_cycles"], found["optimal"]) == ("twillgpu-schedule/1", 2, True)
    assert read_schedule(text, "out").ii_cycles == 2


def test_emit_schedule_is_the_same_document(capsys: Captured) -> None:
    run(["schedule", str(FIGURE_1), "--json"])
    first = json.loads(capsys.readouterr().out)
    run(["schedule", str(FIGURE_1), "--emit", "schedule"])
    second = json.loads(capsys.readouterr().out)
    assert first["ops"] == second["ops"]


def test_emit_graph_reads_back_to_the_same_problem(capsys: Captured, tmp_path: Path) -> None:
    assert run(["schedule", str(REGISTER_LIMITED), "--emit", "graph"]) == 0
    text = capsys.readouterr().out
    again = write(tmp_path, text)
    assert [op.name for op in read_graph(text, again).ops] == ["A", "B", "C"]
    assert run(["schedule", again, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ii_cycles"] == 6


@pytest.mark.parametrize("stage", ["problem", "bounds"])
def test_stages_before_the_search_have_text_and_json(capsys: Captured, stage: str) -> None:
    assert run(["schedule", str(FIGURE_1), "--emit", stage]) == 0
    assert "tensor" in capsys.readouterr().out
    assert run(["schedule", str(FIGURE_1), "--emit", stage, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["schema"] == f"twillgpu-{stage}/1"


def test_a_graph_file_has_no_kernel_to_emit(capsys: Captured) -> None:
    assert run(["schedule", str(FIGURE_1), "--emit", "kernel"]) == 1
    assert "graph JSON has no kernel; give the kernel itself (.py, .ttgir or .mlir)" in capsys.readouterr().err


def test_fewer_registers_cost_cycles_and_unlimited_ones_none(capsys: Captured) -> None:
    for limit, interval in (("0", 2), ("64", 6)):
        assert run(["schedule", str(REGISTER_LIMITED), "--registers", limit, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["ii_cycles"] == interval


def test_an_option_goes_before_the_limit_of_a_graph(capsys: Captured, tmp_path: Path) -> None:
    limits = {"registers": 0, "max_groups": 1}
    graph = write(tmp_path, json.loads(REGISTER_LIMITED.read_text(encoding="utf-8")) | {"limits": limits})
    for extra, interval in (([], 2), (["--registers", "64"], 6)):
        assert run(["schedule", graph, "--json", *extra]) == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["ii_cycles"], len(found["groups"])) == (interval, 1)


def test_rules_of_a_graph_can_be_set_back(capsys: Captured, tmp_path: Path) -> None:
    limits = {"cross_group": False, "concurrency": "paper"}
    graph = write(tmp_path, document(limits=limits))
    for extra, rules in (
        ([], {"concurrency": "paper", "variable_latency": "designated", "cross_group": False}),
        (
            ["--cross-group", "--concurrency", "issue", "--variable-latency", "free"],
            {"concurrency": "issue", "variable_latency": "free", "cross_group": True},
        ),
    ):
        assert run(["schedule", graph, "--emit", "problem", "--json", *extra]) == 0
        assert json.loads(capsys.readouterr().out)["rules"] == rules


def test_a_proved_infeasibility_is_status_2_with_its_reason(capsys: Captured) -> None:
    assert run(["schedule", str(REGISTER_LIMITED), "--stages", "1", "--registers", "40"]) == 2
    out = capsys.readouterr().out
    assert "infeasible: no schedule of at most 1 stage exists at any interval" in out
    assert "register" in out


def test_a_limit_is_status_3_and_says_what_is_known(capsys: Captured) -> None:
    assert run(["schedule", str(REGISTER_LIMITED), "--work-limit", "1e-9"]) == 3
    assert "before a limit was reached; any schedule" in " ".join(capsys.readouterr().out.split())


def test_the_machine_option_goes_before_that_of_the_file(capsys: Captured, tmp_path: Path) -> None:
    graph = write(tmp_path, document())
    units = '[units]\nalu = {value=2, unit="instances", source="t", confidence="G"}\n'
    machine = write(tmp_path, f'name = "wide"\n{units}', "wide.toml")
    for extra, interval in (([], 4), (["--machine", machine], 2)):
        assert run(["schedule", graph, "--json", *extra]) == 0
        assert json.loads(capsys.readouterr().out)["ii_cycles"] == interval


def test_the_same_options_give_the_same_schedule(capsys: Captured) -> None:
    texts = []
    for _ in range(2):
        assert run(["schedule", str(REGISTER_LIMITED), "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        texts.append(json.dumps([found[key] for key in ("ops", "groups", "buffers", "refuted")]))
    assert texts[0] == texts[1]
