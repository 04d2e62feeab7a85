"""Ops and edges of graph files: taken as they are, the rest derived by docs/formulation.md."""

from dataclasses import replace

import pytest
from cost_graphs import between, edge, graph, named, op, priced, small, value

from twillgpu.errors import InputError
from twillgpu.graph.record import Cost, DepGraph, Op, Use, Value


def test_a_cost_is_taken_as_it_is() -> None:
    found = named(priced(graph((op("a", cycles=5, latency=9, issue=3),))), "a")
    assert found.uses == (Use(unit="alu", cycles=5),)
    assert (found.issue_cycles, found.latency_cycles, found.real_latency_cycles) == (3, 9, 9)


def test_an_op_without_cost_and_work_is_free() -> None:
    found = named(priced(graph((Op(name="a"),))), "a")
    assert (found.uses, found.issue_cycles, found.latency_cycles) == ((), 0, 0)


@pytest.mark.parametrize(("issue", "asynchronous"), [(4, True), (5, False), (6, False)])
def test_asynchronous_ops_have_issued_before_their_unit_is_free(issue: int, asynchronous: bool) -> None:
    assert named(priced(graph((op("a", cycles=5, issue=issue),))), "a").asynchronous is asynchronous


@pytest.mark.parametrize(("issue", "stated"), [(4, False), (5, True)])
def test_a_graph_may_say_whether_an_op_is_asynchronous(issue: int, stated: bool) -> None:
    plain = op("a", cycles=5, issue=issue)
    assert plain.cost is not None
    said = replace(plain, cost=replace(plain.cost, asynchronous=stated))
    assert named(priced(graph((said,))), "a").asynchronous is stated


def test_registers_per_thread_follow_from_bytes_and_warps() -> None:
    # 1000 bytes over 4 warps of 32 threads and 4 bytes a register: 1000 / 512 = 1.95; over one warp 7.8
    problem = priced(graph((op("a", result=value(size=1000)), op("b", result=value(size=1000), warps=1))))
    assert [one.value.registers_per_thread for one in problem.ops if one.value] == [2, 8]


def test_given_registers_per_thread_stay() -> None:
    given = Value(space="registers", bytes=512, registers_per_thread=9)
    found = named(priced(graph((op("a", result=given),))), "a")
    assert found.value is not None
    assert found.value.registers_per_thread == 9


def test_bytes_in_a_memory_are_rounded_up_to_its_alignment() -> None:
    found = named(priced(graph((op("a", result=value("smem", 100)),))), "a")
    assert found.value is not None
    assert (found.value.bytes, found.value.registers_per_thread) == (112, 0)
    assert found.staging_bytes == 0


def test_staging_of_a_register_value_is_aligned_too() -> None:
    assert named(priced(graph((op("a", result=value(size=100)),))), "a").staging_bytes == 112


@pytest.mark.parametrize(
    ("result", "issue", "expected"),
    [
        (value(size=1024), 2, 14),  # 10 + 4 per KB
        (value(size=100), 2, 11),  # 10 + 0.39, rounded up
        (value("smem"), 2, 7),  # written by the warps: one barrier hop
        (value("smem"), 1, 0),  # written by a unit that arrives on the barrier itself
        (None, 2, 7),  # nothing to hand over but the fact that it is done
    ],
)
def test_the_default_handoff(result: Value | None, issue: int, expected: int) -> None:
    problem = priced(graph((op("a", issue=issue, result=result), op("b")), (edge("a", "b"),)))
    assert named(problem, "a").handoff_cycles == expected
    assert between(problem, "a", "b").handoff_cycles == expected


def test_a_given_handoff_stays() -> None:
    assert named(priced(graph((op("a", result=value(), handoff=560),))), "a").handoff_cycles == 560


def test_a_variable_latency_op_without_data_coming_in_is_streaming() -> None:
    load = op("load", latency=600, issue=1, variable=True, result=value("smem"))
    problem = priced(graph((load, op("use")), (edge("load", "load", 1), edge("load", "use"))))
    found = named(problem, "load")
    assert found.streaming
    assert (found.latency_cycles, found.real_latency_cycles) == (0, 600)
    assert between(problem, "load", "use").latency_cycles == 0


def test_a_streaming_op_delays_nothing_whatever_the_edge_says() -> None:
    load = op("load", latency=600, issue=1, variable=True)
    problem = priced(graph((load, op("use")), (edge("load", "use", latency_cycles=600),)))
    assert between(problem, "load", "use").latency_cycles == 0


def test_data_coming_in_makes_a_load_wait() -> None:
    load = op("load", latency=600, issue=1, variable=True)
    problem = priced(graph((op("index"), load, op("use")), (edge("index", "load"), edge("load", "use"))))
    assert not named(problem, "load").streaming
    assert between(problem, "load", "use").latency_cycles == 600


def test_an_order_edge_does_not_make_a_load_wait() -> None:
    load = op("load", latency=600, issue=1, variable=True)
    problem = priced(graph((op("index"), load), (edge("index", "load", kind="order"),)))
    assert named(problem, "load").streaming


def test_an_explicit_edge_latency_stays() -> None:
    problem = priced(graph((op("a", latency=9), op("b")), (edge("a", "b", latency_cycles=3),)))
    assert between(problem, "a", "b").latency_cycles == 3


def test_an_explicit_handoff_of_an_edge_goes_before_that_of_its_op() -> None:
    edges = (edge("a", "b", handoff_cycles=3), edge("a", "b", 1), edge("b", "a", 1, kind="anti", handoff_cycles=0))
    problem = priced(graph((op("a", result=value(), handoff=20), op("b")), edges))
    assert [one.handoff_cycles for one in problem.edges] == [3, 20, 0]


def test_an_explicit_read_time_stays() -> None:
    edges = (edge("a", "b", read_cycles=0), edge("a", "b", 1, read_cycles=99), edge("a", "b", 2))
    problem = priced(graph((op("a", result=value("smem")), op("b", latency=30)), edges))
    assert [one.read_cycles for one in problem.edges] == [0, 99, 37]


@pytest.mark.parametrize(
    ("kind", "expected"), [("data", 9), ("output", 9), ("memory", 9), ("order", 0), ("token", 0), ("anti", 9)]
)
def test_latency_by_kind(kind: str, expected: int) -> None:
    """Completed, for what must have completed; started, for what must have started; read, for anti edges."""
    problem = priced(graph((op("a", latency=9), op("b")), (edge("a", "b", kind=kind),)))
    assert between(problem, "a", "b").latency_cycles == expected


@pytest.mark.parametrize(
    ("issue", "space", "expected"),
    [
        (2, "registers", 0),  # in-order issue: read before the next op of the warps writes
        (1, "registers", 9),  # an asynchronous reader reads until it completes
        (2, "smem", 9),  # a memory is read until the reader completes
    ],
)
def test_anti_edges_last_while_the_tail_still_reads(issue: int, space: str, expected: int) -> None:
    writer = op("b", result=value(space))  # type: ignore[arg-type]
    problem = priced(graph((op("a", latency=9, issue=issue), writer), (edge("a", "b", kind="anti"),)))
    assert between(problem, "a", "b").latency_cycles == expected


def test_other_edges_across_groups_cost_a_barrier_hop_unless_the_tail_signals() -> None:
    ops = (op("a", result=value("smem")), op("mma", issue=1, result=value("smem")), op("b"))
    edges = tuple(edge(tail, "b", kind=kind) for tail in ("a", "mma") for kind in ("anti", "memory", "order"))
    assert [one.handoff_cycles for one in priced(graph(ops, edges)).edges] == [7, 7, 7, 0, 0, 7]


@pytest.mark.parametrize(
    ("result", "issue", "expected"),
    [
        (value(), 2, 0),  # results overwrite operands element by element
        (value(), 1, 30),  # an asynchronous consumer reads registers until it completes
        (value("smem"), 2, 37),  # a slot is free when its reader has completed and said so
        (value("smem"), 1, 37),
        (None, 1, 0),
    ],
)
def test_read_time(result: Value | None, issue: int, expected: int) -> None:
    reader = op("b", latency=30, issue=issue)
    problem = priced(graph((op("a", result=result), reader), (edge("a", "b"),)))
    assert between(problem, "a", "b").read_cycles == expected


def test_a_streaming_consumer_reads_for_its_real_latency() -> None:
    load = op("load", latency=30, issue=1, variable=True)
    problem = priced(graph((op("a", result=value("smem")), load), (edge("a", "load"),)))
    assert between(problem, "a", "load").read_cycles == 37


def test_only_data_edges_read() -> None:
    problem = priced(graph((op("a", result=value("smem")), op("b")), (edge("a", "b", kind="memory"),)))
    assert between(problem, "a", "b").read_cycles == 0


def test_a_graph_file_says_itself_what_blocks() -> None:
    ops = (op("a", issue=1), op("b"), op("c"))
    problem = priced(graph(ops, (edge("a", "b"), edge("a", "c", blocking=True))))
    assert [one.blocking for one in problem.edges] == [False, True]


def test_an_unknown_unit_gets_the_nearest_name() -> None:
    with pytest.raises(InputError, match=r"op a: machine small has no unit 'tensr'; did you mean 'tensor'\?"):
        priced(graph((op("a", unit="tensr"),)))


def test_more_of_a_unit_than_there_is() -> None:
    wide = Op(name="a", cost=Cost(uses=(Use(unit="issue", cycles=1, amount=9),), issue_cycles=1, latency_cycles=1))
    with pytest.raises(InputError, match="op a: it holds 9 of unit issue, machine small has 8; lower the amount"):
        priced(graph((wide,)))


def test_the_rest_of_the_problem_is_that_of_graph_and_machine() -> None:
    found = DepGraph(name="g", ops=(op("a"),), edges=(), trip_count=7, flop_per_iteration=5, sha256="abc")
    problem = priced(found)
    assert (problem.name, problem.machine, problem.trip_count, problem.flop_per_iteration) == ("g", "small", 7, 5)
    assert (problem.graph_sha256, problem.machine_sha256) == ("abc", small().sha256)
    assert (problem.units, problem.memories, problem.registers) == (
        small().units,
        small().memories,
        small().registers,
    )
