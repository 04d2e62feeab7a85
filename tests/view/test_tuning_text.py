"""The result of a tuning run as a table, JSON and CSV, and its line of progress."""

import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from twillgpu.tune.record import Axis, Candidate, Outcome, Progress, Question, Status, Tuned, Value
from twillgpu.view.tuning import progress_text, tuned_csv, tuned_json, tuned_text

AXES = (
    Axis(name="BLOCK_M", values=(64, 96, 128)),
    Axis(name="subtile", values=(0, 64)),
    Axis(name="registers", values=(None, 168)),
)


def _candidate(*values: Value) -> Candidate:
    return Candidate(values=tuple(zip((axis.name for axis in AXES), values, strict=True)))


BEST = Outcome(
    candidate=_candidate(128, 64, None),
    status="solved",
    by="simulation",
    floor_microseconds=149.0,
    microseconds=155.92,
    tflops=881.6,
    ceiling_tflops=660.0,
    ii_cycles=1024,
    proof="optimal",
    steady_cycles=1026.0,
    block_cycles=69254.0,
    trips=64,
    blocks=512,
    waves=4,
    binding="simulation",
    groups=3,
    warps=9,
    registers=240,
    smem_bytes=230400,
    rings=(("load_a", 4), ("load_b", 5)),
    seconds=1.0,
)
GRAPH = replace(
    BEST,
    candidate=_candidate(96, 0, 168),
    ceiling_tflops=None,
    by="schedule",
    binding="schedule",
    microseconds=1201.5,
    tflops=None,
    proof="feasible",
    steady_cycles=None,
    registers=0,
    rings=(),
    reason="priced through tile_96.json: Triton rejects the launch",
)


def _row(status: Status, reason: str, *values: Value) -> Outcome:
    return Outcome(candidate=_candidate(*values), status=status, reason=reason)


TUNED = Tuned(
    question=Question(source="gemm.py", machine="h100", grid=("M / BLOCK_M",), shape=(("M", 4096),)),
    axes=AXES,
    outcomes=(
        BEST,
        GRAPH,
        _row("pruned", "takes at least 187.4 us, above 155.9 us", 64, 64, None),
        _row(
            "declined", "4096 is no multiple of 96, and this is a sentence that a line is too short for", 96, 64, None
        ),
    ),
    kept=2,
    seconds=12.25,
)


def test_the_report(golden: Callable[[str], None]) -> None:
    golden(tuned_text(TUNED))


def test_a_ranking_beyond_the_power_limit_is_said_to_be_one() -> None:
    second = replace(BEST, microseconds=156.0, tflops=880.0)
    told = " ".join(tuned_text(replace(TUNED, outcomes=(BEST, second))).split())
    assert "2 candidates are above the 660 TFLOP/s that the chip sustains under its power limit" in told
    assert "power limit:" not in tuned_text(TUNED)


def test_a_run_without_a_schedule(golden: Callable[[str], None]) -> None:
    golden(tuned_text(replace(TUNED, outcomes=TUNED.outcomes[3:], kept=0)))


def test_the_document_has_every_row_by_name() -> None:
    document = json.loads(tuned_json(TUNED))
    assert document["schema"] == "twillgpu-tuning/1"
    assert document["axes"] == {"BLOCK_M": [64, 96, 128], "subtile": [0, 64], "registers": [None, 168]}
    first, *_, last = document["outcomes"]
    assert first["candidate"] == {"BLOCK_M": 128, "subtile": 64, "registers": None}
    assert first["rings"] == {"load_a": 4, "load_b": 5}
    assert (first["microseconds"], last["status"]) == (155.92, "declined")


def test_a_candidate_is_shown_as_it_is_given() -> None:
    assert BEST.candidate.text == "BLOCK_M=128 subtile=64 registers=default"
    assert GRAPH.candidate.text == "BLOCK_M=96 subtile=none registers=168"


def test_the_csv_has_a_line_for_each_candidate() -> None:
    first, second, third, _ = csv.DictReader(io.StringIO(tuned_csv(TUNED)))
    assert (first["rank"], second["rank"], third["rank"]) == ("1", "2", "")
    assert (first["BLOCK_M"], first["subtile"], first["registers"]) == ("128", "64", "default")
    assert (second["subtile"], second["registers"], first["registers_used"]) == ("none", "168", "240")
    assert (first["rings"], third["reason"]) == ("load_a:4 load_b:5", "takes at least 187.4 us, above 155.9 us")


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (
            Progress(total=40, bounded=3, finished=0, pruned=0, best=None, seconds_left=None),
            "[................] 0/40, 3 bounded",
        ),
        (
            Progress(total=40, bounded=40, finished=12, pruned=8, best=BEST, seconds_left=83.2),
            f"[########........] 20/40, 1 min 23 s left, 8 pruned, best 155.9 us ({BEST.candidate.text})",
        ),
        (
            Progress(total=0, bounded=0, finished=0, pruned=0, best=None, seconds_left=9),
            "[................] 0/0, 9 s left",
        ),
    ],
)
def test_progress_in_one_line(state: Progress, text: str) -> None:
    assert progress_text(state) == text
