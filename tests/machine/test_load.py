"""Machines by name, from a file, and inline."""

from pathlib import Path

import pytest

from twillgpu.costs.legality import LEGALITY
from twillgpu.costs.work import RULES
from twillgpu.machine.load import from_mapping, load, names
from twillgpu.machine.record import Groups, Handoff, Machine, Memory, Registers, Unit
from twillgpu.machine.schema import FIGURES, LEGALITY_RULES, PRICING_RULES
from twillgpu.machine.text import to_mapping

INLINE = {
    "name": "toy2",
    "units": {"tensor": 1, "exp": 1},
    "memories": {"smem": 232448, "tmem": {"capacity_bytes": 262144, "alignment_bytes": 16384}},
    "registers": {"per_thread": 255, "per_sm": 65536, "overhead_per_thread": 0},
    "groups": {"max": 4, "warps": [1, 4]},
    "handoff": {"base_cycles": 61, "cycles_per_kb": 16, "barrier_cycles": 30},
}


def test_the_shipped_machines() -> None:
    assert names() == ("a100", "b200", "h100", "h200", "toy")


@pytest.mark.parametrize("name", names())
def test_every_shipped_machine_loads_and_reads_back(name: str) -> None:
    machine = load(name)
    assert machine.name == name
    assert from_mapping(to_mapping(machine), "copy") == machine


@pytest.mark.parametrize("name", names())
def test_every_figure_has_a_source(name: str) -> None:
    machine = load(name)
    assert all(figure.source.strip() for figure in machine.figures)
    assert all(op.source.strip() for op in machine.ops)


def test_the_limits_of_h100() -> None:
    machine = load("h100")
    assert machine.arch == "sm_90a"
    assert machine.unit("issue") == Unit(name="issue", capacity=8)
    assert machine.memory("smem") == Memory(name="smem", capacity_bytes=232448, alignment_bytes=1024)
    assert machine.memory("tmem") is None
    assert machine.registers is not None
    assert (machine.registers.per_thread, machine.registers.per_sm) == (255, 65536)
    assert (machine.registers.quota_min, machine.registers.quota_step) == (24, 8)
    assert machine.groups == Groups(max=4, warps=(1, 4, 8, 16), max_warps=32)
    assert machine.handoff == Handoff(base_cycles=92, cycles_per_kb=16.1, barrier_cycles=92)


def test_tensor_memory_of_b200_comes_in_blocks_of_32_columns() -> None:
    # 128 lanes x 512 columns x 4 bytes; 32 columns x 128 lanes x 4 bytes
    assert load("b200").memory("tmem") == Memory(name="tmem", capacity_bytes=262144, alignment_bytes=16384)


def test_h200_is_an_h100_with_its_own_name() -> None:
    h100, h200 = load("h100"), load("h200")
    assert (h200.units, h200.memories, h200.ops, h200.arch) == (h100.units, h100.memories, h100.ops, "sm_90a")
    assert h200.sha256 != h100.sha256


def test_toy_prices_no_opcodes() -> None:
    assert load("toy").ops == ()


def test_a_missing_figure_says_what_to_add() -> None:
    with pytest.raises(Exception, match=r"machine toy: the figure 'wgmma.issue_cycles' is missing; add wgmma.issue"):
        load("toy").figure("wgmma.issue_cycles")


def test_the_inline_form() -> None:
    machine = from_mapping(INLINE, "graph.json: machine")
    assert machine.units == (Unit(name="exp", capacity=1), Unit(name="tensor", capacity=1))
    assert machine.memory("smem") == Memory(name="smem", capacity_bytes=232448, alignment_bytes=1)
    assert machine.memory("tmem") == Memory(name="tmem", capacity_bytes=262144, alignment_bytes=16384)
    assert machine.registers == Registers(per_thread=255, per_sm=65536, overhead_per_thread=0)
    assert machine.groups == Groups(max=4, warps=(1, 4), max_warps=32)
    assert machine.handoff == Handoff(base_cycles=61, cycles_per_kb=16, barrier_cycles=30)
    assert {figure.source for figure in machine.figures} == {"the file itself"}
    assert from_mapping(to_mapping(machine), "copy") == machine


def test_a_missing_section_means_not_limited() -> None:
    machine = from_mapping({"units": {"tensor": 1}}, "machine")
    assert machine == Machine(
        name="inline",
        units=(Unit(name="tensor", capacity=1),),
        memories=(),
        registers=None,
        groups=Groups(max=1),
        handoff=Handoff(),
        figures=machine.figures,
        sha256=machine.sha256,
    )


def test_an_inline_machine_extends_a_known_one() -> None:
    machine = from_mapping({"extends": "h100", "registers": {"per_thread": 128}, "legality": []}, "machine")
    h100 = load("h100")
    assert machine.name == "h100 (changed)"
    assert machine.registers is not None
    assert machine.registers.per_thread == 128
    assert machine.registers.per_sm == 65536
    assert machine.legality == ()
    assert (machine.units, machine.ops) == (h100.units, h100.ops)


def test_widths_are_replaced_as_a_whole() -> None:
    machine = from_mapping({"extends": "h100", "groups": {"warps": [4]}}, "machine")
    assert machine.groups == Groups(max=4, warps=(4,), max_warps=32)


def test_the_hash_depends_on_content_only(tmp_path: Path) -> None:
    first = from_mapping({"units": {"a": 1, "b": 2}}, "one")
    second = from_mapping({"units": {"b": 2.0, "a": 1}}, "two")
    other = from_mapping({"units": {"a": 1, "b": 3}}, "one")
    assert first.sha256 == second.sha256 != other.sha256
    file = tmp_path / "m.toml"
    file.write_text('name = "h100"\nextends = "h100"\n', encoding="utf-8")
    assert load(str(file)).sha256 == load("h100").sha256


def test_a_machine_is_one_file_that_may_extend_another_file(tmp_path: Path) -> None:
    text = (
        'name = "{}"\nextends = "{}"\n[registers]\n'
        'per_thread = {{ value = {}, unit = "registers", source = "s", confidence = "G" }}\n'
    )
    (tmp_path / "base.toml").write_text(text.format("base", "h100", 100), encoding="utf-8")
    (tmp_path / "top.toml").write_text(text.format("top", "base.toml", 96), encoding="utf-8")
    machine = load(str(tmp_path / "top.toml"))
    assert machine.name == "top"
    assert machine.registers is not None
    assert machine.registers.per_thread == 96
    assert machine.unit("tma").capacity == 1


def test_the_lists_of_rules_agree_with_the_cost_model() -> None:
    assert set(RULES) == set(PRICING_RULES)
    assert set(LEGALITY) == set(LEGALITY_RULES)


def test_every_figure_is_given_by_some_shipped_machine() -> None:
    given = {figure.path for name in names() for figure in load(name).figures}
    plain = {rule.path for rule in FIGURES if "*" not in rule.path}
    assert plain <= given
