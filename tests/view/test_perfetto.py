"""The trace keeps to the Trace Event Format: phases and their fields, nesting, arrows inside slices, counters."""

import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from simulated_run import EVENTS, TRACE

from twillgpu.api import find_schedule
from twillgpu.inputs import load_problem
from twillgpu.lower.lower import lower
from twillgpu.simulate.record import SimulationOptions
from twillgpu.simulate.simulate import simulate
from twillgpu.verify import Verified, check
from twillgpu.view.perfetto import perfetto_json

FIELDS = {
    "M": {"name", "pid", "tid", "args"},
    "X": {"name", "cat", "pid", "tid", "ts", "dur", "args"},
    "C": {"name", "pid", "tid", "ts", "args"},
    "s": {"name", "cat", "id", "pid", "tid", "ts"},
    "f": {"name", "cat", "id", "pid", "tid", "ts", "bp"},
}
"""What an event of each phase must have, after the format's documentation."""
Entry = dict[str, Any]
EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def check_format(document: Entry) -> dict[str, list[Entry]]:
    """Check a trace against the format; return its events by phase."""
    assert set(document) == {"traceEvents", "displayTimeUnit", "otherData"}
    assert document["displayTimeUnit"] in ("ms", "ns")
    by_phase: dict[str, list[Entry]] = defaultdict(list)
    for event in document["traceEvents"]:
        assert set(event) - {"ph"} == FIELDS[event["ph"]]
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        by_phase[event["ph"]].append(event)
    tracks = {(one["pid"], one["tid"]) for one in by_phase["M"] if one["name"] == "thread_name"}
    slices: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for one in by_phase["X"]:
        assert (one["pid"], one["tid"]) in tracks
        assert one["dur"] > 0
        slices[one["pid"], one["tid"]].append((cycle(one["ts"]), cycle(one["ts"] + one["dur"])))
    for found in slices.values():
        found.sort()
        assert all(first[1] <= second[0] for first, second in pairwise(found))
    starts = {one["id"]: one for one in by_phase["s"]}
    ends = {one["id"]: one for one in by_phase["f"]}
    assert set(starts) == set(ends)
    assert len(starts) == len(by_phase["s"])
    for one in (*starts.values(), *ends.values()):
        at = cycle(one["ts"])
        assert any(start <= at < stop for start, stop in slices[one["pid"], one["tid"]])
    for identity, one in starts.items():
        assert one["ts"] <= ends[identity]["ts"]
        assert ends[identity]["bp"] == "e"
        assert (one["name"], one["cat"]) == (ends[identity]["name"], ends[identity]["cat"])
    for one in by_phase["C"]:
        assert all(isinstance(value, int | float) and value >= 0 for value in one["args"].values())
    return by_phase


def cycle(microseconds: float) -> int:
    return round(microseconds * 1000)


def test_the_trace_keeps_to_the_format() -> None:
    found = check_format(json.loads(perfetto_json(TRACE)))
    assert [len(found[phase]) for phase in "XCsf"] == [8 + 4, 4, 1, 1]


def test_groups_and_single_units_are_tracks_and_shared_ones_counters() -> None:
    found = check_format(json.loads(perfetto_json(TRACE)))
    names = [one["args"]["name"] for one in found["M"] if one["name"] == "thread_name"]
    assert names == ["producer", "consumer", "tma", "alu"]
    assert [(cycle(one["ts"]), one["args"]["held"]) for one in found["C"]] == [(24, 2), (54, 0), (56, 2), (86, 0)]
    assert {one["name"] for one in found["C"]} == {"issue (of 8)"}


def test_an_arrow_leads_from_the_load_to_the_wait_that_it_released() -> None:
    found = check_format(json.loads(perfetto_json(TRACE)))
    (start,), (end,) = found["s"], found["f"]
    assert (start["tid"], cycle(start["ts"])) == (1, EVENTS[1].start_cycle)
    assert (end["tid"], cycle(end["ts"])) == (2, EVENTS[2].end_cycle - 1)


def test_stalls_are_slices_of_their_own_and_waits_contain_theirs() -> None:
    found = check_format(json.loads(perfetto_json(TRACE)))
    stalls = [one for one in found["X"] if one["cat"] == "stall"]
    assert [(one["name"], cycle(one["ts"]), cycle(one["dur"])) for one in stalls] == [("stall: unit tma", 9, 15)]
    waits = [one["args"].get("stall") for one in found["X"] if one["cat"] == "wait"]
    assert waits == ["barrier full, 22 cycles", None]


@pytest.mark.slow
@pytest.mark.triton
@pytest.mark.parametrize(("example", "machine"), [("gemm", "h100"), ("attention_fwd", "h100"), ("gemm", "b200")])
def test_traces_of_real_kernels_keep_to_the_format(example: str, machine: str) -> None:
    priced = load_problem(EXAMPLES / f"{example}.py", machine)
    schedule = find_schedule(priced).result.schedule
    assert schedule is not None
    verified = check(priced.problem, schedule)
    assert isinstance(verified, Verified)
    assert priced.loaded.kernel is not None
    program = lower(priced.loaded.kernel, priced.loaded.graph, verified)
    trace = simulate(program, priced.problem, priced.loaded.machine, SimulationOptions(trips=(8,)))
    found = check_format(json.loads(perfetto_json(trace)))
    last = max(cycle(one["ts"] + one["dur"]) for one in found["X"])
    assert last <= trace.cycles
    assert len(found["s"]) == len(found["f"]) > 4
