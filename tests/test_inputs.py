"""From a source to a problem, and a priced problem through graph JSON and back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from twillgpu.cli import run
from twillgpu.costs.price import price
from twillgpu.costs.record import PriceOptions, Problem, RuleOptions
from twillgpu.errors import InputError
from twillgpu.frontend.launch import LoadOptions
from twillgpu.graph.jsonform import read_graph, write_graph
from twillgpu.inputs import Priced, SourceOptions, load_problem, load_source, price_loaded, priced_graph
from twillgpu.machine.load import load
from twillgpu.machine.record import Machine

CAPTURED = Path(__file__).parent / "frontend" / "data"
GRAPHS = Path(__file__).parent / "graph" / "data"
MACHINES = {"sm_80": ("a100",), "sm_90a": ("h100",), "sm_100a": ("b200",)}
CASES = [
    (path.name, machine)
    for path in sorted(CAPTURED.glob("*.mlir"))
    for target, machines in MACHINES.items()
    if f"_{target}_" in path.name
    for machine in (*machines, *(("b200",) if path.name.startswith("rms_norm") else ()))
]
"""Captured kernels and their machines; one without tensor core ops has the same ops on Blackwell as on Hopper."""


def captured(name: str, machine: str, limits: PriceOptions | None = None, rows: int | None = None) -> Priced:
    """Return the problem of a captured kernel, which needs no Triton."""
    loop = 2 if name.startswith("rms_norm_sm") else None
    native = "h100" if name.startswith("rms_norm") else machine
    loaded = load_source(CAPTURED / name, native, SourceOptions(load=LoadOptions(loop=loop), rows=rows))
    return price_loaded(replace(loaded, machine=load(machine)), limits)


def again(priced: Priced) -> Problem:
    """Return the problem that the priced graph of ``priced`` gives when it is read from its text."""
    graph = read_graph(write_graph(priced_graph(priced)), "g.json")
    machine = graph.machine if isinstance(graph.machine, Machine) else load(str(graph.machine))
    return unhashed(price(graph, machine))


def unhashed(problem: Problem) -> Problem:
    return replace(problem, graph_sha256="", machine_sha256="")


@pytest.mark.parametrize("rows", [None, 0], ids=["sub-tiles", "whole"])
@pytest.mark.parametrize(("name", "machine"), CASES)
def test_graph_json_carries_the_problem_of_a_kernel_exactly(name: str, machine: str, rows: int | None) -> None:
    """Before, asynchrony, hand-offs of chained accumulators and read times were derived anew, and differed."""
    priced = captured(name, machine, rows=rows)
    assert again(priced) == unhashed(priced.problem)


LIMITS = [
    PriceOptions(max_groups=3, max_warps=16),
    PriceOptions(registers=200),
    PriceOptions(registers=0),
    PriceOptions(lift=("mma_reader", "carried_registers")),
    PriceOptions(rules=RuleOptions(concurrency="paper")),
    PriceOptions(rules=RuleOptions(variable_latency="iff")),
    PriceOptions(columns="fixed", lift=("mma_reader",)),
    PriceOptions(rules=RuleOptions(variable_latency="free", cross_group=False), max_groups=2),
]


@pytest.mark.parametrize("limits", LIMITS, ids=range(len(LIMITS)))
def test_graph_json_carries_limits_and_lifted_rules(limits: PriceOptions) -> None:
    priced = captured("attention_fwd_sm_100a_triton39.mlir", "b200", limits)
    assert priced.problem != captured("attention_fwd_sm_100a_triton39.mlir", "b200").problem
    assert again(priced) == unhashed(priced.problem)


def test_an_unlimited_problem_says_no_limits() -> None:
    text = write_graph(priced_graph(captured("gemm_sm_90a_triton39.mlir", "h100")))
    assert "limits" not in json.loads(text)
    assert json.loads(text)["machine"] == "h100"


def test_the_limits_of_a_graph_hold_unless_others_are_given(tmp_path: Path) -> None:
    document = json.loads((GRAPHS / "register_limited.json").read_text(encoding="utf-8"))
    file = tmp_path / "g.json"
    file.write_text(json.dumps(document | {"limits": {"registers": 56}}), encoding="utf-8")
    limits = [load_problem(file, limits=given).problem.registers for given in (None, PriceOptions(registers=48))]
    assert [registers and registers.per_thread for registers in limits] == [56, 48]


def test_the_machine_that_priced_a_graph_is_the_one_it_is_written_with(tmp_path: Path) -> None:
    """Before, a graph with a machine of its own kept it, whatever --machine had priced it."""
    document = json.loads((GRAPHS / "recurrence.json").read_text(encoding="utf-8"))
    units = document["machine"]["units"]
    wide = tmp_path / "wide.toml"
    figures = "\n".join(
        f'{unit} = {{value = 9, unit = "instances", source = "t", confidence = "G"}}' for unit in units
    )
    wide.write_text(f'name = "wide"\n[units]\n{figures}\n', encoding="utf-8")
    priced = load_problem(GRAPHS / "recurrence.json", str(wide))
    found = priced_graph(priced)
    assert isinstance(found.machine, Machine)
    assert {unit.capacity for unit in found.machine.units} == {9}
    assert again(priced) == unhashed(priced.problem)


def test_an_unknown_unit_of_a_named_machine_has_file_path_and_nearest_name(tmp_path: Path) -> None:
    """Before, the message named the op, and neither the file nor the place in it."""
    document = json.loads((GRAPHS / "recurrence.json").read_text(encoding="utf-8")) | {"machine": "h100"}
    document["ops"][0]["uses"] = [{"unit": "tensr", "cycles": 1}]
    file = tmp_path / "g.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_source(file)
    assert str(caught.value) == (
        f"{file}: ops[0].uses[0].unit: machine 'h100' has no unit 'tensr'; did you mean 'tensor'?"
    )


SEARCHED = [
    pytest.param("gemm_sm_90a_triton39.mlir", "h100", id="gemm h100"),
    pytest.param("gemm_sm_100a_triton39.mlir", "b200", id="gemm b200"),
    pytest.param("attention_fwd_sm_90a_triton39.mlir", "h100", id="attention h100", marks=pytest.mark.slow),
    pytest.param("attention_fwd_sm_100a_triton39.mlir", "b200", id="attention b200", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("name", "machine"), SEARCHED)
def test_an_emitted_graph_has_the_interval_of_its_kernel(name: str, machine: str, tmp_path: Path) -> None:
    kernel, graph = str(CAPTURED / name), str(tmp_path / "g.json")
    direct, through = str(tmp_path / "direct.json"), str(tmp_path / "through.json")
    assert run(["schedule", kernel, "--machine", machine, "--emit", "graph", "-o", graph]) == 0
    assert run(["schedule", kernel, "--machine", machine, "--json", "-o", direct]) == 0
    assert run(["schedule", graph, "--json", "-o", through]) == 0
    documents = [json.loads(Path(file).read_text(encoding="utf-8")) for file in (direct, through)]
    assert documents[0]["ii_cycles"] == documents[1]["ii_cycles"]
    for schedule in (direct, through):
        assert run(["verify", graph, schedule, "-o", str(tmp_path / "verdict.txt"), "--force"]) == 0
