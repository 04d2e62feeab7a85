"""``bench/accuracy.py``: every point has a source and a model; the table is made from what was searched before."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import accuracy
from accuracy import CACHE, Row, beyond, ranks, read_cache, rows, spearman, summary, tile
from accuracy_model import Made, Modelled, made, modelled, predicted
from accuracy_points import MODELS, POINTS, SOURCES, Attention, Point, Product
from twillgpu.errors import InputError
from twillgpu.machine.load import load as load_machine
from twillgpu.simulate.simulate import steady_state
from twillgpu.simulate.whole import Launch, kernel_time

FOUND = Modelled(
    ii_cycles=1000, steady_cycles=1000, edge_cycles=500, flop=2_000_000, loop_bytes=6400, edge_bytes=640, said="found"
)


def test_every_point_has_a_source_with_an_address_and_a_model() -> None:
    models = {model.name for model in MODELS}
    assert len(models) == len(MODELS)
    for point in POINTS:
        assert SOURCES[point.source].address.startswith("https://")
        assert SOURCES[point.source].what
        assert point.model in models
        assert point.model.partition(",")[0] + ", optimum" in models
    assert {point.source for point in POINTS} == set(SOURCES)


def test_there_are_enough_points_of_every_kind() -> None:
    assert len(POINTS) >= 20
    kinds = {(point.chip, str(point.shape).split()[0]) for point in POINTS}
    assert kinds == {(chip, kind) for chip in ("h100", "b200") for kind in ("forward", "backward", "product")}
    kernels = {point.kernel.partition(",")[0] for point in POINTS}
    assert {"FA2", "FA3", "FA4", "cuDNN", "Triton", "CUTLASS", "cuBLAS"} <= kernels


@pytest.mark.parametrize("point", POINTS, ids=lambda point: f"{point.kernel}-{point.shape}-{point.source}")
def test_the_model_of_a_point_is_for_its_chip_and_does_its_work(point: Point) -> None:
    model = next(model for model in MODELS if model.name == point.model)
    assert model.machine.startswith(point.chip)
    blocks, trips = point.shape.launch(tile(model))
    found = read_cache().get(model.name)
    if found is not None and found.ii_cycles is not None:
        assert found.flop * trips * blocks >= point.shape.flop()
        assert found.flop * trips * blocks <= point.shape.flop() * 1.05


def test_the_table_is_made_from_what_was_searched_before(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.argv", ["accuracy.py"])
    monkeypatch.setattr(accuracy, "OUT", tmp_path / "out" / "accuracy.json")
    monkeypatch.setattr(accuracy, "modelled", lambda _: pytest.fail("a search was started"))
    accuracy.main()
    text = capsys.readouterr().out
    assert len([line for line in text.splitlines() if line.startswith(("h100  ", "b200  "))]) == len(POINTS)
    assert "rank correlation" in text
    document = json.loads(accuracy.OUT.read_text(encoding="utf-8"))
    assert len(document["points"]) == len(POINTS)
    assert all(point["source"]["address"] for point in document["points"])


def test_all_models_were_searched() -> None:
    assert set(json.loads(CACHE.read_text(encoding="utf-8"))) == {model.name for model in MODELS}


def test_a_launch_takes_its_waves_and_what_the_ceiling_leaves() -> None:
    machine = load_machine("h100")
    full, more = (predicted(FOUND, machine, blocks, 100) for blocks in (132, 133))
    microseconds = (500 + 100 * 1000 + 700) / 1830 + 3
    assert full.model_tflops == pytest.approx(2_000_000 * 100 * 132 / microseconds / 1e6)
    assert (full.waves, more.waves) == (1, 2)
    assert more.model_tflops < 0.53 * full.model_tflops
    assert full.tflops == full.model_tflops < full.ceiling_tflops
    fast = predicted(replace(FOUND, flop=20_000_000), machine, 132, 100)
    assert fast.tflops == fast.ceiling_tflops < fast.model_tflops


def test_the_path_to_l2_may_bind() -> None:
    heavy = replace(FOUND, loop_bytes=128_000)
    assert predicted(heavy, load_machine("h100"), 132, 100).model_tflops == pytest.approx(
        predicted(FOUND, load_machine("h100"), 132, 100).model_tflops / 2, rel=0.05
    )


def test_no_schedule_is_an_error_and_a_row_without_prediction() -> None:
    with pytest.raises(InputError, match="no room"):
        predicted(Modelled(said="no room"), load_machine("h100"), 1, 1)
    found = rows({POINTS[0].model: Modelled(said="no room")})
    assert (found[0].error, found[0].said) == (None, "no room")
    assert summary(found)["points"] == 0


def test_rank_correlation() -> None:
    assert ranks([3, 1, 2, 2]) == [4, 1, 2.5, 2.5]
    assert spearman([1, 2, 3, 4], [10, 20, 30, 25]) == pytest.approx(0.8)
    assert spearman([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert spearman([1, 1, 1], [3, 2, 1]) is None


def test_points_beyond_the_optimum_are_reported() -> None:
    point = Point(
        kernel="x", chip="h100", shape=Product(m=1, n=1, k=1), tflops=120, source="FA3", model="H100 product, optimum"
    )
    best = predicted(FOUND, load_machine("h100"), 132, 100)
    row = Row(point=point, found=best, interval=best, best=best, said="")
    share = 120 / best.tflops - 1
    assert beyond([row], share - 0.01) == [row]
    assert beyond([row], share + 0.01) == []


def test_the_flop_of_a_shape_are_those_that_publications_count() -> None:
    assert Attention(batch=1, heads=2, seq=1024).flop() == 4 * 2 * 1024**2 * 128
    assert Attention(batch=1, heads=2, seq=1024, backward=True).flop() == 10 * 2 * 1024**2 * 128
    assert Product(m=2, n=3, k=5).flop() == 60


@pytest.mark.triton
@pytest.mark.slow
def test_what_was_searched_before_is_what_a_search_finds_and_the_formula_that_of_the_simulation() -> None:
    model = next(model for model in MODELS if model.name == "H100 product, producer")
    stored, found = read_cache()[model.name], modelled(model)
    assert (found.ii_cycles, found.flop) == (stored.ii_cycles, stored.flop)
    assert found.steady_cycles == pytest.approx(stored.steady_cycles)
    run = made(model)
    assert isinstance(run, Made)
    machine, problem = run.priced.loaded.machine, run.priced.problem
    steady = steady_state(run.program, problem, machine)
    launch = Launch(trips=128, blocks=2048)
    time, _ = kernel_time(run.program, problem, machine, steady, launch=launch)
    assert predicted(found, machine, 2048, 128).model_tflops == pytest.approx(time.tflops, rel=0.002)


def test_the_page_shows_what_the_bench_prints(capsys: pytest.CaptureFixture[str]) -> None:
    accuracy.show(rows(read_cache()))
    page = (Path(accuracy.__file__).parents[1] / "docs" / "accuracy.md").read_text(encoding="utf-8")
    assert f"```text\n{capsys.readouterr().out.rstrip()}\n```" in page
    assert [
        name for name, source in SOURCES.items() if f"- {name}: {source.what}. <{source.address}>" not in page
    ] == []
