"""Whole runs: the pruned search finds what the exhaustive one finds, and every candidate has its row."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from tiles import write_tiles

from twillgpu.errors import InputError
from twillgpu.frontend.launch import LoadOptions
from twillgpu.tune.executors import Local, processes
from twillgpu.tune.record import Question, Tuned
from twillgpu.tune.space import parse_axis
from twillgpu.tuning import tune

GEMM = str(Path(__file__).resolve().parents[2] / "examples" / "gemm.py")
SIZES = ((64, 64), (64, 128), (128, 64), (128, 128), (192, 128), (192, 176))
GRID = ("cdiv(seq_len, BLOCK_M)", "heads")


def _threads() -> Local:
    return Local(lambda: ThreadPoolExecutor(1), 1)


def _question(template: str, heads: int = 16) -> Question:
    shape = (("seq_len", 4096), ("heads", heads))
    return Question(source=template, machine="h100", shape=shape, grid=GRID, trips="cdiv(seq_len, BLOCK_N)")


AXES = tuple(map(parse_axis, ("BLOCK_M=64,128,192", "BLOCK_N=64,128,176")))


@pytest.mark.parametrize(("heads", "extra"), [(16, 0), (64, 400), (3, 0)])
def test_pruning_finds_the_best_of_the_exhaustive_search(tmp_path: Path, heads: int, extra: int) -> None:
    question = _question(write_tiles(tmp_path, *SIZES, extra=extra), heads)
    pruned = tune(question, AXES, pool=_threads)
    whole = tune(question, AXES, pool=_threads, best=0)
    assert pruned.best is not None
    assert whole.best is not None
    assert (pruned.best.candidate, pruned.best.microseconds) == (whole.best.candidate, whole.best.microseconds)
    assert whole.count("solved") == len(SIZES)
    assert pruned.count("solved") + pruned.count("pruned") == len(SIZES)
    assert whole.count("declined") == pruned.count("declined") == 3
    _floors_hold(whole)


def _floors_hold(whole: Tuned) -> None:
    for outcome in whole.outcomes:
        if outcome.microseconds is not None:
            assert outcome.floor_microseconds is not None
            assert outcome.floor_microseconds <= outcome.microseconds


def test_a_run_in_processes_says_what_a_missing_file_is(tmp_path: Path) -> None:
    tuned = tune(_question(write_tiles(tmp_path, (64, 64), (128, 128))), AXES, pool=processes)
    assert len(tuned.outcomes) == 9
    assert tuned.count("declined") == 7
    assert "no such file" in tuned.outcomes[-1].reason
    best = tuned.best
    assert best is not None
    assert (best.by, best.binding, best.blocks, best.proof) == ("schedule", "schedule", 1024 // 2, "optimal")


def test_limits_are_axes_too_and_impossible_ones_are_rows(tmp_path: Path) -> None:
    template = write_tiles(tmp_path, (64, 64)).replace("{BLOCK_M}_{BLOCK_N}", "64_64")
    question = replace(_question(template), grid=("64",), trips="8")
    tuned = tune(question, [parse_axis("groups=1,default"), parse_axis("warps=4,12")], pool=_threads, best=0)
    assert tuned.count("solved") == 4
    assert max(outcome.groups or 0 for outcome in tuned.outcomes if ("groups", 1) in outcome.candidate.values) == 1


def test_a_mistake_that_every_candidate_shares_is_an_error(tmp_path: Path) -> None:
    question = replace(_question(write_tiles(tmp_path, (64, 64))), trips=None)
    with pytest.raises(InputError, match="every candidate fails: --trips: the graph does not say how many"):
        tune(question, [parse_axis("BLOCK_M=64"), parse_axis("BLOCK_N=64")], pool=_threads)


def test_a_changed_file_or_machine_is_not_taken_from_the_journal(tmp_path: Path) -> None:
    template = write_tiles(tmp_path, *SIZES)
    journal = (tmp_path / "journal", False)
    first = tune(_question(template), AXES, pool=_threads, journal=journal)
    assert first.kept == 0
    again = tune(_question(template), AXES, pool=_threads, journal=journal)
    assert again.kept == len(SIZES) - again.count("pruned") + 3
    assert [one.candidate for one in again.outcomes] == [one.candidate for one in first.outcomes]
    write_tiles(tmp_path, (192, 128), (192, 176), (128, 128), extra=1)
    more = (tmp_path / "tile_128_128.json").read_text(encoding="utf-8").replace("600", "601")
    (tmp_path / "tile_128_128.json").write_text(more, encoding="utf-8")
    changed = tune(_question(template), AXES, pool=_threads, journal=journal)
    assert changed.kept in (again.kept, again.kept - 1)
    with pytest.raises(InputError, match="it answers another question"):
        tune(replace(_question(template), machine="h200"), AXES, pool=_threads, journal=journal)


@pytest.mark.slow
@pytest.mark.triton
def test_kernels_are_simulated_and_tiles_that_triton_refuses_are_priced_through_graphs(tmp_path: Path) -> None:
    question = Question(
        source=GEMM,
        machine="h100",
        graphs=write_tiles(tmp_path, (192, 128)),
        load=LoadOptions(constexprs=(("BLOCK_K", 64),)),
        shape=(("M", 3072), ("N", 2048), ("K", 1024)),
        grid=("M / BLOCK_M", "N / BLOCK_N"),
        trips="K / BLOCK_K",
    )
    axes = tuple(map(parse_axis, ("BLOCK_M=64,96,128,192", "BLOCK_N=128")))
    whole = tune(question, axes, pool=processes, best=0)
    rows = {dict(one.candidate.values)["BLOCK_M"]: one for one in whole.outcomes}
    assert [rows[size].status for size in (64, 96, 128, 192)] == ["solved", "declined", "solved", "solved"]
    assert "must be a power of 2" in rows[96].reason
    assert rows[192].by == "schedule"
    assert rows[192].reason.startswith("priced through tile_192_128.json: ")
    assert rows[128].by == "simulation"
    assert (rows[128].trips, rows[128].blocks, rows[128].waves) == (16, 384, 3)
    assert dict(rows[128].rings).keys() == {"load_a", "load_b"}
    _floors_hold(whole)
    pruned = tune(question, axes, pool=processes)
    assert pruned.best is not None
    assert whole.best is not None
    assert pruned.best.candidate == whole.best.candidate
