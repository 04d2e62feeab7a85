"""Fixed columns: which operands, what the changed problem says, and figures derived by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from cost_graphs import between, edge, graph, op, priced, small, value

from twillgpu.costs.columns import Shared, fixed_columns, fixed_in, shareable, with_fixed_columns
from twillgpu.costs.digest import with_digest
from twillgpu.costs.record import Bound, PricedEdge, Problem
from twillgpu.graph.record import DepGraph, Edge, Op
from twillgpu.inputs import load_problem
from twillgpu.schedule.record import SearchOptions
from twillgpu.schedule.search import search
from twillgpu.verify import check
from twillgpu.verify.record import Verified

CAPTURED = Path(__file__).parents[1] / "frontend" / "data"
MACHINE = small(memories={"smem": 1000, "tmem": 1000}, legality=["mma_reader"])
P_OVER_S = (Shared(value="p", product="s"),)


def mma(name: str, size: int, alias: str | None = None) -> Op:
    """Return a product that takes 4 cycles of the tensor core, and 5 to complete."""
    return op(name, 4, latency=5, issue=1, unit="tensor", kind="mma", warps=1, result=value("tmem", size, alias))


SCORES = (
    mma("s", 200),
    op("load", 3, kind="tmem_load", result=value(size=64)),
    op("exp", 6, result=value(size=64)),
    op("p", 2, kind="tmem_store", result=value("tmem", 100)),
    mma("acc", 400, alias="acc"),
)
CHAIN = (edge("s", "load"), edge("load", "exp"), edge("exp", "p"), edge("p", "acc"), edge("acc", "acc", 1))


def attention(*more: Edge, ops: tuple[Op, ...] = SCORES) -> Problem:
    """Return the smallest attention: scores, their exponentials stored for a second product, an accumulator."""
    return priced(graph(ops, CHAIN + more), MACHINE)


def changed(name: str, **values: object) -> tuple[Op, ...]:
    return tuple(replace(one, **values) if one.name == name else one for one in SCORES)  # type: ignore[arg-type]


def added(problem: Problem) -> list[PricedEdge]:
    return list(with_fixed_columns(problem).edges[len(problem.edges) :])


def test_the_operand_and_its_product_are_one_storage() -> None:
    problem = attention()
    assert shareable(problem) == P_OVER_S
    fixed = with_fixed_columns(problem)
    aliases = {one.name: one.value.alias for one in fixed.ops if one.value is not None}
    assert aliases == {"s": "s+p", "load": None, "exp": None, "p": "s+p", "acc": "acc"}
    assert fixed_in(fixed) == P_OVER_S
    assert fixed_in(problem) == ()


def test_the_next_product_waits_until_the_operand_has_been_read() -> None:
    # The second product reads p until it completes (5); it says so itself, whoever writes s: no hop.
    assert added(attention()) == [
        PricedEdge(
            tail="acc",
            head="s",
            latency_cycles=5,
            distance=1,
            kind="anti",
            blocking=False,
            handoff_cycles=0,
            read_cycles=0,
        )
    ]
    # In columns of its own p is taken until software knows that they are free, a hop of 7 later.
    assert between(attention(), "p", "acc").read_cycles == 12
    assert between(with_fixed_columns(attention()), "p", "acc").read_cycles == 5


def test_the_bound_is_the_circuit_through_the_columns() -> None:
    # s 5, load 3, exp 6, p 2, acc 5: 21 cycles before s can be written again; without, 8 of the tensor core and 11 of
    # the ALU.
    found = fixed_columns(attention())
    assert found is not None
    assert found.shared == P_OVER_S
    assert found.bounds.binding == Bound(
        name="recurrence",
        cycles=21,
        reason="recurrence: s -> load -> exp -> p -> acc -> s: 21 cycles",
        ops=("s", "load", "exp", "p", "acc"),
    )


def test_the_bound_is_reached_and_free_columns_go_below_it() -> None:
    problem = attention()
    results = [search(one, SearchOptions(), None) for one in (problem, with_fixed_columns(problem))]
    intervals = [result.schedule.ii_cycles for result in results if result.schedule is not None]
    assert intervals == [11, 21]
    assert [result.status for result in results] == ["optimal", "optimal"]
    assert results[1].schedule is not None
    assert isinstance(check(with_fixed_columns(problem), results[1].schedule), Verified)
    assert {buffer.name: (buffer.bytes, buffer.depth_floor) for buffer in results[1].schedule.buffers} == {
        "s+p": (200, 1),
        "acc": (400, 1),
    }


def test_a_schedule_that_writes_the_product_too_early_breaks_a_rule() -> None:
    problem = attention()
    fixed = with_fixed_columns(problem)
    schedule = search(problem, SearchOptions(), None).schedule
    assert schedule is not None
    verdict = check(fixed, schedule)
    assert not isinstance(verdict, Verified)
    assert "dependence" in {violation.rule for violation in verdict}


def test_fixing_twice_is_fixing_once() -> None:
    fixed = with_fixed_columns(attention())
    assert with_fixed_columns(fixed) == fixed
    assert fixed_columns(fixed) is None


def test_pricing_with_fixed_columns() -> None:
    found = priced(graph(SCORES, CHAIN), MACHINE, columns="fixed")
    assert found == with_digest(with_fixed_columns(attention()))


def test_another_reader_of_the_product_has_read_it_before_the_operand_is_written() -> None:
    ops = (*SCORES, op("stats", 9, result=value(size=64)))
    first = added(attention(edge("s", "stats"), ops=ops))[0]
    assert (first.tail, first.head, first.distance, first.latency_cycles, first.handoff_cycles) == (
        "stats",
        "p",
        0,
        9,
        7,
    )
    # ... and needs no edge where the operand waits for it anyway.
    assert [one.tail for one in added(attention(edge("s", "stats"), edge("stats", "exp"), ops=ops))] == ["acc"]
    # An edge that does not wait until it has read is not enough.
    early = edge("stats", "exp", latency_cycles=8)
    assert [one.tail for one in added(attention(edge("s", "stats"), early, ops=ops))] == ["stats", "acc"]


def test_an_op_that_reads_the_product_and_writes_the_operand_works_in_place() -> None:
    ops = (SCORES[0], op("p", 6, kind="tmem_store", result=value("tmem", 100)), SCORES[4])
    problem = priced(graph(ops, (edge("s", "p"), edge("p", "acc"), edge("acc", "acc", 1))), MACHINE)
    assert shareable(problem) == P_OVER_S
    assert [(one.tail, one.head) for one in added(problem)] == [("acc", "s")]


def test_software_that_reads_the_operand_tells_the_next_product() -> None:
    ops = (*SCORES, op("copy", 2, kind="tmem_load", result=value(size=64)))
    last = added(attention(edge("p", "copy"), ops=ops))[1]
    assert (last.tail, last.head, last.distance, last.latency_cycles, last.handoff_cycles) == ("copy", "s", 1, 2, 7)


def test_the_nearest_product_takes_the_operand() -> None:
    # dp is two ops from p, s is three: p lies in dp.
    ops = (*SCORES, mma("dp", 100), op("load2", 3, kind="tmem_load", result=value(size=64)))
    more = (edge("dp", "load2"), edge("load2", "p"))
    assert shareable(attention(*more, ops=ops)) == (Shared(value="p", product="dp"),)


def test_a_product_takes_one_operand() -> None:
    ops = (*SCORES, op("q", 2, kind="tmem_store", result=value("tmem", 100)))
    assert shareable(attention(edge("exp", "q"), edge("q", "acc"), ops=ops)) == P_OVER_S


NOT_SHAREABLE: list[tuple[str, DepGraph]] = [
    ("larger than the product", graph(changed("p", result=value("tmem", 201)), CHAIN)),
    ("in SMEM", graph(changed("p", result=value("smem", 100)), CHAIN)),
    ("the product accumulates", graph(changed("s", result=value("tmem", 200, alias="s")), CHAIN)),
    ("the operand has storage of its own class", graph(changed("p", result=value("tmem", 100, alias="p")), CHAIN)),
    ("the product in registers", graph(changed("s", result=value(size=200)), CHAIN)),
    ("written by the tensor core", graph(changed("p", kind="mma"), CHAIN)),
    ("for software", graph(changed("acc", kind="op"), CHAIN)),
    ("the product is read in the next iteration", graph(SCORES, (*CHAIN, edge("s", "exp", 1)))),
    ("the operand is read in the next iteration", graph(SCORES, (*CHAIN, edge("p", "acc", 1)))),
    ("the product is read after the operand is written", graph(SCORES, (*CHAIN, edge("s", "acc")))),
    ("from a product of the iteration before", graph(SCORES, (edge("s", "load", 1), *CHAIN[1:]))),
]


@pytest.mark.parametrize(("what", "found"), NOT_SHAREABLE, ids=[what for what, _ in NOT_SHAREABLE])
def test_what_cannot_be_in_the_columns_of_a_product(what: str, found: DepGraph) -> None:
    problem = priced(found, MACHINE)
    assert shareable(problem) == (), what
    assert with_fixed_columns(problem) == problem
    assert fixed_columns(problem) is None


def test_a_storage_that_is_too_small_at_any_interval_is_said() -> None:
    acc = mma("acc", 900, alias="acc")
    twice = (mma("other", 200, alias="other"),)
    ops = (*(acc if one.name == "acc" else one for one in SCORES), *twice)
    found = fixed_columns(attention(edge("other", "other", 1), ops=ops))
    assert found is not None
    assert found.bounds.impossible == (
        "tmem: alive all the time: acc 900, other 200; there are 1000 bytes, too few at any interval",
    )


def test_attention_on_blackwell() -> None:
    # Of either sub-tile: s 648 (512 of the tensor core, 136 more to complete), load 169, row maximum 144, subtraction
    # 128, exponential 1024, conversion 128, store 96, and until the second product has read: 616.
    problem = load_problem(CAPTURED / "attention_fwd_sm_100a_triton39.mlir", "b200").problem
    found = fixed_columns(problem)
    assert found is not None
    assert found.shared == (
        Shared(value="p_tmem_alloc_0", product="qk_0"),
        Shared(value="p_tmem_alloc_1", product="qk_1"),
    )
    assert found.bounds.binding.cycles == 648 + 169 + 144 + 128 + 1024 + 128 + 96 + 616
    assert [name.rpartition("_")[0] for name in found.bounds.binding.ops] == [
        *("qk", "qk_tmem_load", "m_ij", "p_subf", "p", "p_truncf", "p_tmem_alloc", "acc")
    ]


def test_attention_backward_on_blackwell() -> None:
    """P lies in S, dS in dP; both circuits are shorter than what the SMEM port takes."""
    problem = load_problem(CAPTURED / "attention_bwd_sm_100a_triton39.mlir", "b200").problem
    found = fixed_columns(problem)
    assert found is not None
    assert [(one.value, one.product) for one in found.shared] == [
        ("p16_tmem_alloc", "qk"),
        ("ds16_tmem_alloc", "dp"),
    ]
    assert found.bounds.binding.name == "smem_port"


@pytest.mark.parametrize("name", ["attention_fwd_sm_90a_triton39.mlir", "gemm_sm_90a_triton39.mlir"])
def test_hopper_has_no_tensor_memory(name: str) -> None:
    assert shareable(load_problem(CAPTURED / name, "h100").problem) == ()
