"""Predicted rates, and the traffic of global memory against the machine's figures."""

from dataclasses import replace

import pytest
from handmade import FIGURES, MACHINE, PROBLEM, RUN, SCHEDULE

from twillgpu.graph.record import DepGraph, Op, Value
from twillgpu.machine.record import Figure, Machine
from twillgpu.view.prediction import predict
from twillgpu.view.report import report
from twillgpu.view.traffic import traffic_lines

HBM = Figure(path="global.hbm_bytes_per_cycle", value=13.9, unit="bytes/cycle", source="hand", confidence="D")
PATH = Figure(path="global.bytes_per_cycle", value=64, unit="bytes/cycle", source="hand", confidence="S")
SHEET = replace(MACHINE, figures=(*FIGURES, HBM, PATH))

UNREACHABLE = (
    "global memory: loads of 96 bytes per cycle per SM; more than the SM can receive (64): the interval is not "
    "reachable"
)


def moving(size: int, *more: Op) -> DepGraph:
    load = Op(name="load", kind="tma_load", result=Value(space="smem", bytes=size))
    product = Op(name="product", kind="mma", result=Value(space="tmem", bytes=99_999))
    return DepGraph(name="hand", ops=(load, product, *more), edges=())


def said(machine: Machine, graph: DepGraph) -> str:
    return " ".join(" ".join(traffic_lines(machine, graph, SCHEDULE)).split())


@pytest.mark.parametrize(("flop", "practical"), [(200_000, 200), (300_000, 300), (400_000, 300)])
def test_a_power_limit_only_slows_loops_above_it(flop: int, practical: float) -> None:
    prediction = predict(MACHINE, replace(PROBLEM, flop_per_iteration=flop), SCHEDULE)
    assert prediction is not None
    assert prediction.practical_tflops == pytest.approx(practical)


def test_the_ceiling_of_16_bit_products_is_not_that_of_faster_ones() -> None:
    prediction = predict(MACHINE, replace(PROBLEM, flop_per_iteration=800_000), SCHEDULE)
    assert prediction is not None
    assert (prediction.model_tflops, prediction.practical_tflops) == (800, None)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (1_000, "global memory: loads of 10 bytes per cycle per SM; HBM gives each SM 13.9"),
        (4_800, "global memory: loads of 48 bytes per cycle per SM; more than 13.9 needs hits in L2"),
        (
            9_600,
            UNREACHABLE,
        ),
    ],
)
def test_loads_are_compared_with_hbm_and_with_the_path_to_the_sm(size: int, text: str) -> None:
    assert said(SHEET, moving(size)) == text


def test_stores_are_said_not_to_be_counted() -> None:
    graph = moving(4_800, Op(name="out", kind="tma_store"))
    assert "loads of 48 bytes per cycle per SM (1 store or atomic op not counted);" in said(SHEET, graph)


def test_a_machine_without_a_figure_for_hbm_says_so() -> None:
    machine = replace(MACHINE, figures=(PATH,))
    assert said(machine, moving(4_800)).endswith("; the machine file has no figure for HBM")


def test_nothing_is_said_without_loads_or_figures() -> None:
    assert said(MACHINE, moving(4_800)) == ""
    assert said(SHEET, DepGraph(name="hand", ops=(), edges=())) == ""


def test_the_report_shows_the_traffic() -> None:
    text = " ".join(report(replace(RUN, machine=SHEET, graph=moving(4_800))).split())
    assert "loads of 48 bytes per cycle per SM; more than 13.9 needs hits in L2" in text
