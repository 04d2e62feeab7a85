"""Latencies of loads."""

import statistics

from twillgpu.simulate.latency import sample
from twillgpu.simulate.record import Latency


def drawn(latency: Latency, count: int = 2000, seed: int = 0) -> list[int]:
    return [sample(latency, 1000, seed, "load", number) for number in range(count)]


def test_fixed_latencies_are_priced_replaced_and_scaled() -> None:
    assert set(drawn(Latency())) == {1000}
    assert set(drawn(Latency(cycles=300))) == {300}
    assert set(drawn(Latency(cycles=300, scale=1.5))) == {450}


def test_the_measured_range_goes_from_an_idle_chip_to_a_loaded_one() -> None:
    found = drawn(Latency(kind="uniform"))
    assert 1000 <= min(found) < 1100
    assert 4900 < max(found) <= 5000
    assert 2900 < statistics.mean(found) < 3100


def test_a_heavy_tail_is_long_and_rare() -> None:
    found = drawn(Latency(kind="heavy"))
    assert min(found) >= 1000
    assert 1100 < statistics.median(found) < 1300
    assert 0.005 < sum(one > 3000 for one in found) / len(found) < 0.04
    assert max(found) <= 40000


def test_each_seed_and_load_has_its_own() -> None:
    chosen = Latency(kind="heavy")
    assert drawn(chosen, 10) == drawn(chosen, 10)
    assert drawn(chosen, 10) != drawn(chosen, 10, seed=1)
    assert sample(chosen, 1000, 0, "a", 0) != sample(chosen, 1000, 0, "b", 0)
