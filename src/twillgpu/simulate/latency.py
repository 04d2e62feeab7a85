"""Latencies of loads: as priced, from a measured range, or with a heavy tail."""

from __future__ import annotations

import math
import random

from twillgpu.simulate.figures import (
    BODY_MEDIAN,
    BODY_SPREAD,
    LOADED,
    TAIL_LIMIT,
    TAIL_SHAPE,
    TAIL_SHARE,
    TAIL_START,
)
from twillgpu.simulate.record import Latency


def sample(latency: Latency, priced: int, seed: int, op: str, number: int) -> int:
    """Return the latency of one load in cycles.

    It depends on the seed, the op and how many loads of it there were, and on nothing else: two programs that load
    the same meet the same latencies.

    Args:
        latency: what is asked for.
        priced: the latency of an idle chip by the machine file.
        seed: of the run.
        op: name of the load.
        number: how many loads of this name came before.
    """
    base = (priced if latency.cycles is None else latency.cycles) * latency.scale
    if latency.kind == "fixed":
        return round(base)
    chance = random.Random(f"{seed}/{op}/{number}")  # noqa: S311  # a simulation, no secret
    return round(base * (_uniform(chance) if latency.kind == "uniform" else _heavy(chance)))


def _uniform(chance: random.Random) -> float:
    return chance.uniform(1.0, LOADED.value)


def _heavy(chance: random.Random) -> float:
    """Lognormal, at least 1; one load in fifty from a Pareto tail."""
    if chance.random() < TAIL_SHARE.value:
        return min(TAIL_LIMIT.value, TAIL_START.value * chance.paretovariate(TAIL_SHAPE.value))
    return max(1.0, chance.lognormvariate(math.log(BODY_MEDIAN.value), BODY_SPREAD.value))
