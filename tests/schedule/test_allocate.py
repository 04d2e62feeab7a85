"""Places of rings: the packing is exact, and rings share bytes only copy by copy, where they never meet."""

from __future__ import annotations

from itertools import product
from math import lcm

from hypothesis import given, settings
from hypothesis import strategies as st

from twillgpu.schedule.allocate import Ring, place

Places = dict[str, int]


def ring(name: str, units: int, depth: int, span: tuple[int, int] | None) -> Ring:
    return Ring(name=name, units=units, depth=depth, span=span)


def clash(rings: list[Ring], places: Places, interval: int) -> bool:
    """Return whether some unit of memory ever holds two live instances: every instance is followed in time."""
    turns = 2 * lcm(*(item.depth for item in rings)) + 6
    held: dict[tuple[int, int], str] = {}
    for item in rings:
        for iteration in range(-3, turns):
            first = places[item.name] + iteration % item.depth * item.units
            for unit, cycle in product(range(first, first + item.units), _cycles(item, iteration, interval)):
                if held.setdefault((unit, cycle), f"{item.name} {iteration}") != f"{item.name} {iteration}":
                    return True
    return False


def _cycles(item: Ring, iteration: int, interval: int) -> range:
    if item.span is None:
        return range(interval * iteration, interval * (iteration + 1))
    return range(item.span[0] + interval * iteration, item.span[1] + interval * iteration)


def packings(rings: list[Ring], interval: int, room: int) -> list[Places]:
    """Return every packing without a clash."""
    choices = [range(room - item.units * item.depth + 1) for item in rings]
    found = [dict(zip((item.name for item in rings), chosen, strict=True)) for chosen in product(*choices)]
    return [places for places in found if not clash(rings, places, interval)]


def sharing(rings: list[Ring], places: Places) -> int:
    """Return the smaller size of every two rings that share bytes, summed."""
    total = 0
    for index, one in enumerate(rings):
        for other in rings[:index]:
            begin = max(places[one.name], places[other.name])
            end = min(places[item.name] + item.units * item.depth for item in (one, other))
            total += min(one.units * one.depth, other.units * other.depth) if begin < end else 0
    return total


@st.composite
def tiny_rings(draw: st.DrawFn) -> tuple[list[Ring], int, int]:
    """Draw up to three rings at most as long-lived as their copies allow, an interval and the room."""
    interval = draw(st.integers(min_value=2, max_value=4))
    rings = []
    for name in "abc"[: draw(st.integers(min_value=2, max_value=3))]:
        depth = draw(st.integers(min_value=1, max_value=3))
        begin = draw(st.integers(min_value=0, max_value=2 * interval))
        length = draw(st.integers(min_value=1, max_value=depth * interval))
        span = draw(st.sampled_from(((begin, begin + length), (begin, begin + length), None)))
        depth = 1 if span is None else depth
        rings.append(ring(name, draw(st.integers(min_value=1, max_value=2)), depth, span))
    return rings, interval, draw(st.integers(min_value=1, max_value=6))


@settings(max_examples=200, deadline=None)
@given(tiny_rings())
def test_a_place_is_found_where_there_is_one_and_shares_least(case: tuple[list[Ring], int, int]) -> None:
    rings, interval, room = case
    found, every = place(rings, interval, room), packings(rings, interval, room)
    assert (found is None) == (not every)
    if found is None:
        return
    assert found in every
    assert sharing(rings, found) == min(sharing(rings, places) for places in every)


def test_what_fits_lies_side_by_side() -> None:
    assert place([ring("a", 2, 2, (0, 3)), ring("b", 1, 1, (5, 6))], 4, 5) == {"a": 0, "b": 4}


def test_a_ring_larger_than_the_memory_has_no_place() -> None:
    assert place([ring("a", 2, 2, (0, 3))], 4, 3) is None


def test_two_values_take_turns_in_one_place() -> None:
    # Interval 4: a in cycles 0 and 1, b in cycles 2 and 3.
    assert place([ring("a", 2, 1, (0, 2)), ring("b", 2, 1, (2, 4))], 4, 2) == {"a": 0, "b": 0}
    assert place([ring("a", 2, 1, (0, 2)), ring("b", 2, 1, (1, 4))], 4, 2) is None


def test_values_of_different_iterations_take_turns() -> None:
    # b of iteration i lives in cycles 6 to 8, that is 2 to 4 of the next period.
    assert place([ring("a", 2, 1, (0, 2)), ring("b", 2, 1, (6, 8))], 4, 2) is not None
    assert place([ring("a", 2, 1, (0, 2)), ring("b", 2, 1, (4, 6))], 4, 2) is None


def test_two_rings_share_copy_by_copy() -> None:
    """Two rings of three copies, each live 6 of 12 cycles, fit the room of one: floors of two would not.

    Interval 4, a live 0 to 6 and b 6 to 12: copy k of either is used every 12 cycles, by a and by b in turn.
    """
    three = [ring("a", 1, 3, (0, 6)), ring("b", 1, 3, (6, 12))]
    assert place(three, 4, 3) == {"a": 0, "b": 0}
    two = [ring("a", 1, 2, (0, 6)), ring("b", 1, 2, (6, 12))]
    assert place(two, 4, 3) is None


def test_what_is_live_all_the_time_shares_with_nothing() -> None:
    always = [ring("a", 1, 1, None), ring("b", 1, 1, (0, 1))]
    assert place(always, 4, 1) is None
    found = place(always, 4, 2)
    assert found is not None
    assert sorted(found.values()) == [0, 1]


def test_nothing_to_place() -> None:
    assert place([], 4, 0) == {}
