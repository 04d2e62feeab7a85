"""``twillgpu verify``: sound schedules pass, and a broken rule is reported under its name."""

import json
from pathlib import Path
from typing import Any

import pytest
from graphs import FIGURE_1, REGISTER_LIMITED, write

from twillgpu.cli import run
from twillgpu.verify import RULES

Captured = pytest.CaptureFixture[str]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def _found(capsys: Captured, graph: Path) -> dict[str, Any]:
    assert run(["schedule", str(graph), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_what_schedule_prints_passes_every_rule(capsys: Captured, tmp_path: Path) -> None:
    schedule = write(tmp_path, _found(capsys, FIGURE_1))
    assert run(["verify", str(FIGURE_1), schedule]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "sound: I = 2 cycles, 3 ops" in out
    assert f"all {len(RULES)} rules hold: uniqueness, consistency, completion" in out


def test_a_broken_rule_is_status_1_under_its_name(capsys: Captured, tmp_path: Path) -> None:
    found = _found(capsys, FIGURE_1)
    for op in found["ops"]:
        op["start_cycle"] = 0
        del op["stage"], op["slot"]
    schedule = write(tmp_path, found)
    assert run(["verify", str(FIGURE_1), schedule]) == 1
    out = capsys.readouterr().out
    assert "dependence (S, P)" in out
    assert run(["verify", str(FIGURE_1), schedule, "--json"]) == 1
    verdict = json.loads(capsys.readouterr().out)
    assert verdict["schema"] == "twillgpu-verdict/1"
    assert verdict["sound"] is False
    assert {violation["rule"] for violation in verdict["violations"]} >= {"dependence", "capacity"}


def test_limits_count_when_verifying(capsys: Captured, tmp_path: Path) -> None:
    schedule = write(tmp_path, _found(capsys, REGISTER_LIMITED))
    assert run(["verify", str(REGISTER_LIMITED), schedule, "--registers", "56"]) == 1
    assert "register_limit" in capsys.readouterr().out


def test_limits_are_those_that_the_schedule_records(capsys: Captured, tmp_path: Path) -> None:
    """Before, a schedule under limits was checked against the machine's own unless the options were given again."""
    arguments = ["schedule", str(REGISTER_LIMITED), "--registers", "0", "--max-groups", "1", "--json"]
    assert run(arguments) == 0
    found = json.loads(capsys.readouterr().out)
    options = found["search"]["options"]
    assert (options["registers"], options["max_groups"], options["max_warps"]) == (0, 1, None)
    assert (options["concurrency"], options["variable_latency"], options["cross_group"]) == (
        "issue",
        "designated",
        True,
    )
    schedule = write(tmp_path, found)
    assert run(["verify", str(REGISTER_LIMITED), schedule]) == 0
    assert "note" not in capsys.readouterr().out
    assert run(["verify", str(REGISTER_LIMITED), schedule, "--registers", "64"]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "note: registers is 64 here, the schedule was made with 0" in out
    assert "max_groups" not in out


def test_another_rule_is_noted(capsys: Captured, tmp_path: Path) -> None:
    schedule = write(tmp_path, _found(capsys, FIGURE_1))
    options = ["--no-cross-group", "--lift", "mma_reader", "--max-groups", "1"]
    assert run(["verify", str(FIGURE_1), schedule, *options, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["notes"] == [
        "max_groups is 1 here, the schedule was made with the machine's own",
        "cross_group is false here, the schedule was made with true",
        'lift is ["mma_reader"] here, the schedule was made with []',
    ]


def test_a_schedule_without_recorded_limits_is_checked_under_those_of_the_graph(
    capsys: Captured, tmp_path: Path
) -> None:
    found = _found(capsys, REGISTER_LIMITED)
    del found["search"]
    schedule = write(tmp_path, found)
    document = json.loads(REGISTER_LIMITED.read_text(encoding="utf-8"))
    assert run(["verify", str(REGISTER_LIMITED), schedule]) == 0
    assert run(["verify", write(tmp_path, document | {"limits": {"registers": 56}}, "g.json"), schedule]) == 1
    assert "register_limit" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("max_groups", 0, "search.options.max_groups: 0 is too small"),
        ("concurrency", "non", "search.options.concurrency: unknown name 'non'; use one of issue, paper"),
        ("cross_group", None, "search.options.cross_group: expected true or false, found null"),
        ("lift", "mma_reader", "search.options.lift: expected a list, found a string"),
        ("limit", 1, 'search.options.limit: unknown key "limit"'),
    ],
)
def test_a_malformed_limit_has_its_path(
    capsys: Captured, tmp_path: Path, key: str, value: object, message: str
) -> None:
    found = _found(capsys, FIGURE_1)
    found["search"]["options"][key] = value
    assert run(["verify", str(FIGURE_1), write(tmp_path, found)]) == 1
    assert message in capsys.readouterr().err


def test_another_graph_is_noted(capsys: Captured, tmp_path: Path) -> None:
    graph = json.loads(FIGURE_1.read_text(encoding="utf-8"))
    graph["name"] = "renamed"
    graph["ops"][1]["warps"] = 2
    schedule = write(tmp_path, _found(capsys, FIGURE_1), "schedule.json")
    assert run(["verify", write(tmp_path, graph), schedule]) == 0
    assert "note: the schedule was made for another graph" in " ".join(capsys.readouterr().out.split())


def test_another_file_of_the_same_problem_is_not_noted(capsys: Captured, tmp_path: Path) -> None:
    """Before: "made for another graph" wherever the files differed, also for the graph that --emit graph prints."""
    graph = json.loads(FIGURE_1.read_text(encoding="utf-8"))
    graph["name"] = "renamed"
    graph["ops"][1]["source"] = "elsewhere.py:3"
    schedule = write(tmp_path, _found(capsys, FIGURE_1), "schedule.json")
    assert run(["verify", write(tmp_path, graph), schedule]) == 0
    assert "note" not in capsys.readouterr().out


@pytest.mark.triton
@pytest.mark.parametrize("columns", ["free", "fixed"])
def test_the_graph_that_a_kernel_becomes_is_the_same_problem(capsys: Captured, tmp_path: Path, columns: str) -> None:
    source = [str(EXAMPLES / "attention_fwd.py"), "--machine", "b200", "--columns", columns]
    files = []
    for stage in ("graph", "schedule"):
        run(["schedule", *source, "--emit", stage])
        files.append(write(tmp_path, capsys.readouterr().out, f"{stage}.json"))
    assert run(["verify", *files]) == 0
    assert "note" not in capsys.readouterr().out


def test_a_schedule_that_is_none_is_a_message(capsys: Captured, tmp_path: Path) -> None:
    assert run(["verify", str(FIGURE_1), write(tmp_path, "[]")]) == 1
    assert "expected an object" in capsys.readouterr().err
    assert run(["verify", str(FIGURE_1), str(tmp_path / "none.json")]) == 1
    assert "no such file; check the path" in capsys.readouterr().err
