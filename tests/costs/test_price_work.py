"""Ops of kernels: what pricing adds to a rule's price, and opcodes that a machine file prices."""

import dataclasses
from pathlib import Path

import pytest
from cost_graphs import between, edge, graph, named, priced
from cost_works import A100, B200, H100, ROW, registers, same, smem, tmem, work

from twillgpu.errors import InputError
from twillgpu.graph.record import DepGraph, Op, Value, ValueSpace, Work
from twillgpu.machine.load import load

TILE = registers((128, 128), ROW)


def kernel_op(name: str, what: Work, space: ValueSpace | None = None, alias: str | None = None, **more: object) -> Op:
    result = None if space is None else Value(space=space, bytes=65536, alias=alias)
    return Op(name=name, source="k.py:3", work=(what,), result=result, **more)  # type: ignore[arg-type]


def product(name: str, alias: str | None = None) -> Op:
    what = work("ttng.tc_gen5_mma", (smem(128, 128), smem(128, 128), tmem(128, 128)))
    return kernel_op(name, what, "tmem", alias, warps=1)


def load_s(name: str = "load") -> Op:
    return kernel_op(name, work("ttng.tmem_load", (tmem(128, 128),), (TILE,)), "registers")


def test_an_asynchronous_result_is_waited_for() -> None:
    problem = priced(graph((product("mma"), load_s()), (edge("mma", "load"),)), B200)
    assert between(problem, "mma", "load").blocking
    # 8 instructions: 7 x 64 + 64 + 136; the product itself arrives on the barrier
    assert between(problem, "mma", "load").latency_cycles == 648
    assert between(problem, "mma", "load").handoff_cycles == 0


def test_an_order_edge_does_not_wait() -> None:
    problem = priced(graph((product("mma"), load_s()), (edge("mma", "load", kind="order"),)), B200)
    assert not between(problem, "mma", "load").blocking


def test_products_on_one_accumulator_follow_each_other_without_waiting() -> None:
    problem = priced(graph((product("mma", "acc"),), (edge("mma", "mma", 1, blocking=True),)), B200)
    found = between(problem, "mma", "mma")
    assert (found.latency_cycles, found.blocking) == (512, False)
    # in another group the second would have to wait for the whole latency
    assert found.handoff_cycles == 648 - 512


def test_operands_of_the_next_product_are_loaded_while_this_one_runs() -> None:
    # A100, 8 warps, 128x128x32 in f16: A and B of 8 KB take 64 cycles each to load, B while A is on its way (94);
    # the product starts at 64 + 94 and takes 2 x 128 x 128 x 32 / 2048 = 512 cycles
    a, b = registers((128, 32), dtype="f16"), registers((32, 128), dtype="f16")
    acc = registers((128, 128))
    works = (
        work("ttg.local_load", (smem(128, 32),), (a,)),
        work("ttg.local_load", (smem(32, 128),), (b,)),
        work("tt.dot", (a, b, acc), (acc,)),
    )
    value = Value(space="registers", bytes=65536, alias="acc")
    problem = priced(graph((Op(name="acc", warps=8, work=works, result=value),), (edge("acc", "acc", 1),)), A100)
    found = named(problem, "acc")
    assert [(use.unit, use.offset, use.cycles) for use in found.uses if use.unit != "issue"] == [
        ("smem_port", 0, 256),  # a quarter of the port
        ("smem_port", 64, 256),
        ("tensor", 158, 512),
    ]
    assert (found.issue_cycles, found.latency_cycles) == (64 + 64 + 512, 158 + 512 + 33)
    # the next one's operands do not wait for this one's result
    assert between(problem, "acc", "acc").latency_cycles == 512


def test_a_product_that_reads_another_accumulator_waits() -> None:
    problem = priced(graph((product("a", "x"), product("b", "y")), (edge("a", "b"),)), B200)
    assert between(problem, "a", "b").latency_cycles == 648


def test_a_product_reads_its_operands_until_it_completes() -> None:
    store = kernel_op("p", work("ttng.tmem_store", (TILE, tmem(128, 128))), "tmem")
    problem = priced(graph((store, product("mma")), (edge("p", "mma"),)), B200)
    assert between(problem, "p", "mma").read_cycles == 648 + 92
    assert between(problem, "p", "mma").handoff_cycles == 92


def test_wgmma_reads_registers_until_it_completes() -> None:
    exp = kernel_op("p", same("math.exp2", registers((64, 128))), "registers")
    operands = (registers((64, 128), dtype="f16"), smem(128, 128), registers((64, 128)))
    pv = kernel_op("pv", work("ttng.warp_group_dot", operands, (registers((64, 128)),)), "registers")
    problem = priced(graph((exp, pv), (edge("p", "pv"),)), H100)
    assert between(problem, "p", "pv").read_cycles == 544
    # 64 KB through SMEM: 92 + 16.1 x 64
    assert named(problem, "p").handoff_cycles == 1123


def test_a_product_and_its_reader_are_apart_on_blackwell() -> None:
    problem = priced(graph((product("mma"), load_s()), (edge("mma", "load"),)), B200)
    assert [(one.rule, one.relation) for one in problem.legality] == [("mma_reader", "apart")]


def unknown() -> DepGraph:
    return graph((kernel_op("f", same("my.op", TILE), "registers"),))


def test_an_opcode_without_price_names_the_table_to_add() -> None:
    with pytest.raises(InputError) as caught:
        priced(unknown(), H100)
    assert str(caught.value) == (
        "op f (k.py:3): machine h100 has no price for my.op; "
        'write a machine file with extends = "h100" and a table [ops."my.op"] with rule, passes, source and '
        "confidence (docs/machines.md)"
    )


def test_a_machine_file_prices_an_opcode(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        'name = "mine"\nextends = "h100"\n'
        '[ops."my.op"]\nrule = "fp32"\npasses = 3\nsource = "counted in the code"\nconfidence = "S"\n',
        encoding="utf-8",
    )
    problem = priced(unknown(), load(str(file)))
    # three FP32 passes over 16384 elements at 128 lanes
    assert named(problem, "f").latency_cycles == 3 * 128


def test_toy_prices_nothing() -> None:
    with pytest.raises(InputError) as caught:
        priced(unknown(), load("toy"))
    assert str(caught.value) == (
        "op f (k.py:3): machine toy prices no opcodes, and this is my.op; "
        "choose a real machine (twillgpu machines lists them), or give every op a cost in a graph file"
    )


def test_a_figure_that_a_rule_needs_and_the_machine_lacks() -> None:
    bare = dataclasses.replace(H100, figures=())
    with pytest.raises(
        InputError, match=r"machine h100: the figure 'rates.fp32_lanes' is missing; add rates.fp32_la"
    ):
        priced(graph((kernel_op("f", same("arith.mulf", TILE)),)), bare)


def test_a_unit_that_the_machine_does_not_list_is_not_modelled() -> None:
    units = tuple(unit for unit in H100.units if unit.name != "issue")
    problem = priced(graph((kernel_op("f", same("math.exp2", TILE)),)), dataclasses.replace(H100, units=units))
    assert [use.unit for use in named(problem, "f").uses] == ["mufu"]
