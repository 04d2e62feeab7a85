"""Predicted against published throughput: a table, and ``bench/out/accuracy.json``.

Predictions are made from ``bench/accuracy_models.json``: one schedule for each model, simulated. ``--model NAME`` (or
``--model all``) searches models anew, minutes each, and rewrites that file.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path

from accuracy_model import OPTIMUM, Model, Modelled, Predicted, machine_name, modelled, predicted
from accuracy_points import MODELS, POINTS, SOURCES, Point
from twillgpu.errors import TwillError
from twillgpu.machine.load import load as load_machine

HERE = Path(__file__).parent
CACHE = HERE / "accuracy_models.json"
OUT = HERE / "out" / "accuracy.json"
HEAD = ("chip", "kernel", "problem", "published", "model", "predicted", "error", "optimum", "source")
TILES = {
    "attention_fwd": {"BLOCK_M": 128, "BLOCK_N": 128},
    "attention_bwd": {"BLOCK_M": 64, "BLOCK_N": 128},
    "gemm": {"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64},
}
"""Tiles of the examples' launches; attention forward takes 256 rows on b200."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A point with its prediction.

    Attributes:
        found: by the simulated program.
        interval: if every iteration took the schedule's interval instead.
        best: ``found`` of the optimum of the same kind and tile.
    """

    point: Point
    found: Predicted | None
    interval: Predicted | None
    best: Predicted | None
    said: str

    @property
    def error(self) -> float | None:
        """Predicted over published, less 1."""
        return None if self.found is None else self.found.tflops / self.point.tflops - 1


def rows(cache: dict[str, Modelled]) -> list[Row]:
    """Return every point with what the models say."""
    models = {model.name: model for model in MODELS}
    by_interval = {name: replace(one, steady_cycles=float(one.ii_cycles or 0)) for name, one in cache.items()}
    found = []
    for point in POINTS:
        kind = point.model.partition(",")[0]
        best = f"{kind}, {OPTIMUM}"
        said = cache[point.model].said if point.model in cache else "not searched"
        found.append(
            Row(
                point=point,
                found=_predicted(models[point.model], point, cache),
                interval=_predicted(models[point.model], point, by_interval),
                best=_predicted(models[best], point, cache),
                said=said,
            )
        )
    return found


def _predicted(model: Model, point: Point, cache: dict[str, Modelled]) -> Predicted | None:
    if model.name not in cache or cache[model.name].ii_cycles is None:
        return None
    blocks, trips = point.shape.launch(tile(model))
    return predicted(cache[model.name], load_machine(machine_name(model.machine)), blocks, trips)


def tile(model: Model) -> dict[str, int]:
    """Return the tile that a model's kernel works on."""
    sizes = dict(TILES[model.example])
    if model.example == "attention_fwd" and model.machine == "b200":
        sizes["BLOCK_M"] = 256
    return sizes | dict(model.constexprs)


def ranks(values: Sequence[float]) -> list[float]:
    """Return the rank of each value; equal values share the mean of theirs."""
    return [
        sum(other < value for other in values) + (sum(other == value for other in values) + 1) / 2 for value in values
    ]


def spearman(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Return the rank correlation, ``None`` where it is not defined."""
    if len(one) < 3 or len(set(one)) < 2 or len(set(other)) < 2:
        return None
    return statistics.correlation(ranks(one), ranks(other))


def summary(found: Iterable[Row]) -> dict[str, object]:
    """Return errors and rank correlation of a set of rows."""
    with_error = [row for row in found if row.found is not None]
    right, pairs = ordered(with_error)
    errors = [abs(row.error) for row in with_error if row.error is not None]
    plain = [abs(row.interval.tflops / row.point.tflops - 1) for row in with_error if row.interval is not None]
    worst = max(with_error, key=lambda row: abs(row.error or 0), default=None)
    return {
        "points": len(errors),
        "median": statistics.median(errors) if errors else None,
        "median_by_interval": statistics.median(plain) if plain else None,
        "worst": max(errors, default=None),
        "worst_point": f"{worst.point.kernel}, {worst.point.shape}" if worst is not None else "",
        "pairs": pairs,
        "pairs_ordered": right,
        "within_10_percent": sum(error <= 0.1 for error in errors),
        "spearman": spearman(
            [row.found.tflops for row in with_error if row.found is not None],
            [row.point.tflops for row in with_error],
        ),
    }


def ordered(found: Iterable[Row]) -> tuple[int, int]:
    """Return how many pairs of kernels that one source measured on one problem are ordered as published, and of how
    many. Equal predictions (both at the ceiling) are ordered by the model without it.
    """
    right = total = 0
    for one, other in combinations([row for row in found if row.found is not None], 2):
        same = (one.point.source, one.point.shape, one.point.chip) == (
            other.point.source,
            other.point.shape,
            other.point.chip,
        )
        if same and one.found is not None and other.found is not None and one.point.tflops != other.point.tflops:
            total += 1
            first, second = ((found.tflops, found.model_tflops) for found in (one.found, other.found))
            right += first != second and (first > second) == (one.point.tflops > other.point.tflops)
    return right, total


def sets(found: list[Row]) -> dict[str, list[Row]]:
    """Return the sets of rows that errors are stated for."""
    chips = {chip: [row for row in found if row.point.chip == chip] for chip in ("h100", "b200")}
    return {
        "all": found,
        "schedule known": [row for row in found if row.point.known],
        "optimum stands for it": [row for row in found if not row.point.known],
        **chips,
        **{f"{chip}, schedule known": [row for row in of if row.point.known] for chip, of in chips.items()},
    }


def beyond(found: list[Row], margin: float) -> list[Row]:
    """Return the points that beat the model's optimum by more than ``margin``."""
    return [row for row in found if row.best is not None and row.point.tflops > row.best.tflops * (1 + margin)]


def line(row: Row) -> tuple[str, ...]:
    """Return a line of the table."""
    point, found, best = row.point, row.found, row.best
    predicted_text = (
        "-" if found is None else f"{found.tflops:.0f}{'' if found.tflops == found.model_tflops else ' c'}"
    )
    return (
        point.chip,
        point.kernel + ("" if point.known else " *"),
        str(point.shape),
        f"{point.tflops:.0f}",
        "-" if found is None else f"{found.model_tflops:.0f}",
        predicted_text,
        "-" if row.error is None else f"{row.error:+.0%}",
        "-" if best is None else f"{best.tflops:.0f}",
        point.source,
    )


def show(found: list[Row]) -> None:
    """Print the table and the statistics."""
    lines = [HEAD, *map(line, found)]
    sizes = [max(len(texts[column]) for texts in lines) for column in range(len(HEAD))]
    for texts in lines:
        print("  ".join(text.ljust(size) for text, size in zip(texts, sizes, strict=True)).rstrip())
    print("TFLOP/s. model: at the stated clock; predicted: at most the chip's practical ceiling (c: the ceiling).")
    print("*: the kernel's schedule is not public, the optimum of the same tile stands for it.")
    print("pairs: kernels that one source measured on one problem.\n")
    for name, of in sets(found).items():
        print(f"{name}: {_stated(summary(of))}")
    median = summary(found)["median"]
    margin = median if isinstance(median, float) else 0.0
    over = beyond(found, 0)
    print(
        f"\nabove the model's optimum: {len(over)} points, {len(beyond(found, margin))} by more than the median error"
    )
    for row in over:
        if row.best is not None:
            excess = row.point.tflops / row.best.tflops - 1
            print(f"  {row.point.kernel}, {row.point.shape}: {row.point.tflops:.0f}, {excess:+.0%}")
    for row in found:
        if row.found is None:
            print(f"no prediction: {row.point.kernel}, {row.point.shape}: {row.said}")


def _stated(stated: dict[str, object]) -> str:
    """Return statistics as a line."""
    return (
        f"{stated['points']} points, error {_percent(stated['median'])} median "
        f"({_percent(stated['median_by_interval'])} by the interval alone), {_percent(stated['worst'])} worst, "
        f"{stated['within_10_percent']} within 10%, rank correlation {_number(stated['spearman'])}, "
        f"{stated['pairs_ordered']} of {stated['pairs']} pairs in order"
    )


def _percent(value: object) -> str:
    return f"{value:.0%}" if isinstance(value, float) else "-"


def _number(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) else "-"


def read_cache() -> dict[str, Modelled]:
    """Return what was searched before."""
    text = CACHE.read_text(encoding="utf-8") if CACHE.exists() else "{}"
    return {name: Modelled(**entry) for name, entry in json.loads(text).items()}


def search_models(wanted: Sequence[str], cache: dict[str, Modelled]) -> None:
    """Search models anew, and write each as soon as it is there."""
    for model in MODELS:
        if model.name not in wanted and "all" not in wanted and not ("missing" in wanted and model.name not in cache):
            continue
        started = time.monotonic()
        try:
            cache[model.name] = modelled(model)
        except TwillError as error:
            cache[model.name] = Modelled(said=str(error))
        found = cache[model.name]
        seconds = time.monotonic() - started
        print(
            f"{model.name}: I {found.ii_cycles}, simulated {found.steady_cycles:.0f}, {found.said}, {seconds:.0f} s"
        )
        sys.stdout.flush()
        ordered = {one.name: asdict(cache[one.name]) for one in MODELS if one.name in cache}
        CACHE.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")


def stale(cache: dict[str, Modelled]) -> list[str]:
    """Return the models that were priced on another version of their machine."""
    return [
        model.name
        for model in MODELS
        if model.name in cache
        and cache[model.name].machine_sha256
        and cache[model.name].machine_sha256 != load_machine(machine_name(model.machine)).sha256
    ]


def document(found: list[Row]) -> dict[str, object]:
    """Return everything as JSON."""
    return {
        "points": [
            {
                "kernel": row.point.kernel,
                "chip": row.point.chip,
                "problem": str(row.point.shape),
                "published_tflops": row.point.tflops,
                "source": asdict(SOURCES[row.point.source]),
                "model": row.point.model,
                "schedule_known": row.point.known,
                "model_tflops": row.found.model_tflops if row.found is not None else None,
                "predicted_tflops": row.found.tflops if row.found is not None else None,
                "error": row.error,
                "optimum_tflops": row.best.tflops if row.best is not None else None,
            }
            for row in found
        ],
        "summary": {name: summary(of) for name, of in sets(found).items()},
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", action="append", default=[], help="search this model (all, missing) anew")
    chosen = parser.parse_args()
    cache = read_cache()
    if chosen.model:
        search_models(chosen.model, cache)
    found = rows(cache)
    show(found)
    for name in stale(cache):
        print(f"made for another version of the machine file: {name}", file=sys.stderr)
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(document(found), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
