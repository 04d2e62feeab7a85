"""Legality sub-rules: which pairs each names, and how one is lifted."""

from dataclasses import replace

import pytest
from cost_graphs import edge, graph, op, priced, small, value

from twillgpu.costs.record import LegalPair
from twillgpu.errors import InputError
from twillgpu.graph.record import DepGraph
from twillgpu.machine.record import Machine


def rules(found: DepGraph, *names: str, lift: tuple[str, ...] = ()) -> tuple[LegalPair, ...]:
    return priced(found, _with(*names), lift=lift).legality


def _with(*names: str) -> Machine:
    return small(legality=list(names), memories={"smem": 1000, "tmem": 1000})


def test_products_on_one_register_accumulator_stay_together() -> None:
    acc = value(alias="acc")
    ops = tuple(op(name, kind="mma", unit="tensor", result=acc) for name in ("m0", "m1", "m2"))
    other = (op("read", result=acc), op("alone", kind="mma", result=value(alias="other")))
    pairs = rules(graph(ops + other), "wgmma_accumulator")
    assert [(one.relation, one.first, one.second) for one in pairs] == [
        ("together", "m0", "m1"),
        ("together", "m0", "m2"),
    ]


def test_accumulators_in_tensor_memory_may_be_anywhere() -> None:
    acc = value("tmem", alias="acc")
    assert (
        rules(graph((op("m0", kind="mma", result=acc), op("m1", kind="mma", result=acc))), "wgmma_accumulator") == ()
    )


def test_register_values_that_are_carried_stay_in_their_group() -> None:
    ops = (op("a", result=value()), op("b", result=value("smem")), op("c"))
    edges = (edge("a", "c", 1), edge("a", "b"), edge("b", "c", 1), edge("a", "a", 1), edge("a", "c", 2))
    pairs = rules(graph(ops, edges), "carried_registers")
    assert [(one.relation, one.first, one.second) for one in pairs] == [("together", "a", "c")]


def test_software_does_not_read_a_product_in_the_group_that_issues_it() -> None:
    ops = (op("s", kind="mma", result=value("tmem")), op("load", kind="tmem_load"), op("next", kind="mma"))
    pairs = rules(graph(ops, (edge("s", "load"), edge("s", "next"))), "mma_reader")
    assert [(one.relation, one.first, one.second) for one in pairs] == [("apart", "s", "load")]


def test_tensor_memory_warps_need_no_pairs() -> None:
    assert rules(graph((op("load", kind="tmem_load"),)), "tmem_warps") == ()


def test_a_product_flies_until_software_reads_it_or_what_adds_to_it() -> None:
    # o0 and o1 add to one accumulator, which scale rescales for the next iteration; dv is only ever added to.
    acc, dv = value(alias="acc"), value(alias="dv")
    ops = (
        op("s", kind="mma", unit="tensor", result=value(), issue=0),
        op("p", result=value()),
        op("o0", kind="mma", unit="tensor", result=acc, issue=0),
        op("o1", kind="mma", unit="tensor", result=acc, issue=0),
        op("scale", result=acc),
        op("grad", kind="mma", unit="tensor", result=dv, issue=0),
        op("t", kind="mma", unit="tensor", result=value("tmem"), issue=0),
    )
    edges = (
        edge("s", "p"),
        edge("p", "o0"),
        edge("o0", "o1"),
        edge("o1", "scale", 1),
        edge("scale", "o0"),
        edge("grad", "grad", 1),
        edge("p", "grad"),
        edge("t", "p"),
    )
    pairs = rules(graph(ops, edges), "wgmma_pause")
    assert [(one.relation, one.first, one.second, one.distance) for one in pairs] == [
        ("pause", "s", "p", 0),
        ("pause", "o0", "scale", 1),
        ("pause", "o1", "scale", 1),
    ]


def test_a_lifted_rule_does_not_apply() -> None:
    found = graph((op("a", result=value()), op("c")), (edge("a", "c", 1),))
    assert len(rules(found, "carried_registers")) == 1
    assert rules(found, "carried_registers", lift=("carried_registers",)) == ()


LISTED = (
    LegalPair(rule="mine", relation="apart", first="a", second="b"),
    LegalPair(rule="carried_registers", relation="together", first="b", second="c"),
)


def listed(*pairs: LegalPair) -> DepGraph:
    found = graph((op("a", result=value()), op("b"), op("c")), (edge("a", "c", 1),))
    return replace(found, legality=pairs)


def test_pairs_that_a_graph_lists_stand_for_those_of_the_machine() -> None:
    assert rules(listed(*LISTED), "carried_registers") == LISTED
    assert rules(listed(), "carried_registers") == ()


def test_rules_of_listed_pairs_can_be_lifted_by_their_names() -> None:
    assert rules(listed(*LISTED), lift=("mine",)) == LISTED[1:]
    assert rules(listed(*LISTED), lift=("carried_registers", "mma_reader")) == LISTED[:1]
    with pytest.raises(InputError, match=r"lift: no legality rule 'mina'; did you mean 'mine'\?"):
        rules(listed(*LISTED), lift=("mina",))


def test_lifting_an_unknown_rule() -> None:
    with pytest.raises(
        InputError, match=r"lift: no legality rule 'carried_register'; did you mean 'carried_registers'\?"
    ):
        rules(graph((op("a"),)), lift=("carried_register",))
