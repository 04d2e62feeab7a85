"""Schedule JSON: what is written, what is read back, and what is refused with which words."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from problems import Dep, Node, brute_force, in_memory, problem, problems, use
from twillgpu.costs.record import Bound, Bounds, Problem
from twillgpu.errors import InputError
from twillgpu.machine.record import Groups
from twillgpu.schedule.jsonform import (
    hash_mismatches,
    read_schedule,
    read_schedule_file,
    schedule_to_json,
    write_schedule,
)
from twillgpu.schedule.record import (
    Attempt,
    Buffer,
    Group,
    Refuted,
    Schedule,
    ScheduledOp,
    SearchOptions,
    SearchResult,
)

PROBLEM = replace(
    problem(
        [
            Node(name="load", uses=(use("tma", 1),), latency=4, variable=True, value=in_memory(16)),
            Node(name="add", uses=(use("alu", 3),), latency=3),
        ],
        [Dep(tail="load", head="add")],
        units={"tma": 1, "alu": 2},
        groups=Groups(max=2, warps=(1, 4), max_warps=8),
    ),
    graph_sha256="a" * 64,
    machine_sha256="b" * 64,
)
SCHEDULE = Schedule(
    graph="tiny",
    machine="tiny",
    ii_cycles=4,
    ops=(ScheduledOp(name="load", start_cycle=0, group=0), ScheduledOp(name="add", start_cycle=6, group=1)),
    groups=(
        Group(name="loads", warps=1, registers_per_thread=24),
        Group(name="math", warps=4, registers_per_thread=48),
    ),
    buffers=(Buffer(name="load", space="smem", bytes=16, depth=4, depth_floor=3, offset_bytes=32),),
    graph_sha256="a" * 64,
    machine_sha256="b" * 64,
)
RESULT = SearchResult(
    status="optimal",
    schedule=SCHEDULE,
    bounds=Bounds(bounds=(Bound(name="alu", cycles=2, reason="3 of 2", ops=("add",)),)),
    lower_bound_cycles=4,
    bound_reason="3 is refuted",
    max_stages=3,
    objective=(("handoff", 0),),
    objective_proved=True,
    refuted=(Refuted(first_cycles=2, last_cycles=3, reason="too short", families=("capacity",)),),
    attempts=(Attempt(purpose="first", slots=4, slot_cycles=1, stages=3, outcome="found", seconds=0.5),),
    method="clauses",
    solver="CP-SAT",
    version="9",
    options=SearchOptions(),
    slot_cycles=1,
    seconds=1.5,
)

TEXT = """{
  "schema": "twillgpu-schedule/1",
  "graph": "tiny",
  "machine": "tiny",
  "status": "optimal",
  "ii_cycles": 4,
  "lower_bound_cycles": 4,
  "optimal": "within 3 stages",
  "bound_reason": "3 is refuted",
  "max_stages": 3,
  "stages": 3,
  "length_cycles": 9,
  "groups": [
    {"name": "loads", "warps": 1, "registers_per_thread": 24, "ops": ["load"]},
    {"name": "math", "warps": 4, "registers_per_thread": 48, "ops": ["add"]}
  ],
  "ops": [
    {"name": "load", "kind": "op", "source": "", "start_cycle": 0, "stage": 0, "slot": 0, "group": 0},
    {"name": "add", "kind": "op", "source": "", "start_cycle": 6, "stage": 1, "slot": 2, "group": 1}
  ],
  "buffers": [
    {"name": "load", "space": "smem", "bytes": 16, "depth": 4, "depth_floor": 3, "offset_bytes": 32}
  ],
  "utilisation": {"tma": 0.25, "alu": 0.375},
"""


def test_the_text() -> None:
    text = write_schedule(PROBLEM, RESULT)
    assert text.startswith(TEXT)
    assert json.loads(text) == json.loads(json.dumps(schedule_to_json(PROBLEM, RESULT)))
    assert read_schedule(text, "s.json") == SCHEDULE
    assert read_schedule_file(text, "s.json").stages == 3


def test_optimal_without_condition_where_an_analytic_bound_is_met() -> None:
    met = replace(RESULT, schedule=replace(SCHEDULE, ii_cycles=2))
    assert schedule_to_json(PROBLEM, met)["optimal"] is True
    assert schedule_to_json(PROBLEM, replace(met, status="feasible"))["optimal"] is False


def test_remarks_of_the_method_are_written_and_read() -> None:
    """Before, what the paper's method had to say stood in the report only."""
    said = replace(RESULT, remarks=("joint solution: I = 4, L = 9",))
    text = write_schedule(PROBLEM, said)
    assert json.loads(text)["search"]["remarks"] == ["joint solution: I = 4, L = 9"]
    assert read_schedule(text, "s.json") == SCHEDULE


def test_a_result_without_schedule_is_written_but_holds_nothing_to_read() -> None:
    none = replace(RESULT, status="infeasible", schedule=None)
    text = write_schedule(PROBLEM, none)
    document = json.loads(text)
    assert (document["ii_cycles"], document["stages"], document["ops"]) == (None, None, [])
    with pytest.raises(InputError, match=r"^s\.json: ii_cycles: there is no schedule in it: none was found; give"):
        read_schedule(text, "s.json")


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(problems(max_ops=3))
def test_every_schedule_reads_back_equal(case: Problem) -> None:
    found = brute_force(case, 2, longest=6)
    if found is not None:
        text = write_schedule(case, replace(RESULT, schedule=found[1]))
        assert read_schedule(text, "s.json") == found[1]


MINIMAL: dict[str, Any] = {
    "schema": "twillgpu-schedule/1",
    "ii_cycles": 4,
    "groups": [{"name": "g0", "warps": 1}],
    "ops": [{"name": "a", "start_cycle": 6, "group": 0}],
    "buffers": [],
}


def test_what_follows_from_the_rest_may_be_left_out() -> None:
    assert read_schedule(json.dumps(MINIMAL), "s.json") == Schedule(
        graph="",
        machine="",
        ii_cycles=4,
        ops=(ScheduledOp(name="a", start_cycle=6, group=0),),
        groups=(Group(name="g0", warps=1, registers_per_thread=0),),
        buffers=(),
    )
    assert read_schedule_file(json.dumps(MINIMAL), "s.json").stages is None


RING = {"name": "a", "space": "smem", "bytes": 16, "depth": 1, "depth_floor": 1, "offset_bytes": 0}
WRONG = [
    (("schema",), "twillgpu-graph/1", "schema: this reader knows 'twillgpu-schedule/1', not 'twillgpu-graph/1'"),
    (("ii_cycles",), 0, "ii_cycles: 0 is too small; write an integer of at least 1"),
    (("ii_cycles",), 4.0, "ii_cycles: expected an integer, found a number with a fraction (4.0)"),
    (("ii_cycles",), True, "ii_cycles: expected an integer, found true or false (true)"),
    (("interval",), 4, 'interval: unknown key "interval"; '),
    (("groups",), {}, "groups: expected a list, found an object"),
    (("groups", 0, "warps"), 0, "groups[0].warps: 0 is too small"),
    (("groups", 0, "registers"), 24, 'groups[0].registers: unknown key "registers"; did you mean \'registers_per_th'),
    (("groups", 0, "ops"), [], "groups[0].ops: the group does not list the ops that give it as their group"),
    (("ops", 0, "start_cycle"), -1, "ops[0].start_cycle: -1 is too small; write an integer of at least 0"),
    (("ops", 0, "start_cycle"), "6", 'ops[0].start_cycle: expected an integer, found a string ("6")'),
    (("ops", 0, "group"), 1, "ops[0].group: there is no group 1; the groups are numbered 0 to 0"),
    (("ops", 0, "stage"), 2, "ops[0].stage: 2 contradicts the start cycle, which makes it 1; write 1"),
    (("ops", 0, "slot"), 0, "ops[0].slot: 0 contradicts the start cycle, which makes it 2; write 2"),
    (("ops", 0, "name"), "", "ops[0].name: the name is empty"),
    (("ops", 0, "kind"), 3, "ops[0].kind: expected a string, found an integer (3)"),
    (("buffers",), [{**RING, "depth": 0}], "buffers[0].depth: 0 is too small"),
    (
        ("buffers",),
        [{**RING, "space": "registers"}],
        "buffers[0].space: unknown name 'registers'; use one of smem",
    ),
    (("buffers",), [{"name": "a"}], "buffers[0].space: the key is missing; add 'space'"),
    (("stages",), 1, "stages: 1 is too small; the ops need at least 2 stages"),
    (("length_cycles",), 5, "length_cycles: 5 is too small; an op starts at cycle 6"),
    (("status",), "done", "status: unknown name 'done'; use one of feasible, infeasible, limit, optimal"),
    (("optimal",), 1, 'optimal: expected true, false or "within N stages", found an integer (1)'),
    (("utilisation",), {"alu": "all"}, 'utilisation.alu: expected a number, found a string ("all")'),
    (("refuted",), [{"ii_cycles": [1, "2"]}], 'refuted[0].ii_cycles[1]: expected an integer, found a string ("2")'),
    (("search",), {"solvr": "x"}, "search.solvr: unknown key \"solvr\"; did you mean 'solver'?"),
    (
        ("search",),
        {"options": {"seed": {}}},
        "search.options.seed: expected a number, a string, true",
    ),
    (("search",), {"remarks": [1]}, "search.remarks[0]: expected a string, found an integer (1)"),
    (("search",), {"attempts": [{"slots": -1}]}, "search.attempts[0].slots: -1 is too small"),
    (("bounds",), [{"cycles": None}], "bounds[0].cycles: expected an integer, found null"),
]


@pytest.mark.parametrize(("path", "value", "message"), WRONG)
def test_wrong_documents(path: tuple[str | int, ...], value: object, message: str) -> None:
    document = copy.deepcopy(MINIMAL)
    place: Any = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(InputError) as raised:
        read_schedule(json.dumps(document), "s.json")
    assert str(raised.value).startswith(f"s.json: {message}")


@pytest.mark.parametrize("key", ["ii_cycles", "groups", "ops", "buffers"])
def test_missing_keys(key: str) -> None:
    document = {name: value for name, value in MINIMAL.items() if name != key}
    with pytest.raises(InputError) as raised:
        read_schedule(json.dumps(document), "s.json")
    assert str(raised.value) == f"s.json: {key}: the key is missing; add {key!r}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "s.json:1:1: this is not JSON"),
        ("[]", "s.json: expected an object, found a list"),
        ("{}", 's.json: schema: the key is missing; add "schema": "twillgpu-schedule/1"'),
        (
            '{"schema": "twillgpu-schedule/1", "ii_cycles": 1, "ii_cycles": 2}',
            's.json: the key "ii_cycles" is',
        ),
    ],
)
def test_texts_that_are_no_schedule(text: str, message: str) -> None:
    with pytest.raises(InputError) as raised:
        read_schedule(text, "s.json")
    assert str(raised.value).startswith(message)


def test_a_schedule_for_another_graph_or_machine_is_noticed() -> None:
    assert hash_mismatches(PROBLEM, SCHEDULE) == ()
    assert hash_mismatches(PROBLEM, replace(SCHEDULE, graph_sha256="", machine_sha256="")) == ()
    other = replace(PROBLEM, graph_sha256="c" * 64, machine_sha256="d" * 64)
    assert hash_mismatches(other, SCHEDULE) == (
        "the schedule was made for another graph: sha256 aaaaaaaaaaaa..., here cccccccccccc...",
        "the schedule was made for another machine: sha256 bbbbbbbbbbbb..., here dddddddddddd...",
    )
