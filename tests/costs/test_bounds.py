"""Lower bounds: one figure for each resource, derived in the comments."""

import itertools
from collections.abc import Iterator
from fractions import Fraction

import pytest
from cost_graphs import edge, graph, op, priced, small, value
from hypothesis import given
from hypothesis import strategies as st

from twillgpu.costs.bounds import bounds
from twillgpu.costs.circuits import worst_circuit
from twillgpu.costs.record import Bound, Problem
from twillgpu.errors import InputError
from twillgpu.graph.record import Cost, DepGraph, Op, Resident, Use
from twillgpu.machine.load import from_mapping
from twillgpu.machine.record import Machine

FREE = from_mapping({"name": "free", "units": {"tensor": 1, "alu": 2}}, "test")


def bound(problem: Problem, name: str) -> Bound | None:
    return next((one for one in bounds(problem).bounds if one.name == name), None)


def one_group(**changes: object) -> Machine:
    return small(groups={"max": 1, "warps": [4]}, **changes)


def test_a_unit_is_held_for_the_sum_of_its_uses() -> None:
    ops = tuple(op(name, cycles, unit="tensor") for name, cycles in (("qk0", 512), ("qk1", 510), ("pv", 512)))
    found = bounds(priced(graph(ops), FREE)).binding
    assert found == Bound(
        name="tensor",
        cycles=1534,
        reason="tensor: qk0 512 + pv 512 + qk1 510 = 1534 cycles",
        ops=("qk0", "qk1", "pv"),
    )


def test_a_unit_with_shares() -> None:
    # (3 x 2 + 5 x 1) / 2 = 5.5
    wide = Op(name="a", cost=Cost(uses=(Use(unit="alu", cycles=3, amount=2),), issue_cycles=3, latency_cycles=3))
    found = bound(priced(graph((wide, op("b", 5))), FREE), "alu")
    assert found is not None
    assert (found.cycles, found.reason) == (6, "alu: (a 6 + b 5) / 2 shares = 6 cycles")


def test_many_ops_are_counted() -> None:
    found = bound(priced(graph(tuple(op(f"o{index}", 10 - index) for index in range(8))), FREE), "alu")
    assert found is not None
    assert found.reason == "alu: (o0 10 + o1 9 + o2 8 + o3 7 + o4 6 + o5 5 + 2 more ops 7) / 2 shares = 26 cycles"
    assert len(found.ops) == 8


def test_an_op_that_holds_a_unit_twice_counts_twice() -> None:
    uses = (Use(unit="tensor", cycles=1), Use(unit="tensor", cycles=1, offset=3))
    found = bound(
        priced(graph((Op(name="x", cost=Cost(uses=uses, issue_cycles=1, latency_cycles=4)),)), FREE), "tensor"
    )
    assert found is not None
    assert found.cycles == 2


def test_a_circuit_and_its_name() -> None:
    # 3 + 4 cycles over 2 iterations: 3.5
    ops, edges = (op("a", latency=3), op("b", latency=4)), (edge("a", "b"), edge("b", "a", 2))
    assert bound(priced(graph(ops, edges), FREE), "recurrence") == Bound(
        name="recurrence",
        cycles=4,
        reason="recurrence: a -> b -> a: 7 cycles over 2 iterations = 4 cycles",
        ops=("a", "b"),
    )


def test_one_cycle_is_no_plural() -> None:
    reasons = [one.reason for one in bounds(priced(graph((op("a", 1),), (edge("a", "a", 1),)), FREE)).bounds]
    assert "alu: (a 1) / 2 shares = 1 cycle" in reasons
    assert "recurrence: a -> a: 1 cycle" in reasons


def test_no_circuit_no_bound() -> None:
    assert bound(priced(graph((op("a"), op("b")), (edge("a", "b"),)), FREE), "recurrence") is None


def test_the_worst_of_parallel_edges_counts() -> None:
    edges = (edge("a", "a", 1, latency_cycles=3), edge("a", "a", 2, latency_cycles=8), edge("a", "a", 3))
    found = bound(priced(graph((op("a", latency=2),), edges), FREE), "recurrence")
    assert found is not None
    assert (found.cycles, found.reason) == (4, "recurrence: a -> a: 8 cycles over 2 iterations = 4 cycles")


def test_ops_that_must_be_apart_pay_the_handoff_on_every_circuit() -> None:
    # the product completes after 9 and signals for nothing; the reader tells it with a barrier hop of 7 and reads 5
    machine = small(legality=["mma_reader"], memories={"smem": 1000, "tmem": 1000})
    ops = (op("mma", latency=9, issue=1, kind="mma", result=value("tmem")), op("load", latency=5))
    edges = (edge("mma", "load"), edge("load", "mma", 1, kind="anti"))
    found = bound(priced(graph(ops, edges), machine), "recurrence")
    assert found is not None
    assert found.cycles == 9 + 5 + 7
    lifted = bound(priced(graph(ops, edges), machine, lift=("mma_reader",)), "recurrence")
    assert lifted is not None
    assert lifted.cycles == 9 + 5


def test_a_circuit_of_distance_0_is_a_mistake() -> None:
    ops, edges = (op("a"), op("b")), (edge("a", "b"), edge("b", "a"))
    with pytest.raises(InputError) as caught:
        bounds(priced(graph(ops, edges), FREE))
    assert str(caught.value) in {
        f"edges: the circuit {path} takes 4 cycles and has distance 0: it waits for itself; "
        "give the edge that comes from an earlier iteration a distance of at least 1"
        for path in ("a -> b -> a", "b -> a -> b")
    }


def test_a_circuit_of_distance_0_and_no_latency_is_harmless() -> None:
    edges = (edge("a", "b", kind="order"), edge("b", "a", kind="order"), edge("a", "a", 1))
    assert bounds(priced(graph((op("a"), op("b")), edges), FREE)).binding.cycles == 2


def test_bytes_alive_for_so_long() -> None:
    # tile: 400 bytes from its start until use has read it: 10 + 20 + 7 (barrier) = 37 cycles; 2 x 400 x 37 / 1000
    tiles = tuple(op(f"tile{k}", latency=10, result=value("smem", 400)) for k in range(2))
    edges = (edge("tile0", "use"), edge("tile1", "use"))
    found = bound(priced(graph((*tiles, op("use", latency=20)), edges)), "smem")
    assert found == Bound(
        name="smem",
        cycles=30,
        reason="smem: tile0 400 for 37 cycles, tile1 400 for 37 cycles fit in 1000 bytes only from 30 cycles on",
        ops=("tile0", "tile1"),
    )


def test_fixed_bytes_leave_less() -> None:
    # 400 x 37 / (1000 - 500) = 29.6
    ops, edges = (op("tile", latency=10, result=value("smem", 400)), op("use", latency=20)), (edge("tile", "use"),)
    found = bound(priced(graph(ops, edges, fixed=(("smem", 500),))), "smem")
    assert found is not None
    assert found.cycles == 30


def test_the_longest_path_keeps_a_value_alive() -> None:
    # a is read by c, which waits for b as well: 2 + 4 cycles; a synchronous reader frees registers at its start.
    # b lives 4 cycles: (40 x 6 + 20 x 4) / 60 = 5.3
    a, b = value(size=40 * 512), value(size=20 * 512)
    ops = (op("a", 2, result=a), op("b", 2, latency=4, result=b, unit="tensor"), op("c", 2))
    edges = (edge("a", "c"), edge("a", "b"), edge("b", "c"))
    found = bound(priced(graph(ops, edges), one_group()), "registers")
    assert found is not None
    assert found.cycles == 6
    assert found.reason == (
        "registers: a 40 for 6 cycles, b 20 for 4 cycles fit in 60 registers per thread only from 6 cycles on"
    )


def test_a_value_that_may_be_handed_over_is_alive_until_then_only() -> None:
    # with two groups a may leave after 2 + its hand-off of 10 + 80: longer than the path, nothing changes but that
    # there are twice the registers: (240 + 80) / 120
    a, b = value(size=40 * 512), value(size=20 * 512)
    ops = (op("a", 2, result=a), op("b", 2, latency=4, result=b, unit="tensor"), op("c", 2))
    edges = (edge("a", "c"), edge("a", "b"), edge("b", "c"))
    found = bound(priced(graph(ops, edges)), "registers")
    assert found is not None
    assert found.cycles == 3
    assert "registers per thread (2 groups)" in found.reason
    # a given hand-off of 0: a lives 2 cycles and b 4, (40 x 2 + 20 x 4) / 120 = 1.3
    cheap = (op("a", 2, result=a, handoff=0), op("b", 2, latency=4, result=b, unit="tensor", handoff=0), op("c", 2))
    found = bound(priced(graph(cheap, edges)), "registers")
    assert found is not None
    assert found.cycles == 2


def test_the_register_file_of_the_sm() -> None:
    # 50 registers x 128 threads alive for 10 cycles; 8192 - 4 x 128 registers: 64000 / 7680 = 8.3
    ops = (op("a", latency=10, result=value(size=50 * 512)), op("b"))
    found = bound(priced(graph(ops, (edge("a", "b"),))), "register file")
    assert found is not None
    assert found.cycles == 9


def test_an_accumulator_is_alive_all_the_time() -> None:
    # acc takes 400 of 1000 bytes for good; tile 400 x 37 / 600 = 24.7
    acc = op("mma", result=value("smem", 400, alias="acc"), unit="tensor")
    ops = (acc, op("tile", latency=10, result=value("smem", 400)), op("use", latency=20))
    found = bound(priced(graph(ops, (edge("mma", "mma", 1), edge("tile", "use")))), "smem")
    assert found is not None
    assert found.cycles == 25


def test_one_storage_counts_once() -> None:
    # s and p share 400 bytes; the longer of both lives for 2 + 20 + 7: 400 x 29 / 1000 = 11.6
    ops = (
        op("s", result=value("smem", 400, alias="sp")),
        op("p", result=value("smem", 100, alias="sp")),
        op("use", latency=20),
    )
    found = bound(priced(graph(ops, (edge("s", "use"), edge("p", "use")))), "smem")
    assert found is not None
    assert found.cycles == 12


def test_a_value_read_iterations_later_is_alive_for_so_many_periods() -> None:
    # b starts 2 cycles after a, reads for 2 + 7, and does so again 3 iterations later: alive for 11 + 3 I cycles.
    # 192 bytes x 3 are taken for good: 192 x 11 / (1000 - 576) = 4.98
    ops = (op("a", result=value("smem", 192)), op("b"))
    found = bound(priced(graph(ops, (edge("a", "b"), edge("a", "b", 3)))), "smem")
    assert found is not None
    assert found.cycles == 5


def test_values_that_never_fit_are_impossible_not_slow() -> None:
    ops = tuple(op(f"m{k}", result=value("smem", 400, alias=f"acc{k}")) for k in range(3))
    found = bounds(priced(graph(ops, tuple(edge(one.name, one.name, 1) for one in ops))))
    assert found.impossible == (
        "smem: alive all the time: m0 400, m1 400, m2 400; there are 1000 bytes, too few at any interval",
    )
    assert all(one.name != "smem" for one in found.bounds)


def test_residents_take_their_registers() -> None:
    held = Resident(name="q", registers_per_thread=40, users=("a",))
    # 60 - 40 = 20 registers for b, alive 10 cycles with 30: 15
    ops = (op("b", latency=10, result=value(size=30 * 512)), op("a"))
    found = bound(priced(graph(ops, (edge("b", "a"),), residents=(held,)), one_group()), "registers")
    assert found is not None
    assert found.cycles == 15


def test_no_limit_no_bound() -> None:
    ops = (op("a", latency=10, result=value(size=50 * 512)), op("b"))
    problem = priced(graph(ops, (edge("a", "b"),)), registers=0)
    assert {one.name for one in bounds(problem).bounds} == {"alu", "consistency"}


def test_bounds_are_sorted_and_never_empty() -> None:
    found = bounds(priced(graph((Op(name="a"),)), FREE))
    assert found.bounds == (Bound(name="consistency", cycles=1, reason="an interval is at least 1 cycle", ops=()),)
    ordered = [one.cycles for one in bounds(priced(graph((op("a", 3), op("b", 9, unit="tensor"))), FREE)).bounds]
    assert ordered == sorted(ordered, reverse=True)


ARCS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 9), st.integers(0, 3)), min_size=1, max_size=9
)


def simple_circuits(found: DepGraph) -> Iterator[tuple[int, int]]:
    """Yield (latency, distance) of every simple circuit, by trying all orders of all sets of ops."""
    names = [one.name for one in found.ops]
    for size in range(1, len(names) + 1):
        for order in itertools.permutations(names, size):
            if order[0] != min(order):
                continue
            steps = list(zip(order, (*order[1:], order[0]), strict=True))
            choices = [[e for e in found.edges if (e.tail, e.head) == step] for step in steps]
            for taken in itertools.product(*choices):
                yield sum(e.latency_cycles or 0 for e in taken), sum(e.distance for e in taken)


@given(ARCS)
def test_the_worst_circuit_is_that_of_all_simple_circuits(arcs: list[tuple[int, int, int, int]]) -> None:
    ops = tuple(op(f"o{k}", 0) for k in range(5))
    edges = tuple(edge(f"o{a}", f"o{b}", distance, latency_cycles=latency) for a, b, latency, distance in arcs)
    problem = priced(graph(ops, edges), FREE)
    circuits = list(simple_circuits(graph(ops, edges)))
    if any(distance == 0 and latency > 0 for latency, distance in circuits):
        with pytest.raises(InputError, match="has distance 0: it waits for itself"):
            worst_circuit(problem)
        return
    ratios = [Fraction(latency, distance) for latency, distance in circuits if distance]
    found = worst_circuit(problem)
    assert (found is None) == (not ratios)
    if found is not None:
        assert Fraction(found.latency_cycles, found.distance) == max(ratios)
        assert (found.latency_cycles, found.distance) in circuits
